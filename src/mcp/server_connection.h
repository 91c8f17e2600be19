#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "mcp/client.h"
#include "mcp/consents.h"
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
    std::string workspace;  // where commands run, and the root that servers are told of
    std::string client_version;
    OnChange on_change;  // called by several threads, never two calls at once
  };
  ServerConnection(McpServerOptions options, Parts parts);

  void Start();
  void RequestStop();
  // Returns when the server is gone and nothing calls on_change any more.
  void Stop();

  const McpServerOptions& options() const { return options_; }
  // The session; if the server is just being started (again), waits for it. kUnavailable with the reason if it is not
  // there in time.
  Result<std::shared_ptr<Session>> Connected(std::chrono::milliseconds timeout, const std::stop_token& stop);
  // The tool that a model knows by this name, as the server offers it now; null if it does not, or if it is another one
  // than was approved.
  std::shared_ptr<Tool> UnchangedTool(std::string_view name);
  // A person has agreed to this tool as it is.
  void Approved(const McpOffer& offer);

 private:
  using Clock = std::chrono::steady_clock;

  void Main(const std::stop_token& stop);
  Error ConnectAndServe(const std::stop_token& stop);
  Result<std::vector<McpOffer>> ListOffers(Session& session, const ServerFacts& facts, const std::stop_token& stop);
  Error Serve(Session& session, const ServerFacts& facts, const std::stop_token& stop);
  void SetState(ToolServer::State state, std::string message);
  void Publish();
  void Keep(const McpOffer& offer);
  ToolFingerprint Fingerprint(const McpOffer& offer) const;
  ToolTraits Traits(const McpOffer& offer) const;

  const McpServerOptions options_;
  const Parts parts_;
  const std::string launch_digest_;

  std::mutex publish_mutex_;  // taken before mutex_
  bool stopped_ = false;

  std::mutex mutex_;
  std::condition_variable_any changed_;  // any of what follows; guarded by mutex_
  ToolServer::State state_ = ToolServer::State::kConnecting;
  std::string message_;
  std::vector<McpOffer> offers_;
  std::shared_ptr<Session> session_;  // null: not ready
  bool given_up_ = false;
  bool tools_changed_ = false;
  bool session_ended_ = false;

  Clock::time_point ready_since_;  // the thread's
  std::jthread thread_;
};

}  // namespace reprise
