#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "mcp/server_connection.h"
#include "reprise/tool.h"

namespace reprise {

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
