#include "net/curl_library.h"

#include <string>
#include <utility>

#include "base/library_names.h"
#include "base/shared_library.h"

namespace reprise {
namespace {

Error NotAvailable(std::string detail) {
  return MakeError(ErrorCode::kInternal, "the HTTP client library (libcurl) is not available", std::move(detail));
}

Result<CurlLibrary> LoadOnce() {
  SharedLibrary curl(kCurlLibrary);
  CurlLibrary library{};
  curl.Find(library.global_init, "curl_global_init");
  curl.Find(library.easy_init, "curl_easy_init");
  curl.Find(library.easy_cleanup, "curl_easy_cleanup");
  curl.Find(library.easy_reset, "curl_easy_reset");
  curl.Find(library.easy_setopt, "curl_easy_setopt");
  curl.Find(library.easy_getinfo, "curl_easy_getinfo");
  curl.Find(library.easy_strerror, "curl_easy_strerror");
  curl.Find(library.slist_append, "curl_slist_append");
  curl.Find(library.slist_free_all, "curl_slist_free_all");
  curl.Find(library.multi_init, "curl_multi_init");
  curl.Find(library.multi_cleanup, "curl_multi_cleanup");
  curl.Find(library.multi_setopt, "curl_multi_setopt");
  curl.Find(library.multi_add_handle, "curl_multi_add_handle");
  curl.Find(library.multi_remove_handle, "curl_multi_remove_handle");
  curl.Find(library.multi_socket_action, "curl_multi_socket_action");
  curl.Find(library.multi_assign, "curl_multi_assign");
  curl.Find(library.multi_info_read, "curl_multi_info_read");
  if (!curl.problem().empty()) return Fail(NotAvailable(curl.problem()));
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
