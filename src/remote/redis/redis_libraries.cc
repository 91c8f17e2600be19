#include "remote/redis/redis_libraries.h"

#include <string>

namespace reprise {
namespace {

template <typename Library>
Result<const Library*> LoadOnce(Reason reason, const std::string& what) {
  static const Library library;
  if (library.problem().empty()) return &library;
  return Fail(reason, "the " + what + ") is not available; install it", library.problem());
}

}  // namespace

Result<const HiredisLibrary*> HiredisLibrary::Load() {
  return LoadOnce<HiredisLibrary>(Reason::kNoRedisLibrary,
                                  std::string("Redis client library (hiredis, ") + kHiredisLibrary);
}

Result<const SslLibrary*> SslLibrary::Load() {
  return LoadOnce<SslLibrary>(Reason::kNoTlsLibrary, std::string("TLS library (OpenSSL, ") + kSslLibrary);
}

}  // namespace reprise
