#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "support/temp_directory.h"

namespace reprise::test {

// A real Redis for a test: unprivileged, on loopback, saving nothing.
class RedisServer {
 public:
  struct Options {
    bool tls = false;
    std::vector<std::string> arguments{};  // further ones
  };
  // Null, with one loud message, if Redis is not installed.
  static std::unique_ptr<RedisServer> Start(Options options);
  static std::unique_ptr<RedisServer> Start() { return Start({}); }
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  std::string url(const std::string& user_info = "") const;
  int port() const { return port_; }
  // With `tls`: the server's self-signed certificate.
  std::string certificate() const { return folder_.path() + "/certificate"; }
  // Ends it by SIGKILL.
  void Kill();
  // Starts it again at the same port.
  void StartAgain();
  // Makes it accept connections but answer nothing.
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
