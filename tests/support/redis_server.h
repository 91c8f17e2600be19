#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "support/temp_directory.h"

namespace reprise::test {

// A real Redis for a test: unprivileged, on loopback, without persistence.
class RedisServer {
 public:
  struct Options {
    bool tls = false;
    std::vector<std::string> arguments{};  // additional ones
  };
  // Null if Redis is not installed; a loud message says so once.
  static std::unique_ptr<RedisServer> Start(Options options);
  static std::unique_ptr<RedisServer> Start() { return Start({}); }
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  std::string url(const std::string& user_info = "") const;
  int port() const { return port_; }
  // The path of the server's self-signed certificate, with `tls`.
  std::string certificate() const { return folder_.path() + "/certificate"; }
  // Kills it without warning.
  void Kill();
  // Restarts it on the same port.
  void StartAgain();
  // Makes it accept connections without answering.
  void Freeze();
  void Thaw();

 private:
  explicit RedisServer(Options options);

  const Options options_;
  const TempDirectory folder_;
  const int port_;
  pid_t pid_ = -1;
};

}  // namespace reprise::test
