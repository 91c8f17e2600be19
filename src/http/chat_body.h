#pragma once

#include "base/json.h"
#include "reprise/engine.h"

namespace reprise {

// A chat as lists of chats show it (chat_list_entry in schemas/chat_list.schema.json).
Json ChatBody(const ChatListEntry& entry);

}  // namespace reprise
