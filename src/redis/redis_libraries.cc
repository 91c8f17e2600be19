#include "redis/redis_libraries.h"

#include <string>
#include <utility>

#include "base/library_names.h"
#include "base/shared_library.h"

namespace reprise {
namespace {

Error NotAvailable(const char* reason, std::string message, const SharedLibrary& library) {
  return Refused(ErrorCode::kUnavailable, reason, std::move(message), library.problem());
}

Result<HiredisLibrary> LoadHiredis() {
  SharedLibrary hiredis(kHiredisLibrary);
  HiredisLibrary library{};
  hiredis.Find(library.create_reader, "redisReaderCreate");
  hiredis.Find(library.free_reader, "redisReaderFree");
  hiredis.Find(library.feed, "redisReaderFeed");
  hiredis.Find(library.get_reply, "redisReaderGetReply");
  hiredis.Find(library.free_reply, "freeReplyObject");
  hiredis.Find(library.format, "redisFormatCommandArgv");
  hiredis.Find(library.free_command, "redisFreeCommand");
  if (hiredis.problem().empty()) return library;
  return Fail(NotAvailable(
      "no_redis_library",
      std::string("the Redis client library (hiredis, ") + kHiredisLibrary + ") is not available; install it",
      hiredis));
}

Result<SslLibrary> LoadSsl() {
  SharedLibrary ssl(kSslLibrary);
  SslLibrary library{};
  ssl.Find(library.client_method, "TLS_client_method");
  ssl.Find(library.new_context, "SSL_CTX_new");
  ssl.Find(library.free_context, "SSL_CTX_free");
  ssl.Find(library.control, "SSL_CTX_ctrl");
  ssl.Find(library.set_verify, "SSL_CTX_set_verify");
  ssl.Find(library.trust_system, "SSL_CTX_set_default_verify_paths");
  ssl.Find(library.trust_file, "SSL_CTX_load_verify_locations");
  ssl.Find(library.create, "SSL_new");
  ssl.Find(library.free, "SSL_free");
  ssl.Find(library.control_one, "SSL_ctrl");
  ssl.Find(library.parameters, "SSL_get0_param");
  ssl.Find(library.set_bio, "SSL_set_bio");
  ssl.Find(library.set_connect_state, "SSL_set_connect_state");
  ssl.Find(library.handshake, "SSL_do_handshake");
  ssl.Find(library.read, "SSL_read");
  ssl.Find(library.write, "SSL_write");
  ssl.Find(library.get_error, "SSL_get_error");
  ssl.Find(library.verify_result, "SSL_get_verify_result");
  if (ssl.problem().empty()) return library;
  return Fail(NotAvailable("no_tls_library",
                           std::string("the TLS library (OpenSSL, ") + kSslLibrary + ") is not available; install it",
                           ssl));
}

}  // namespace

Result<const HiredisLibrary*> HiredisLibrary::Load() {
  static const Result<HiredisLibrary> library = LoadHiredis();
  if (!library) return Fail(library.error());
  return &*library;
}

Result<const SslLibrary*> SslLibrary::Load() {
  static const Result<SslLibrary> library = LoadSsl();
  if (!library) return Fail(library.error());
  return &*library;
}

}  // namespace reprise
