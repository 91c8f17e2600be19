#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/system.h"
#include "reprise/tool.h"
#include "tools/network/host_rules.h"
#include "tools/network/tunnel.h"

namespace reprise {

// The way out of one command's sandbox, which has a network of its own with nothing in it but listeners of this relay:
// a proxy (HTTP and SOCKS5 at kProxyPort), and one at each permitted port of the machine's loopback. It knows the host
// before it connects, resolves the name itself, connects to the very address that it has checked, and checks the first
// bytes (CheckFirstBytes). Has a thread for each connection. Thread-safe.
class NetworkRelay {
 public:
  static constexpr std::uint16_t kProxyPort = 3128;
  static constexpr std::size_t kMaxConnections = 128;

  struct Options {
    HostRules rules{};
    std::vector<HostPort> closed{};  // endpoints that no rule opens
  };
  explicit NetworkRelay(std::shared_ptr<const Options> options);
  ~NetworkRelay();
  NetworkRelay(const NetworkRelay&) = delete;
  NetworkRelay& operator=(const NetworkRelay&) = delete;

  // The Unix socket for OpenListeners in the sandbox, and the ports to open there.
  int inner_socket() const { return inner_.get(); }
  const std::vector<std::uint16_t>& ports() const { return ports_; }
  // ToolContext::may_reach, for hosts that no rule names; empty: they are refused. Called by one thread at a time.
  using Ask = std::function<std::string(const std::string& place, const std::stop_token& over)>;
  // Call it once, when the command has the socket. All ends when `stop` is requested.
  void Begin(const std::stop_token& stop, Ask ask);
  // How long the command has waited for people's answers so far.
  std::chrono::milliseconds waited() const;

  struct Report {
    std::vector<NetworkUse> uses{};      // by host and port
    std::vector<std::string> refused{};  // "HOST:PORT: why"
  };
  // Ends all connections.
  Report Finish();

 private:
  void Serve();
  void Accept(int listener, std::uint16_t port);
  // All of these run on the connection's thread. `port`: the listener's, kProxyPort for the proxy.
  void Handle(int client, std::uint16_t port);
  void HandleHttp(int client, std::string bytes);
  void HandleSocks(int client, std::string bytes);
  // Reads until `done` is true of all the bytes. False if they end before.
  bool ReadUntil(int client, std::string& bytes, const std::function<bool(std::string_view)>& done) const;
  // A connection to the target, or why there is none.
  Result<UniqueFd> Reach(const HostPort& target);
  // Asks once for each host and port. Returns why it must not be reached; empty: a person allows it.
  std::string AskAbout(const HostPort& target);
  // Passes bytes on in both directions until one side has ended. `bytes`: those of the client that were read already.
  void Tunnel(int client, const UniqueFd& server, const HostPort& target, std::string bytes, bool is_checked);
  bool PassFirstBytes(int client, int server, const HostPort& target, std::string& bytes, NetworkUse& use);
  void Refuse(const HostPort& target, const std::string& why);
  void Count(const NetworkUse& use);

  const std::shared_ptr<const Options> options_;
  std::stop_source stop_;
  std::optional<std::stop_callback<std::function<void()>>> outer_stop_;
  StopEvent stopped_;
  std::vector<std::uint16_t> ports_;
  UniqueFd inner_, outer_;
  Ask ask_;
  Mutex asking_;
  std::map<std::string, std::string> answers_ GUARDED_BY(asking_);  // of AskAbout, by place
  mutable Mutex mutex_;
  std::chrono::steady_clock::duration waited_ GUARDED_BY(mutex_){};
  std::optional<std::chrono::steady_clock::time_point> asked_at_ GUARDED_BY(mutex_);  // the open question
  std::map<std::string, NetworkUse> uses_ GUARDED_BY(mutex_);
  std::set<std::string> refused_ GUARDED_BY(mutex_);
  ConnectionThreads connections_{kMaxConnections};  // of the serving thread, and of Finish after it
  std::jthread thread_;                             // last: it uses all others
};

}  // namespace reprise
