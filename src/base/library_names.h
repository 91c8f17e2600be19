#pragma once

// The SONAMEs of the libraries that SharedLibrary loads. CMake reads them from the libraries of the build system
// (base/library_names.cmake).
namespace reprise {

extern const char* const kCurlLibrary;
extern const char* const kEditLibrary;
extern const char* const kHiredisLibrary;
extern const char* const kPostgresLibrary;
extern const char* const kSslLibrary;
extern const char* const kYamlLibrary;

}  // namespace reprise
