#include "base/shared_library.h"

#include <dlfcn.h>

namespace reprise {

SharedLibrary::SharedLibrary(const char* name) : name_(name), handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* const why = ::dlerror();
  problem_ = why != nullptr ? why : name;
}

SharedLibrary::Symbol SharedLibrary::Find(const char* name) {
  void* const symbol = handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
  if (symbol == nullptr && problem_.empty()) problem_ = std::string(name_) + " has no " + name;
  return {symbol};
}

}  // namespace reprise
