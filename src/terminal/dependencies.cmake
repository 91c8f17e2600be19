# What the terminal links, as REPRISE_TERMINAL_LIBS; included by src/CMakeLists.txt.
#   libmd4c-dev  parses the Markdown that the terminal client draws
#   libdtl-dev   header-only; compares the lines of two files
pkg_check_modules(MD4C REQUIRED IMPORTED_TARGET GLOBAL md4c)
find_path(DTL_INCLUDE_DIR dtl/dtl.hpp REQUIRED)
set(REPRISE_TERMINAL_LIBS PkgConfig::MD4C)
