# What reprise-document links, as REPRISE_DOCUMENT_LIBS; included by src/CMakeLists.txt.
#   libarchive-dev  reads ZIP archives as a stream, and says when one is damaged or encrypted
#   libxml2-dev     reads XML and HTML as a stream
find_package(PkgConfig REQUIRED)
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive)
pkg_check_modules(XML2 REQUIRED IMPORTED_TARGET GLOBAL libxml-2.0)
set(REPRISE_DOCUMENT_LIBS PkgConfig::ARCHIVE PkgConfig::XML2)
