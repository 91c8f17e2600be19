#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/header_parameters.h"
#include "mcp/session.h"
#include "reprise/result.h"
#include "reprise/tool.h"

// The operations of the Model Context Protocol over a session: of revision 2026-07-28, whose requests need no session
// (here: stateless), and of revisions 2024-11-05 to 2025-11-25, which begin with a handshake. Each may fail as
// Session::Request does, and with reason "mcp_protocol" if the answer has another form than the protocol demands.
namespace reprise {

inline constexpr std::size_t kMaxMcpTools = 256;  // per server; further ones are left out

// The kind of protocol that a server speaks. It is detected once and remembered.
enum class McpEra { kUnknown, kHandshake, kStateless };

struct ServerFacts {
  std::string name, version, protocol;
  McpEra era = McpEra::kHandshake;
  std::string instructions;  // the server's own text on how to use its tools
  bool tools = false, resources = false, prompts = false;
  bool tool_changes = false;  // it sends a notification when its tools change
};

struct McpToolDefinition {
  std::string name;  // the server's own
  std::string description;
  std::string input_schema;  // JSON text of an object schema
  std::string other;         // JSON text of the other members: title, annotations, outputSchema
  bool read_only_hint = false, idempotent_hint = false;
  bool destructive_hint = true;
  bool as_task = false;  // must be called as a task
  std::vector<McpHeaderParameter> header_parameters{};
  bool operator==(const McpToolDefinition&) const = default;
};

struct McpResource {
  std::string uri;  // or a template of URIs (RFC 6570)
  std::string name, description, type;
};

struct McpPrompt {
  std::string name, description;
  std::vector<std::pair<std::string, bool>> arguments;  // name, required
};

// Detects the server's era unless `known` gives it, and greets the server accordingly. Call once, before any other
// request. `options.timeout` limits the whole. Reason::kMcpProbeRefused: the server ended the connection because it
// does not know the request, so connect again with McpEra::kHandshake.
Result<ServerFacts> Greet(Session& session, const std::string& client_version, McpEra known,
                          const RequestOptions& options);

// The handshake of 2025-11-25 and older revisions: agrees on a version and on capabilities.
Result<ServerFacts> Initialize(Session& session, const std::string& client_version, const RequestOptions& options);
// Subscribes to changes of the server's tools, if the server offers that and does not send them anyway. Each calls
// SessionHooks::on_tools_changed.
void WatchTools(Session& session, const ServerFacts& facts);

// How long a list stays valid after its arrival. Zero: the server does not say.
struct McpFreshness {
  std::chrono::milliseconds for_at_least{0};
};

// Reads all pages; if a later page fails or the pages do not end, returns the tools received so far. Leaves out tools
// that cannot be offered to a model (no name, a schema of no object, parameters for impossible headers).
Result<std::vector<McpToolDefinition>> ListTools(Session& session, const RequestOptions& options,
                                                 McpFreshness* freshness = nullptr);
// `arguments` is JSON object text. An error of the tool is an outcome. If the server asks questions first, they go to
// `options.ask` (declined if that is empty), and the call is repeated with the answers. `options.header_parameters` are
// the tool's. If a server of 2025-11-25 wants URLs opened first, the call is repeated when the user has agreed to each;
// if the user does not, the error names them (Reason::kMcpUrlsRequired).
Result<ToolOutcome> CallTool(Session& session, const std::string& name, std::string_view arguments,
                             const RequestOptions& options);
// The same for a tool that must be called as a task: starts it and waits for its result.
Result<ToolOutcome> CallToolAsTask(Session& session, const std::string& name, std::string_view arguments,
                                   const RequestOptions& options);

Result<std::vector<McpResource>> ListResources(Session& session, const RequestOptions& options);
Result<std::vector<McpResource>> ListResourceTemplates(Session& session, const RequestOptions& options);
Result<ToolOutcome> ReadResource(Session& session, const std::string& uri, const RequestOptions& options);

Result<std::vector<McpPrompt>> ListPrompts(Session& session, const RequestOptions& options);
// `arguments` is JSON object text with string members.
Result<std::string> GetPrompt(Session& session, const std::string& name, std::string_view arguments,
                              const RequestOptions& options);

}  // namespace reprise
