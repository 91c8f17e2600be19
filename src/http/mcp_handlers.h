#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// The server's side of the Model Context Protocol (docs/mcp-server.md): /mcp.
void AddMcpRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
