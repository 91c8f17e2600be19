# Installs what programs build against, builds one outside this tree and runs it. Called as a test.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE said)
  set(said "${said}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --component development --prefix ${WORK}/prefix)
# With the generator of this build: a machine that has ninja need not have make.
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${CMAKE_COMMAND} -E chdir ${WORK} build/embed chats)
if(NOT said STREQUAL "It is sunny, 21 degrees.\n")
  message(FATAL_ERROR "the program said: ${said}")
endif()
file(REMOVE_RECURSE ${WORK})
