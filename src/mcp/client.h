#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/session.h"
#include "reprise/result.h"
#include "reprise/tool.h"

// The operations of the Model Context Protocol (2025-11-25; older versions back to 2024-11-05 are agreed to) over a
// session. Each may fail as Session::Request does, and with reason "mcp_protocol" if the answer is not what it must be.
namespace reprise {

inline constexpr std::size_t kMaxMcpTools = 256;  // of one server; more are left out

struct ServerFacts {
  std::string name, version, protocol;
  bool tools = false, resources = false, resource_subscriptions = false, prompts = false, logging = false;
};

struct McpToolDefinition {
  std::string name;  // the server's own
  std::string description;
  std::string input_schema;  // JSON text of an object schema
  std::string other;         // JSON text of what else the server says: title, annotations, outputSchema
  bool read_only_hint = false, idempotent_hint = false;
  bool destructive_hint = true;
  bool as_task = false;  // must be called as a task
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

// Agrees on a version and on capabilities; once, before anything else.
Result<ServerFacts> Initialize(Session& session, const std::string& client_version, const RequestOptions& options);

// All pages. What cannot be offered to a model (no name, no schema of an object) is left out.
Result<std::vector<McpToolDefinition>> ListTools(Session& session, const RequestOptions& options);
// `arguments` is JSON object text. An error of the tool is an outcome. A server that wants URLs opened first is called
// again when the user has agreed to each (`options.ask`); if not, the error names them (reason kMcpUrlsRequired).
Result<ToolOutcome> CallTool(Session& session, const std::string& name, std::string_view arguments,
                             const RequestOptions& options);
// The same for a tool that must be called as a task: starts it and waits for its result.
Result<ToolOutcome> CallToolAsTask(Session& session, const std::string& name, std::string_view arguments,
                                   const RequestOptions& options);

Result<std::vector<McpResource>> ListResources(Session& session, const RequestOptions& options);
Result<std::vector<McpResource>> ListResourceTemplates(Session& session, const RequestOptions& options);
Result<std::string> ReadResource(Session& session, const std::string& uri, const RequestOptions& options);
// From now on SessionHooks::on_resource_updated is called when the resource changes.
Result<void> SubscribeResource(Session& session, const std::string& uri, const RequestOptions& options);
Result<void> UnsubscribeResource(Session& session, const std::string& uri, const RequestOptions& options);

Result<std::vector<McpPrompt>> ListPrompts(Session& session, const RequestOptions& options);
// `arguments` is JSON object text with string members.
Result<std::string> GetPrompt(Session& session, const std::string& name, std::string_view arguments,
                              const RequestOptions& options);

// "debug", "info", "notice", "warning", "error", ...
Result<void> SetServerLogLevel(Session& session, const std::string& level, const RequestOptions& options);
Result<void> Ping(Session& session, const RequestOptions& options);

}  // namespace reprise
