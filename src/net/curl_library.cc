#include "net/curl_library.h"

#include <dlfcn.h>

#include <string>

namespace reprise {
namespace {

constexpr const char* kLibraryName = "libcurl.so.4";

// Finds symbols one after the other and remembers the first that is missing.
class SymbolFinder {
 public:
  explicit SymbolFinder(void* library) : library_(library) {}

  template <typename Function>
  void Find(Function& function, const char* name) {
    void* symbol = ::dlsym(library_, name);
    if (symbol == nullptr && missing_.empty()) missing_ = name;
    function = reinterpret_cast<Function>(symbol);
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

Error NotAvailable(std::string detail) {
  return MakeError(ErrorCode::kInternal, "the HTTP client library (libcurl) is not available", std::move(detail));
}

Result<CurlLibrary> LoadOnce() {
  void* handle = ::dlopen(kLibraryName, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return Fail(NotAvailable(why != nullptr ? why : kLibraryName));
  }
  CurlLibrary library{};
  SymbolFinder finder(handle);
  finder.Find(library.global_init, "curl_global_init");
  finder.Find(library.easy_init, "curl_easy_init");
  finder.Find(library.easy_cleanup, "curl_easy_cleanup");
  finder.Find(library.easy_reset, "curl_easy_reset");
  finder.Find(library.easy_setopt, "curl_easy_setopt");
  finder.Find(library.easy_getinfo, "curl_easy_getinfo");
  finder.Find(library.easy_strerror, "curl_easy_strerror");
  finder.Find(library.slist_append, "curl_slist_append");
  finder.Find(library.slist_free_all, "curl_slist_free_all");
  finder.Find(library.multi_init, "curl_multi_init");
  finder.Find(library.multi_cleanup, "curl_multi_cleanup");
  finder.Find(library.multi_setopt, "curl_multi_setopt");
  finder.Find(library.multi_add_handle, "curl_multi_add_handle");
  finder.Find(library.multi_remove_handle, "curl_multi_remove_handle");
  finder.Find(library.multi_socket_action, "curl_multi_socket_action");
  finder.Find(library.multi_assign, "curl_multi_assign");
  finder.Find(library.multi_info_read, "curl_multi_info_read");
  if (!finder.missing().empty()) return Fail(NotAvailable("libcurl has no " + finder.missing()));
  if (library.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return Fail(NotAvailable("curl_global_init failed"));
  return library;
}

}  // namespace

Result<const CurlLibrary*> CurlLibrary::Load() {
  static const Result<CurlLibrary> library = LoadOnce();
  if (!library) return Fail(library.error());
  return &*library;
}

}  // namespace reprise
