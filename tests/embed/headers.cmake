# Compiles each public header alone: it must include all it needs, and none of the internal libraries. Called as a test.
file(GLOB headers ${INCLUDE}/reprise/*.h)
find_program(CCACHE ccache)
if(NOT CCACHE)
  set(CCACHE)
endif()
foreach(header ${headers})
  # Into an object, because ccache keeps nothing else.
  execute_process(COMMAND ${CCACHE} ${COMPILER} -std=c++20 -c -I${INCLUDE} -x c++ ${header} -o ${WORK}
                  COMMAND_ERROR_IS_FATAL ANY)
  file(STRINGS ${header} foreign REGEX "#include <(nlohmann|boost|openssl|curl|simdjson|re2)")
  if(foreign)
    message(FATAL_ERROR "${header}: ${foreign}")
  endif()
endforeach()
