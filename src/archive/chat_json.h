#pragma once

#include "base/json.h"
#include "reprise/interaction.h"

namespace reprise {

// A chat with its interactions, as GET /chats/{chat_id}?branches=all shows it.
Json ChatToJson(const Chat& chat, bool all_branches);

}  // namespace reprise
