#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/json.h"
#include "reprise/engine.h"

namespace reprise {

// A chat as lists show it (chat_list_entry in schemas/chat_list.schema.json).
Json ChatBody(const ChatListEntry& entry);

// A page of the chats, newest first (schemas/chat_list.schema.json). `cursor` is "next" of the page before.
Result<Json> PageOfChats(Engine& engine, std::size_t limit, const std::optional<std::string>& cursor);

// The places where a text occurs (schemas/search_result.schema.json).
Result<Json> SearchResultOf(Engine& engine, const std::string& text, const std::optional<ChatId>& chat,
                            std::size_t limit);

}  // namespace reprise
