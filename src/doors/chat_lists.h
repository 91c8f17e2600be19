#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/json.h"
#include "reprise/engine.h"

namespace reprise {

// A chat as lists of chats show it (chat_list_entry in schemas/chat_list.schema.json).
Json ChatBody(const ChatListEntry& entry);

// The chats, the newest first (schemas/chat_list.schema.json). `cursor`: "next" of the page before.
Result<Json> PageOfChats(Engine& engine, std::size_t limit, const std::optional<std::string>& cursor);

// Where a text was said (schemas/search_result.schema.json).
Result<Json> SearchResultOf(Engine& engine, const std::string& text, const std::optional<ChatId>& chat,
                            std::size_t limit);

}  // namespace reprise
