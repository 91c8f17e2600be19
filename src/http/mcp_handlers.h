#pragma once

#include <memory>

#include "doors/conversations.h"
#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// The server's side of the Model Context Protocol (docs/mcp-server.md): /mcp.
void AddMcpRoutes(Router& router, const HandlerContext& context, std::shared_ptr<Conversations> conversations);

}  // namespace reprise
