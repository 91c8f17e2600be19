#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "approval/consents.h"
#include "base/mutex.h"
#include "mcp/channel.h"
#include "mcp/client.h"
#include "mcp/oauth_authorizer.h"
#include "mcp/server_eras.h"
#include "mcp/server_launch.h"
#include "mcp/session.h"
#include "reprise/options.h"
#include "reprise/tool.h"
#include "reprise/transport.h"

namespace reprise {

// What a server offers to a model: its tools, and its resources and prompts made into tools.
struct McpOffer {
  enum class Kind { kTool, kListResources, kReadResource, kListPrompts, kGetPrompt };
  Kind kind = Kind::kTool;
  McpToolDefinition definition;
  bool operator==(const McpOffer&) const = default;
};

// Keeps one configured server running and connected, on a thread of its own: connects, lists what it offers, lists
// again when that changes, and starts it again, less and less often and not for ever, when it has ended. Calls that
// were under way then have failed and stay failed. Thread-safe.
class ServerConnection : public std::enable_shared_from_this<ServerConnection> {
 public:
  using OnChange = std::function<void(ToolServer, std::vector<std::shared_ptr<Tool>>, UnlistedTool)>;
  struct Parts {  // all must outlive Stop
    Transport& transport;
    Consents& consents;
    OAuthCredentials& credentials;
    ServerEras& eras;
    std::string workspace;  // the root that servers are told of; commands do not run there, nor come from there
    std::string folders;    // where a command gets a folder to start in
    std::string client_version;
    OnChange on_change;  // called by several threads, never two calls at once
  };
  ServerConnection(McpServerOptions options, Parts parts);

  void Start();
  void RequestStop();
  // Returns when the server is gone and nothing calls on_change any more.
  void Stop();

  const McpServerOptions& options() const { return options_; }
  // Waits until it is known what the server offers: if it is just being started (again), or has said that its tools
  // have changed. Then on_change has been called. kUnavailable with the reason if that is not so in time.
  Result<void> AwaitOffers(std::chrono::milliseconds timeout, const std::stop_token& stop);
  // The session, if the server offers this, and exactly this, at this moment (as far as it has said). Waits as above;
  // kConflict if it offers something else.
  Result<std::shared_ptr<Session>> SessionFor(const McpOffer& offer, std::chrono::milliseconds timeout,
                                              const std::stop_token& stop);
  // What the server offers may not be what it has said.
  void ListAgain();
  // At once and anew: whoever speaks to the server may be known to it now, or no longer.
  void ConnectAgain();
  // A person has agreed to this tool as it is.
  void Approved(const McpOffer& offer);
  // What the command or address of the server is now, or was when it last ran; see LaunchDigest.
  std::string launch();

 private:
  using Clock = std::chrono::steady_clock;

  void Main(const std::stop_token& stop);
  Error ConnectAndServe(const std::stop_token& stop);
  bool Pause(std::chrono::seconds length, bool wants_login, const std::stop_token& stop);
  std::string TokenNow();   // empty: nobody is logged in
  bool IsToConnectAgain();  // once for each time that it was asked for
  Result<std::unique_ptr<Channel>> OpenChannel();
  Result<ServerFacts> GreetServer(Session& session, const std::stop_token& stop);
  void Recall();
  void Remember(const ServerFacts& facts);
  Result<std::vector<McpOffer>> ListOffers(Session& session, const ServerFacts& facts, const std::stop_token& stop);
  Error Serve(Session& session, const ServerFacts& facts, const std::stop_token& stop);
  Result<void> WaitForOffers(MutexLock& lock, std::chrono::milliseconds timeout, const std::stop_token& stop)
      REQUIRES(mutex_);
  void SetState(ToolServer::State state, std::string message);
  void Publish();
  void Keep(const McpOffer& offer);
  ToolFingerprint Fingerprint(const McpOffer& offer);
  ToolTraits Traits(const McpOffer& offer);
  ToolServer::Login LoginNow();

  const McpServerOptions options_;
  const Parts parts_;

  Mutex publish_mutex_;  // taken before mutex_
  bool stopped_ GUARDED_BY(publish_mutex_) = false;

  Mutex mutex_;
  std::condition_variable_any changed_;  // any of what follows
  ToolServer::State state_ GUARDED_BY(mutex_) = ToolServer::State::kConnecting;
  std::string message_ GUARDED_BY(mutex_);
  std::vector<McpOffer> offers_ GUARDED_BY(mutex_);
  std::string instructions_ GUARDED_BY(mutex_);          // of the server, as it last said
  std::shared_ptr<Session> session_ GUARDED_BY(mutex_);  // null: not ready
  bool given_up_ GUARDED_BY(mutex_) = false;
  std::string wants_login_ GUARDED_BY(mutex_);    // its words, if it has last refused for want of a log-in
  std::uint64_t changes_ GUARDED_BY(mutex_) = 0;  // how often the server has said that its tools have changed
  std::uint64_t listed_ GUARDED_BY(mutex_) = 0;   // changes_ when the list began that offers_ is
  bool session_ended_ GUARDED_BY(mutex_) = false;
  bool connects_again_ GUARDED_BY(mutex_) = false;
  // Until when the list may be taken to be what the server has; nullopt: until it says that it has changed.
  std::optional<Clock::time_point> fresh_until_ GUARDED_BY(mutex_);
  std::string launch_ GUARDED_BY(mutex_);

  Clock::time_point ready_since_;       // the thread's
  std::optional<ServerFolder> folder_;  // the thread's
  McpEra era_ = McpEra::kUnknown;       // the thread's: how the server wants to be spoken to, as it was last found
  std::string era_launch_;              // the thread's: launch_ when that was found
  // The thread's: era_ is from before this start, where the server said that it was of this version.
  std::optional<std::string> remembered_;
  bool greets_again_ = false;  // the thread's: the greeting failed for what was thought of the server
  std::jthread thread_;
};

}  // namespace reprise
