#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/system.h"
#include "mcp/oauth_authorizer.h"
#include "reprise/options.h"
#include "reprise/result.h"
#include "reprise/transport.h"

namespace reprise {

// The address that a browser comes back to after a log-in: a port of this machine (RFC 8252, 7.3) with one path.
class LoopbackRedirect {
 public:
  // `port` 0: any free port. kConflict if the port is in use.
  static Result<LoopbackRedirect> Open(std::uint16_t port);

  std::string uri() const;  // "http://127.0.0.1:PORT/mcp/callback"
  // Waits for a request to `address`, which begins with `uri()`, with this `state`, and returns its query without the
  // question mark. Other requests get a 404. kCancelled when `stop` is requested.
  Result<std::string> Await(const std::string& address, const std::string& state, const std::stop_token& stop) const;

 private:
  LoopbackRedirect(UniqueFd socket, std::uint16_t port) : socket_(std::move(socket)), port_(port) {}
  UniqueFd socket_;
  std::uint16_t port_ = 0;
};

// A user's log-in at a configured server, in a browser on this machine.
struct ServerLogin {
  Transport& transport;
  OAuthCredentials& credentials;
  std::string workspace, client_version;
  std::uint16_t port = 0;  // the port that the browser comes back to; 0: the last registered one, or any
};

// Connects to the server and lets the user log in if the server demands it: `show` gets the URL to open, on another
// thread, which then waits for the browser. False if the server demanded nothing, such as with a valid log-in. Blocks
// for at most a quarter of an hour. kInvalidArgument (reason "no_login") if the configuration has no log-in for the
// server; kForbidden (reason "mcp_oauth") says why no log-in is possible; kUnavailable, kCancelled.
Result<bool> LogInAtServer(const McpServerOptions& server, const ServerLogin& login,
                           const std::function<void(const std::string& url)>& show, const std::stop_token& stop);

// A log-in on its own thread. The destructor cancels it.
class LoginAttempt {
 public:
  using Show = std::function<void(const std::string& url)>;
  using LogIn = std::function<Result<bool>(const Show& show, const std::stop_token& stop)>;
  // Calls `log_in` once, and then `done`, on that thread. std::system_error if the thread cannot be started.
  LoginAttempt(LogIn log_in, std::function<void(const Result<bool>&)> done);
  ~LoginAttempt();

  void GiveUp() { thread_.request_stop(); }
  // Waits for the URL to open; empty if no log-in is needed. Returns the error of a failed attempt.
  Result<std::string> AwaitPage(std::chrono::milliseconds limit);

 private:
  Mutex mutex_;
  Condition known_;
  std::optional<Result<std::string>> page_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: ends before what it uses is gone
};

}  // namespace reprise
