#pragma once

// What the libraries that SharedLibrary loads are called on the system that this was built for (their SONAMEs): CMake
// reads them from what it would link (base/library_names.cmake).
namespace reprise {

extern const char* const kCurlLibrary;
extern const char* const kEditLibrary;
extern const char* const kHiredisLibrary;
extern const char* const kPostgresLibrary;
extern const char* const kSslLibrary;
extern const char* const kYamlLibrary;

}  // namespace reprise
