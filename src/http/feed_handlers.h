#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// GET /events, and what else concerns all chats together.
void AddFeedRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
