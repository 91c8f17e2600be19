#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// Files of the workspace that a person names in a message: GET /workspace/files finds them, and
// POST /chats/{chat}/workspace/files makes one a file of the chat.
void AddWorkspaceRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
