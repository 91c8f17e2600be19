#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// What people have written down for agents that work in the workspace: which files there are, and allowing one.
void AddInstructionRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
