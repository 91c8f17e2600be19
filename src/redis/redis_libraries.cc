#include "redis/redis_libraries.h"

#include <string>

namespace reprise {
namespace {

template <typename Library>
Result<const Library*> LoadOnce(const char* reason, const std::string& what) {
  static const Library library;
  if (library.problem().empty()) return &library;
  return Fail(Error{.code = ErrorCode::kUnavailable,
                    .reason = reason,
                    .message = "the " + what + ") is not available; install it",
                    .detail = library.problem()});
}

}  // namespace

Result<const HiredisLibrary*> HiredisLibrary::Load() {
  return LoadOnce<HiredisLibrary>("no_redis_library", std::string("Redis client library (hiredis, ") + kHiredisLibrary);
}

Result<const SslLibrary*> SslLibrary::Load() {
  return LoadOnce<SslLibrary>("no_tls_library", std::string("TLS library (OpenSSL, ") + kSslLibrary);
}

}  // namespace reprise
