#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "mcp/oauth_credentials.h"
#include "reprise/options.h"
#include "reprise/result.h"
#include "reprise/transport.h"

// A person logs in at a configured server, in a browser of this machine.
namespace reprise {

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
