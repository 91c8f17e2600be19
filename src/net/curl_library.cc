#include "net/curl_library.h"

#include <string>
#include <utility>

namespace reprise {
namespace {

Error NotAvailable(std::string detail) {
  return MakeError(ErrorCode::kInternal, "the HTTP client library (libcurl) is not available", std::move(detail));
}

}  // namespace

Result<const CurlLibrary*> CurlLibrary::Load() {
  static const CurlLibrary library;
  if (!library.problem().empty()) return Fail(NotAvailable(library.problem()));
  static const CURLcode begun = library.global_init(CURL_GLOBAL_DEFAULT);
  if (begun != CURLE_OK) return Fail(NotAvailable("curl_global_init failed"));
  return &library;
}

}  // namespace reprise
