#include "support/redis_server.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "support/unprivileged.h"

namespace reprise::test {
namespace {

constexpr const char* kProgram = "/usr/bin/redis-server";

}  // namespace

std::unique_ptr<RedisServer> RedisServer::Start(Options options) {
  static const bool is_there = [] {
    const bool there = ::access(kProgram, X_OK) == 0;
    if (!there) {
      std::fprintf(stderr, "\n*** Redis is not installed (scripts/deps test): NOTHING is tested against it\n\n");
    }
    return there;
  }();
  return is_there ? std::unique_ptr<RedisServer>(new RedisServer(std::move(options))) : nullptr;
}

RedisServer::RedisServer(Options options) : options_(std::move(options)), port_(FreePort()) {
  GiveToNobody(folder_.path());
  if (options_.tls) {
    const int made = AwaitEnd(
        StartUnprivileged({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                           "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                           folder_.path() + "/key", "-out", certificate()},
                          folder_.path() + "/log"));
    if (made != 0) throw std::runtime_error("no certificate: see " + folder_.path() + "/log");
  }
  StartAgain();
}

RedisServer::~RedisServer() { Kill(); }

std::string RedisServer::url(const std::string& user_info) const {
  return std::string(options_.tls ? "rediss" : "redis") + "://" + user_info + "127.0.0.1:" + std::to_string(port_);
}

void RedisServer::Kill() {
  if (pid_ > 0) End(pid_, SIGKILL);
  pid_ = -1;
}

void RedisServer::StartAgain() {
  std::vector<std::string> command = {kProgram, "--bind", "127.0.0.1", "--save", "", "--dir", folder_.path()};
  const std::string port = std::to_string(port_);
  if (options_.tls) {
    command.insert(command.end(),
                   {"--port", "0", "--tls-port", port, "--tls-auth-clients", "no", "--tls-cert-file", certificate(),
                    "--tls-key-file", folder_.path() + "/key", "--tls-ca-cert-file", certificate()});
  } else {
    command.insert(command.end(), {"--port", port});
  }
  command.insert(command.end(), options_.arguments.begin(), options_.arguments.end());
  pid_ = StartUnprivileged(command, folder_.path() + "/log");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!AcceptsAt(port_)) {
    if (std::chrono::steady_clock::now() > until) throw std::runtime_error("no Redis: see " + folder_.path() + "/log");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void RedisServer::Freeze() { ::kill(pid_, SIGSTOP); }
void RedisServer::Thaw() { ::kill(pid_, SIGCONT); }

}  // namespace reprise::test
