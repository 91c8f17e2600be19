#pragma once

#include <memory>
#include <string_view>

#include "mcp/server_connection.h"
#include "reprise/tool.h"

namespace reprise {

// A tool that calls a server. `traits.needs_consent`: the first call that a person approves is the consent.
std::shared_ptr<Tool> MakeMcpTool(std::shared_ptr<ServerConnection> server, McpOffer offer, ToolTraits traits);

// A tool of a server that has not said yet what it offers, for a call that was shown before: it does nothing but wait
// (AwaitOffer) for the tool that turns out to have this name. Null if the name cannot be the server's.
std::shared_ptr<Tool> MakeUnlistedMcpTool(std::shared_ptr<ServerConnection> server, std::string_view name);

}  // namespace reprise
