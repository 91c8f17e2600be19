#pragma once

#include <string>

namespace reprise {

// A library that is not linked, since only some need it: loaded now, and for as long as the process lives. Its
// functions are looked up one after the other; the first thing that is missing is remembered.
class SharedLibrary {
 public:
  // `name` as dlopen(3) takes it: "libcurl.so.4".
  explicit SharedLibrary(const char* name);

  // Null if it is missing.
  template <typename Function>
  void Find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(FindSymbol(name));
  }
  // What is missing, for the log; empty: nothing.
  const std::string& problem() const { return problem_; }

 private:
  void* FindSymbol(const char* name);

  const char* const name_;
  void* const handle_;  // null: it could not be loaded
  std::string problem_;
};

}  // namespace reprise
