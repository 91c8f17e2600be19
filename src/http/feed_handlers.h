#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/json.h"
#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// Where a text was said (schemas/search_result.schema.json).
Result<Json> SearchResultOf(Engine& engine, const std::string& text, const std::optional<ChatId>& chat,
                            std::size_t limit);

// GET /events, and what else concerns all chats together.
void AddFeedRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
