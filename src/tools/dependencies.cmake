# What the tools link, as REPRISE_TOOLS_LIBS; included by src/CMakeLists.txt.
#   libvalijson-dev  header-only JSON Schema validator
#   libre2-dev       regular expressions in linear time, for patterns that come from a model
#   libcctz-dev      time zones without touching the process-wide TZ; Debian ships neither .pc nor CMake package
#   libseccomp-dev   writes the filter of system calls that bubblewrap sets
find_package(PkgConfig REQUIRED)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET GLOBAL re2)
find_path(VALIJSON_INCLUDE_DIR valijson/validator.hpp REQUIRED)
find_path(CCTZ_INCLUDE_DIR cctz/time_zone.h REQUIRED)
find_library(CCTZ_LIBRARY cctz REQUIRED)
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET GLOBAL libseccomp)
set(REPRISE_TOOLS_LIBS PkgConfig::RE2 PkgConfig::SECCOMP ${CCTZ_LIBRARY})
