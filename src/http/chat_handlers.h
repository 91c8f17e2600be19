#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/json.h"
#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// The chats, the newest first (schemas/chat_list.schema.json). `cursor`: "next" of the page before.
Result<Json> PageOfChats(Engine& engine, std::size_t limit, const std::optional<std::string>& cursor);

// Listing, creating, reading, renaming and deleting chats, and switching their branch.
void AddChatRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
