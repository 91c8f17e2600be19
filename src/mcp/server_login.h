#pragma once

#include <chrono>
#include <condition_variable>
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

// Where a browser comes back to after a log-in: a port of this machine (RFC 8252, 7.3) that answers one path.
class LoopbackRedirect {
 public:
  // `port` 0: any that is free. kConflict if it is in use.
  static Result<LoopbackRedirect> Open(std::uint16_t port);

  std::string uri() const;  // "http://127.0.0.1:PORT/mcp/callback"
  // The query of the first request to this address, which begins with `uri()`, that has this `state`; without its
  // question mark. Others are told that there is nothing here. Blocks until then; kCancelled when `stop` is requested.
  Result<std::string> Await(const std::string& address, const std::string& state, const std::stop_token& stop) const;

 private:
  LoopbackRedirect(UniqueFd socket, std::uint16_t port) : socket_(std::move(socket)), port_(port) {}
  UniqueFd socket_;
  std::uint16_t port_ = 0;
};

// A person logs in at a configured server, in a browser of this machine.

struct ServerLogin {
  Transport& transport;
  OAuthCredentials& credentials;
  std::string workspace, client_version;
  std::uint16_t port = 0;  // that the browser comes back to; 0: any
};

// Connects to the server and has a person log in if it wants that: `show` gets the URL to open, on a thread of its own,
// which then waits for the browser. False: the server wanted nothing, as a log-in counts already. Blocks, a quarter of
// an hour at most. kInvalidArgument (reason "no_login") if the configuration has no log-in for it; kForbidden (reason
// "mcp_oauth"): it cannot be done, and why; kUnavailable, kCancelled.
Result<bool> LogInAtServer(const McpServerOptions& server, const ServerLogin& login,
                           const std::function<void(const std::string& url)>& show, const std::stop_token& stop);

// The same, on a thread of its own. Ends with the object.
class LoginAttempt {
 public:
  using Show = std::function<void(const std::string& url)>;
  using LogIn = std::function<Result<bool>(const Show& show, const std::stop_token& stop)>;
  // `log_in` is called once, and then `done`, on that thread. std::system_error if there is no thread for it.
  LoginAttempt(LogIn log_in, std::function<void(const Result<bool>&)> done);
  ~LoginAttempt();

  void GiveUp() { thread_.request_stop(); }
  // The URL to open, as soon as it is known; empty: no log-in is wanted. The error of an attempt that has failed.
  Result<std::string> AwaitPage(std::chrono::milliseconds limit);

 private:
  Mutex mutex_;
  std::condition_variable_any known_;
  std::optional<Result<std::string>> page_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: ends before what it uses is gone
};

}  // namespace reprise
