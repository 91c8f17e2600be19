#pragma once

#include <string>

namespace reprise {

// A library that is not linked, since only some need it: loaded now, and for as long as the process lives. A table of
// its functions derives from this, and finds each where it is declared; the first thing that is missing is remembered:
//
//   struct CurlLibrary : SharedLibrary {
//     CurlLibrary() : SharedLibrary(kCurlLibrary) {}
//     decltype(&::curl_easy_init) easy_init = Find("curl_easy_init");
//   };
class SharedLibrary {
 public:
  // `name` as dlopen(3) takes it: "libcurl.so.4".
  explicit SharedLibrary(const char* name);

  // What is missing, for the log; empty: nothing.
  const std::string& problem() const { return problem_; }

 protected:
  // A pointer to a function of whatever type; null if it is missing.
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
  void* handle_;  // null: it could not be loaded
  std::string problem_;
};

}  // namespace reprise
