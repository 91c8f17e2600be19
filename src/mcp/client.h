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

// The operations of the Model Context Protocol over a session: of revision 2026-07-28, which has requests that stand
// for themselves (here: stateless), and of 2025-11-25 and older ones back to 2024-11-05, which begin with a handshake.
// Each may fail as Session::Request does, and with reason "mcp_protocol" if the answer is not what it must be.
namespace reprise {

inline constexpr std::size_t kMaxMcpTools = 256;  // of one server; more are left out

// How a server wants to be spoken to. It is found out once and remembered.
enum class McpEra { kUnknown, kHandshake, kStateless };

struct ServerFacts {
  std::string name, version, protocol;
  McpEra era = McpEra::kHandshake;
  std::string instructions;  // how its tools are to be used, in its own words
  bool tools = false, resources = false, prompts = false;
  bool tool_changes = false;  // it says when its tools change
};

struct McpToolDefinition {
  std::string name;  // the server's own
  std::string description;
  std::string input_schema;  // JSON text of an object schema
  std::string other;         // JSON text of what else the server says: title, annotations, outputSchema
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

// Finds out how the server wants to be spoken to, if `known` does not say, and greets it so; once, before anything
// else. `options.timeout` is for all of it. A server that ends the connection at a request that it does not know has
// reason kMcpProbeRefused: connect again, with McpEra::kHandshake.
Result<ServerFacts> Greet(Session& session, const std::string& client_version, McpEra known,
                          const RequestOptions& options);

// The handshake of 2025-11-25 and before: agrees on a version and on capabilities.
Result<ServerFacts> Initialize(Session& session, const std::string& client_version, const RequestOptions& options);
// From now on SessionHooks::on_tools_changed is called when the server's tools change, if it says so at all.
void WatchTools(Session& session, const ServerFacts& facts);

// For how long a list may be taken to be what the server has; from when it came. Zero: the server does not say.
struct McpFreshness {
  std::chrono::milliseconds for_at_least{0};
};

// All pages; those that have come where they do not end, or a later one cannot be had. What cannot be offered to a
// model (no name, a schema of no object, parameters that would have to go into impossible headers) is left out.
Result<std::vector<McpToolDefinition>> ListTools(Session& session, const RequestOptions& options,
                                                 McpFreshness* freshness = nullptr);
// `arguments` is JSON object text. An error of the tool is an outcome. What the server asks before it goes on is asked
// (`options.ask`; declined if nobody can be), and the call is repeated with the answers. `options.header_parameters`
// are the tool's. A server of 2025-11-25 that wants URLs opened first is called again when the user has agreed to each;
// if not, the error names them (reason kMcpUrlsRequired).
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
