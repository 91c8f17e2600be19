# reprise-start, the first program in a command's sandbox (main.cc).
add_executable(reprise-start process/start/main.cc)
target_link_libraries(reprise-start PRIVATE reprise_flags)
# Whatever the build adds to programs (sanitizers, stack protectors) needs the C library.
target_compile_options(reprise-start PRIVATE -O2 -ffreestanding -fno-exceptions -fno-rtti -fno-stack-protector -fno-sanitize=all
                       -U_FORTIFY_SOURCE -fcf-protection=none)
target_link_options(reprise-start PRIVATE -static -fno-sanitize=all)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_link_options(reprise-start PRIVATE -nostdlib)
endif()
set_target_properties(reprise-start PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} UNITY_BUILD OFF)
