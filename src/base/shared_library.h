#pragma once

#include <string>

namespace reprise {

// The SONAMEs of the libraries that SharedLibrary loads. CMake reads them from the libraries of the build system
// (base/library_names.cmake).
extern const char* const kCurlLibrary;
extern const char* const kEditLibrary;
extern const char* const kHiredisLibrary;
extern const char* const kPostgresLibrary;
extern const char* const kSqliteLibrary;
extern const char* const kSslLibrary;
extern const char* const kYamlLibrary;

// Loads a library at run time because only some users need it. It stays loaded until the process ends. A table of its
// functions derives from this class and finds each function where it declares it; problem() names the first missing
// one:
//
//   struct CurlLibrary : SharedLibrary {
//     CurlLibrary() : SharedLibrary(kCurlLibrary) {}
//     decltype(&::curl_easy_init) easy_init = Find("curl_easy_init");
//   };
class SharedLibrary {
 public:
  // `name` as dlopen(3) takes it: "libcurl.so.4".
  explicit SharedLibrary(const char* name);

  // The first missing library or function, for the log; empty if all were found.
  const std::string& problem() const { return problem_; }

 protected:
  // Converts to a function pointer of any type; null if it is missing.
  struct Symbol {
    template <typename Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
    void* address;
  };
  Symbol Find(const char* name);

 private:
  const char* name_;
  void* handle_;  // null if it could not be loaded
  std::string problem_;
};

}  // namespace reprise
