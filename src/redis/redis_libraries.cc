#include "redis/redis_libraries.h"

#include <string>

namespace reprise {
namespace {

template <typename Library>
Result<const Library*> LoadOnce(const char* reason, const std::string& what) {
  static const Library library;
  if (library.problem().empty()) return &library;
  return Fail(
      Refused(ErrorCode::kUnavailable, reason, "the " + what + ") is not available; install it", library.problem()));
}

}  // namespace

Result<const HiredisLibrary*> HiredisLibrary::Load() {
  return LoadOnce<HiredisLibrary>("no_redis_library", std::string("Redis client library (hiredis, ") + kHiredisLibrary);
}

Result<const SslLibrary*> SslLibrary::Load() {
  return LoadOnce<SslLibrary>("no_tls_library", std::string("TLS library (OpenSSL, ") + kSslLibrary);
}

}  // namespace reprise
