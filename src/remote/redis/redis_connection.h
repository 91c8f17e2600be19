#pragma once

#include <hiredis/hiredis.h>
#include <openssl/ssl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_library.h"
#include "base/system.h"
#include "reprise/result.h"

namespace reprise {

// redis://[user:password@]host[:port][/db], or rediss:// with TLS. Percent-encoded parts are decoded.
struct RedisUrl {
  std::string host;
  std::string port = "6379";
  std::string user{}, password{};
  std::string database{};  // empty: the default
  bool is_tls = false;

  // kInvalidArgument; the message quotes no part of the URL.
  static Result<RedisUrl> Parse(std::string_view url);
  // For people, without user and password.
  std::string name() const { return host + ":" + port; }
};

// The functions of hiredis that we use, which read and write the protocol. Looked up at run time, because only servers
// with Redis need it.
struct HiredisLibrary : SharedLibrary {
  HiredisLibrary() : SharedLibrary(kHiredisLibrary) {}

  decltype(&::redisReaderCreate) create_reader = Find("redisReaderCreate");
  decltype(&::redisReaderFree) free_reader = Find("redisReaderFree");
  decltype(&::redisReaderFeed) feed = Find("redisReaderFeed");
  decltype(&::redisReaderGetReply) get_reply = Find("redisReaderGetReply");
  decltype(&::freeReplyObject) free_reply = Find("freeReplyObject");
  decltype(&::redisFormatCommandArgv) format = Find("redisFormatCommandArgv");
  decltype(&::redisFreeCommand) free_command = Find("redisFreeCommand");

  // The first call loads the library; later calls return the same result at no cost. Thread-safe. It stays loaded.
  // kUnavailable if it is missing.
  static Result<const HiredisLibrary*> Load();
};

// The same for OpenSSL's libssl; libcrypto is linked.
struct SslLibrary : SharedLibrary {
  SslLibrary() : SharedLibrary(kSslLibrary) {}

  decltype(&::TLS_client_method) client_method = Find("TLS_client_method");
  decltype(&::SSL_CTX_new) new_context = Find("SSL_CTX_new");
  decltype(&::SSL_CTX_free) free_context = Find("SSL_CTX_free");
  decltype(&::SSL_CTX_ctrl) control = Find("SSL_CTX_ctrl");
  decltype(&::SSL_CTX_set_verify) set_verify = Find("SSL_CTX_set_verify");
  decltype(&::SSL_CTX_set_default_verify_paths) trust_system = Find("SSL_CTX_set_default_verify_paths");
  decltype(&::SSL_CTX_load_verify_locations) trust_file = Find("SSL_CTX_load_verify_locations");
  decltype(&::SSL_new) create = Find("SSL_new");
  decltype(&::SSL_free) free = Find("SSL_free");
  decltype(&::SSL_ctrl) control_one = Find("SSL_ctrl");
  decltype(&::SSL_get0_param) parameters = Find("SSL_get0_param");
  decltype(&::SSL_set_bio) set_bio = Find("SSL_set_bio");
  decltype(&::SSL_set_connect_state) set_connect_state = Find("SSL_set_connect_state");
  decltype(&::SSL_do_handshake) handshake = Find("SSL_do_handshake");
  decltype(&::SSL_read) read = Find("SSL_read");
  decltype(&::SSL_write) write = Find("SSL_write");
  decltype(&::SSL_get_error) get_error = Find("SSL_get_error");
  decltype(&::SSL_get_verify_result) verify_result = Find("SSL_get_verify_result");

  static Result<const SslLibrary*> Load();
};

// The settings for TLS connections: the server's certificate must be trusted and match its name.
class RedisTls {
 public:
  // `ca_file` is trusted besides the system's certificates; may be empty.
  static Result<std::shared_ptr<const RedisTls>> Make(const std::string& ca_file);
  ~RedisTls();
  RedisTls(const RedisTls&) = delete;
  RedisTls& operator=(const RedisTls&) = delete;

 private:
  friend class RedisConnection;
  explicit RedisTls(const SslLibrary& library) : library_(library) {}

  const SslLibrary& library_;
  SSL_CTX* context_ = nullptr;
};

// An authenticated connection to a Redis server. Only Open blocks. Not thread-safe.
class RedisConnection {
 public:
  // `stop` becomes readable to abort.
  static Result<std::unique_ptr<RedisConnection>> Open(const RedisUrl& url, const std::shared_ptr<const RedisTls>& tls,
                                                       std::chrono::steady_clock::time_point until, int stop);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  int fd() const { return socket_.get(); }
  // Whether output is left: call Flush when the socket is writable.
  bool must_flush() const { return sent_ < out_.size(); }
  // If one of these returns false or kUnavailable, the connection is lost.
  bool Send(const std::vector<std::string_view>& command) { return Queue(command) && Flush(); }
  // The next Flush sends it.
  bool Queue(const std::vector<std::string_view>& command);
  bool Flush();
  // Reads the available replies.
  Result<void> Receive(const std::function<void(const redisReply&)>& take);

 private:
  using Clock = std::chrono::steady_clock;
  RedisConnection(const HiredisLibrary& library, std::shared_ptr<const RedisTls> tls, UniqueFd socket);

  Result<void> Handshake(const std::string& host, Clock::time_point until, int stop);
  Result<void> SignIn(const RedisUrl& url, Clock::time_point until, int stop);
  bool Encrypt(std::string_view bytes);
  void TakeEncrypted();
  // Feeds the server's bytes to the reader; false if they are not the protocol.
  bool Feed(std::string_view bytes);
  Result<void> Wait(short events, Clock::time_point until, int stop) const;

  const HiredisLibrary& library_;
  const std::shared_ptr<const RedisTls> tls_;  // null if without TLS
  const UniqueFd socket_;
  redisReader* const reader_;
  SSL* ssl_ = nullptr;          // works in memory; we use the socket, because OpenSSL's I/O may raise SIGPIPE
  BIO* from_server_ = nullptr;  // owned by ssl_
  BIO* to_server_ = nullptr;    // likewise
  std::string out_;
  std::size_t sent_ = 0;
};

}  // namespace reprise
