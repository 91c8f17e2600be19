#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.h"
#include "remote/redis/redis_libraries.h"
#include "remote/redis/redis_url.h"
#include "reprise/result.h"

namespace reprise {

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
