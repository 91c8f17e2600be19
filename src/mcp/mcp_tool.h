#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "mcp/server_connection.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

// A server's results (Model Context Protocol 2026-07-28, "Tools", "Resources", "Prompts") as text for a model. Images,
// recordings and other files from a tool or a resource become the outcome's files; elsewhere they are only described.
// If a tool's structured content is {"requires_confirmation": true, "message": TEXT}, the user must agree first.
// Whether a result says that its tool has failed: `isError` is there and neither false nor null, 0, "" or "false".
bool SaysError(const Json& result);
ToolOutcome ToolResultText(const Json& result);
ToolOutcome ResourceOutcome(const Json& result);
std::string PromptText(const Json& result);
// A text of more than 128 KiB becomes its beginning and its end, and what `keep` (ToolContext::keep_output) says of the
// whole.
std::string Shortened(std::string text, const std::function<std::unique_ptr<OutputKeeper>()>& keep);

// The params of elicitation/create (Model Context Protocol 2025-11-25, "Elicitation"), in form or URL mode.
// kInvalidArgument if they are neither.
Result<ToolQuestion> ParseQuestion(const Json& params);

// The result for the server. An accepted answer gets the schema's defaults for missing fields and loses fields that the
// schema does not name; without a required field it becomes a "cancel".
Json AnswerToJson(const ToolQuestion& question, const ToolAnswer& answer);

// A model's name for a server's tool: "files__read_file". It matches ^[a-zA-Z0-9_-]{1,64}$, as providers demand,
// depends only on the two names, and differs for different ones: a name that had to be changed or is ambiguous ends in
// a piece of a digest.
std::string McpToolName(std::string_view server, std::string_view tool);

// A tool that calls a server. `traits.needs_consent`: the first call that a person approves becomes the consent.
std::shared_ptr<Tool> MakeMcpTool(std::shared_ptr<ServerConnection> server, McpOffer offer, ToolTraits traits);

// Stands for a tool of a server whose list is not known yet, for a call that was shown before. It can only wait for the
// real tool of this name (AwaitOffer). Null if the name cannot belong to the server.
std::shared_ptr<Tool> MakeUnlistedMcpTool(std::shared_ptr<ServerConnection> server, std::string_view name);

}  // namespace reprise
