#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "reprise/approval.h"
#include "reprise/result.h"

// The server's side of the Model Context Protocol's JSON-RPC 2.0 (modelcontextprotocol.io). The protocol has two eras.
// Until 2025-11-25 a client greets the server and has a session. Since 2026-07-28 every request stands for itself, and
// says in "_meta" its version and its client's abilities.

namespace reprise::mcp_door {
inline constexpr std::string_view kStatelessVersion = "2026-07-28";
// Those with sessions, newest first.
inline constexpr std::array<std::string_view, 4> kSessionVersions = {"2025-11-25", "2025-06-18", "2025-03-26",
                                                                     "2024-11-05"};
bool IsSessionVersion(std::string_view version);

inline constexpr int kParseError = -32700, kInvalidRequest = -32600, kMethodNotFound = -32601, kInvalidParams = -32602,
                     kInternalError = -32603, kSessionError = -32000, kHeaderMismatch = -32020,
                     kUnsupportedVersion = -32022,
                     kResourceNotFound = -32002;  // with sessions; the newer era has kInvalidParams

struct RpcError {
  int code = kInternalError;
  std::string message;
  Json data = nullptr;
  int status = 200;  // of the HTTP response
};

struct RpcMessage {
  enum class Kind { kRequest, kNotification, kResponse };
  Kind kind = Kind::kRequest;
  Json id = nullptr;
  std::string method;
  Json params = Json::object();
  Json result = nullptr;              // of a response
  Json error = nullptr;               // of a response to a request that failed
  std::optional<RpcError> problem{};  // why the message cannot be handled

  const Json& meta() const { return MemberOf(params, "_meta"); }
};
RpcMessage ReadMessage(std::string_view body);

// Headers that repeat parts of the message, so that proxies need not read it.
struct MessageHead {
  std::optional<std::string> version, session, method, name;
};

// True if the message is of the era without sessions.
bool IsStateless(const RpcMessage& message, const MessageHead& head);
// Why such a request cannot be handled; nullopt if it can.
std::optional<RpcError> CheckStateless(const RpcMessage& message, const MessageHead& head);

// How a client can ask its user.
struct ClientAbilities {
  bool forms = false, urls = false;
};
ClientAbilities AbilitiesIn(const Json& capabilities);

// {"name","version"} of this server.
Json ServerInfo();
// This server's capabilities. Logging belongs to the older era.
Json ServerCapabilities(bool is_stateless);
// For the client's model.
std::string Instructions();

// Messages as JSON text. In the era without sessions a result contains its kind and its server.
std::string ResultMessage(const Json& id, Json result, bool is_stateless);
std::string ErrorMessage(const Json& id, const RpcError& error);
std::string NotificationMessage(const std::string& method, Json params);

// Questions to a person as MCP's elicitations: forms that the client shows, or an address that it opens.

// The params of elicitation/create for an event approval_required or input_required.
Json ApprovalForm(const event::ApprovalRequired& asked);
Json InputForm(const event::InputRequired& asked, bool can_open_urls);

// The answer in the client's result {"action", "content"}. Dismissing a question is no agreement: the call is rejected,
// or the question declined. kInvalidArgument if the answer cannot be used; the question stays open.
Result<ApprovalAnswer> ApprovalIn(const event::ApprovalRequired& asked, const Json& result);
Result<InputAnswer> InputIn(const event::InputRequired& asked, const Json& result);

}  // namespace reprise::mcp_door
