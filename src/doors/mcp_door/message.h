#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

// What the Model Context Protocol says in JSON-RPC 2.0 (modelcontextprotocol.io), for the server's side. It has two
// eras: until 2025-11-25 a client greets the server and has a session; since 2026-07-28 every request stands for
// itself, and says in "_meta" which version it is of and what its client can do.
namespace reprise::mcp_door {

inline constexpr std::string_view kStatelessVersion = "2026-07-28";
// With sessions; the newest first.
inline constexpr std::array<std::string_view, 4> kSessionVersions = {"2025-11-25", "2025-06-18", "2025-03-26",
                                                                     "2024-11-05"};
bool IsSessionVersion(std::string_view version);

inline constexpr int kParseError = -32700, kInvalidRequest = -32600, kMethodNotFound = -32601, kInvalidParams = -32602,
                     kInternalError = -32603, kSessionError = -32000, kHeaderMismatch = -32020,
                     kUnsupportedVersion = -32022,
                     kResourceNotFound = -32002;  // with sessions; kInvalidParams since

struct RpcError {
  int code = kInternalError;
  std::string message;
  Json data = nullptr;
  int status = 200;  // of the HTTP response that tells it
};

struct RpcMessage {
  enum class Kind { kRequest, kNotification, kResponse };
  Kind kind = Kind::kRequest;
  Json id = nullptr;
  std::string method;
  Json params = Json::object();
  Json result = nullptr;              // of a response
  Json error = nullptr;               // of a response that says that the request has failed
  std::optional<RpcError> problem{};  // it is no message that can be followed

  const Json& meta() const { return MemberOf(params, "_meta"); }
};
RpcMessage ReadMessage(std::string_view body);

// What the head of an HTTP request repeats of the message, so that whoever passes it on need not read it.
struct MessageHead {
  std::optional<std::string> version, session, method, name;
};

// The message is of the era without sessions.
bool IsStateless(const RpcMessage& message, const MessageHead& head);
// Why such a request cannot be followed; nullopt: it can.
std::optional<RpcError> CheckStateless(const RpcMessage& message, const MessageHead& head);

// What a client can be asked.
struct ClientAbilities {
  bool forms = false, urls = false;
};
ClientAbilities AbilitiesIn(const Json& capabilities);

// {"name","version"} of this server.
Json ServerInfo();
// What it can do. Logging is of the older era.
Json ServerCapabilities(bool is_stateless);
// For the model of the client.
std::string Instructions();

// Messages as JSON text. A result of the era without sessions says its kind and its server.
std::string ResultMessage(const Json& id, Json result, bool is_stateless);
std::string ErrorMessage(const Json& id, const RpcError& error);
std::string NotificationMessage(const std::string& method, Json params);

}  // namespace reprise::mcp_door
