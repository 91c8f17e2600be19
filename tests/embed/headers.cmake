# Compiles each public header alone: it must include what it needs, and none of the internal libraries. Called as a test.
file(GLOB headers ${INCLUDE}/reprise/*.h)
foreach(header ${headers})
  execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -I${INCLUDE} -x c++ ${header} COMMAND_ERROR_IS_FATAL ANY)
  file(STRINGS ${header} foreign REGEX "#include <(nlohmann|boost|openssl|curl|simdjson|re2)")
  if(foreign)
    message(FATAL_ERROR "${header}: ${foreign}")
  endif()
endforeach()
