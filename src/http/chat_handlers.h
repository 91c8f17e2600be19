#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// Listing, creating, reading, renaming and deleting chats, and switching their branch.
void AddChatRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
