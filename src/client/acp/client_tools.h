#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/mutex.h"
#include "base/system.h"
#include "mcp/mcp_servers.h"
#include "mcp/server_launch.h"
#include "net/curl_transport.h"
#include "reprise/options.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise::acp {

// The MCP servers that a client names for a session. They run here, beside the client. The chat's server gets their
// tools (PUT /chats/{chat}/editor) and requests each call. For one thread, except Hear, which the MCP servers' threads
// call.
class ClientTools {
 public:
  // Reads "mcpServers" of session/new, load and resume. kInvalidArgument, with a message for people.
  static Result<std::vector<McpServerOptions>> Read(const Json& servers);

  // Starts the servers; `workspace` is their root. kUnavailable: there is no private folder for them.
  static Result<std::unique_ptr<ClientTools>> Start(const std::vector<McpServerOptions>& servers,
                                                    const std::string& workspace);
  // Ends the servers, which takes at most a second.
  ~ClientTools();

  // Readable when there is something to take.
  int descriptor() const { return wake_.get(); }
  // Call first when it is readable.
  void ClearWake();
  // Waits until each server has listed its tools or failed, but not longer than `limit`.
  void AwaitOffers(std::chrono::milliseconds limit);
  // The request body with the offered tools, if they have changed since the last call or `anyway` is true.
  std::optional<Json> TakeOffer(bool anyway);

  // Starts a call of the tool that was offered with these terms. TakeAnswer returns its answer later, with this id.
  void Call(const std::string& id, const std::string& tool, const std::string& terms, const Json& arguments);
  void Cancel(const std::string& id);
  void CancelAll();
  // The id of a call that has ended, and its answer's body.
  std::optional<std::pair<std::string, Json>> TakeAnswer();

 private:
  struct Source {
    ToolServer server;
    std::vector<std::shared_ptr<Tool>> tools;
    bool was_told_of = false;  // whether its failure was reported
  };
  ClientTools(std::size_t servers, ServerFolder folder, UniqueFd wake);
  void Hear(ToolServer server, std::vector<std::shared_ptr<Tool>> tools);
  void Wake();
  std::shared_ptr<Tool> Find(const std::string& name);

  const std::size_t servers_;
  const ServerFolder folder_;
  const UniqueFd wake_;  // an eventfd
  CurlTransport transport_;

  Mutex mutex_;
  Condition heard_;
  std::map<std::string, Source> sources_ GUARDED_BY(mutex_);  // by the server's name
  bool has_changed_ GUARDED_BY(mutex_) = false;
  std::deque<std::pair<std::string, Json>> answers_ GUARDED_BY(mutex_);

  std::unique_ptr<McpServers> mcp_servers_;
  std::map<std::string, std::jthread> calls_;  // last: they use the others
};

}  // namespace reprise::acp
