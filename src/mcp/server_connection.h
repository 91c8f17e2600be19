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

// Something that a server offers to a model: one of its tools, or a tool for its resources or prompts.
struct McpOffer {
  enum class Kind { kTool, kListResources, kReadResource, kListPrompts, kGetPrompt };
  Kind kind = Kind::kTool;
  McpToolDefinition definition;
  bool operator==(const McpOffer&) const = default;
};

// Keeps one configured server running and connected, on its own thread: connects, lists the server's offers, lists them
// again after changes, and restarts an ended server, with growing pauses; a command that keeps failing waits for a
// call. Calls that were under way then have failed and are not repeated. Thread-safe.
class ServerConnection : public std::enable_shared_from_this<ServerConnection> {
 public:
  using OnChange = std::function<void(ToolServer, std::vector<std::shared_ptr<Tool>>, UnlistedTool)>;
  struct Parts {  // all must outlive Stop
    Transport& transport;
    Consents& consents;
    OAuthCredentials& credentials;
    ServerEras& eras;
    std::string workspace;  // the root given to servers; commands neither run there nor come from there
    std::string folders;    // parent of the folder that a command starts in
    std::string client_version;
    OnChange on_change;  // called on several threads, never two calls at once
  };
  ServerConnection(McpServerOptions options, Parts parts);

  void Start();
  void RequestStop();
  // Returns when the server has ended and on_change will not be called any more.
  void Stop();

  const McpServerOptions& options() const { return options_; }
  // Waits until the server's offers are known, if it is being started or has announced a change of its tools. Then
  // on_change has been called. kUnavailable with the reason if they are not known in time.
  Result<void> AwaitOffers(std::chrono::milliseconds timeout, const std::stop_token& stop);
  // The session, if the server's current list has exactly this offer. Waits as above; kConflict if the list does not
  // have it.
  Result<std::shared_ptr<Session>> SessionFor(const McpOffer& offer, std::chrono::milliseconds timeout,
                                              const std::stop_token& stop);
  // Lists the offers again, because the list may be outdated.
  void ListAgain();
  // Connects again at once, after a log-in or a log-out.
  void ConnectAgain();
  // Stores the user's consent to this tool in its current form.
  void Approved(const McpOffer& offer);
  // The digest of the server's command or address at its last start; see LaunchDigest.
  std::string launch();

 private:
  using Clock = std::chrono::steady_clock;

  void Main(const std::stop_token& stop);
  Error ConnectAndServe(const std::stop_token& stop);
  bool Pause(std::chrono::seconds length, bool wants_login, const std::stop_token& stop);
  std::string TokenNow();   // empty: logged out
  bool IsToConnectAgain();  // true once after ConnectAgain
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
  ToolTraits Traits(const McpOffer& offer, ToolOrigin origin);
  ToolServer::Login LoginNow();

  const McpServerOptions options_;
  const Parts parts_;

  Mutex publish_mutex_;  // taken before mutex_
  bool stopped_ GUARDED_BY(publish_mutex_) = false;

  Mutex mutex_;
  std::condition_variable_any changed_;  // signals changes of the members below
  ToolServer::State state_ GUARDED_BY(mutex_) = ToolServer::State::kConnecting;
  std::string message_ GUARDED_BY(mutex_);
  std::vector<McpOffer> offers_ GUARDED_BY(mutex_);
  std::string instructions_ GUARDED_BY(mutex_);          // the server's latest
  std::string version_ GUARDED_BY(mutex_);               // its name and version, as it says
  std::string revision_ GUARDED_BY(mutex_);              // of the protocol
  std::shared_ptr<Session> session_ GUARDED_BY(mutex_);  // null: not ready
  bool given_up_ GUARDED_BY(mutex_) = false;
  bool waits_for_call_ GUARDED_BY(mutex_) = false;  // given up until somebody waits for its offers
  std::string wants_login_ GUARDED_BY(mutex_);      // the error's message, if the last one demands a log-in
  std::uint64_t changes_ GUARDED_BY(mutex_) = 0;    // how often the list had to be read again
  std::uint64_t listed_ GUARDED_BY(mutex_) = 0;     // changes_ at the start of the listing that filled offers_
  bool session_ended_ GUARDED_BY(mutex_) = false;
  bool connects_again_ GUARDED_BY(mutex_) = false;
  // When the list becomes stale; nullopt: only when the server announces a change.
  std::optional<Clock::time_point> fresh_until_ GUARDED_BY(mutex_);
  std::string launch_ GUARDED_BY(mutex_);

  // --- used by the thread only, and by Stop
  std::vector<std::shared_ptr<Session>> leaving_;  // ended ones that may still bring responses
  Clock::time_point ready_since_;
  bool has_worked_ = false;  // the last session
  std::optional<ServerFolder> folder_;
  McpEra era_ = McpEra::kUnknown;  // the server's era, as last detected
  std::string era_launch_;         // launch_ at that time
  // The server's version when its era was stored by an earlier process; nullopt: era_ is not from there.
  std::optional<std::string> remembered_;
  bool greets_again_ = false;  // the greeting failed because of a wrong era_
  std::jthread thread_;
};

}  // namespace reprise
