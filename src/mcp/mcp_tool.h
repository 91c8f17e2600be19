#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "mcp/server_connection.h"
#include "reprise/tool.h"

namespace reprise {

// The name under which a model knows a server's tool: "files__read_file". It matches ^[a-zA-Z0-9_-]{1,64}$, as
// providers demand, depends on nothing but the two names, and differs for different ones: a name that had to be changed
// or could be read in two ways ends in a piece of a digest.
std::string McpToolName(std::string_view server, std::string_view tool);

// A tool that calls a server. `traits.needs_consent`: the first call that a person approves is the consent.
std::shared_ptr<Tool> MakeMcpTool(std::shared_ptr<ServerConnection> server, McpOffer offer, ToolTraits traits);

// A tool of a server that has not said yet what it offers, for a call that was shown before: it does nothing but wait
// (AwaitOffer) for the tool that turns out to have this name. Null if the name cannot be the server's.
std::shared_ptr<Tool> MakeUnlistedMcpTool(std::shared_ptr<ServerConnection> server, std::string_view name);

}  // namespace reprise
