# Installs the development files, builds a program outside this tree and runs it. Called as a test.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE said)
  set(said "${said}" PARENT_SCOPE)
endfunction()

# Joins the blocks of C++ in docs/embedding.md into one program, with the tool and the model of main.cc.
file(READ ${CMAKE_CURRENT_LIST_DIR}/../../docs/embedding.md page)
string(REGEX MATCHALL "\n```cpp\n[^`]*\n```\n" blocks "${page}")
string(REGEX REPLACE "\n```(cpp)?\n" "\n" snippets "${blocks}")
string(REGEX MATCHALL "#include [^\n]*\n" includes "${snippets}")
string(REPLACE "\n;#" "\n#" includes "${includes}")
string(REGEX REPLACE "#include [^\n]*\n" "" statements "${snippets}")
if(statements STREQUAL "")
  message(FATAL_ERROR "docs/embedding.md shows no C++")
endif()

file(REMOVE_RECURSE ${WORK})
file(WRITE ${WORK}/snippets.cc "#define main whole_program
#include \"${CMAKE_CURRENT_LIST_DIR}/main.cc\"
#undef main
${includes}
int Complain(const std::string& what) { return std::cerr << what << '\\n', 1; }

int main() {
  const std::string key = \"none\";
  const auto my_tool = std::make_shared<Weather>();
  const auto my_model = std::make_shared<Parrot>();
${statements}
  if (!turn) return Complain(turn.error().message);
  if (turn->status != InteractionStatus::kCompleted) return Complain(\"the turn has failed\");
  return url || url.error().reason == \"address_in_use\" ? 0 : Complain(url.error().message);
}
")
run(${CMAKE_COMMAND} --install ${BUILD} --component development --prefix ${WORK}/prefix)
# Uses the generator of this build, because a machine with ninja need not have make.
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DSNIPPETS=${WORK}/snippets.cc -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${CMAKE_COMMAND} -E make_directory ${WORK}/home)
# No request leaves this machine.
run(${CMAKE_COMMAND} -E chdir ${WORK}/home ${CMAKE_COMMAND} -E env HOME=${WORK}/home https_proxy=http://127.0.0.1:9
    ${WORK}/build/snippets)
run(${CMAKE_COMMAND} -E chdir ${WORK} build/embed chats)
if(NOT said STREQUAL "It is sunny, 21 degrees.\n")
  message(FATAL_ERROR "the program said: ${said}")
endif()
file(REMOVE_RECURSE ${WORK})
