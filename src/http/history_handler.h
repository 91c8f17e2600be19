#pragma once

#include "http/message.h"

namespace reprise {

// GET /chats/{chat_id}: a chat's history or a page of it, written out while it is read.
Result<Outcome> GetHistory(Engine& engine, const Request& request);
// GET /chats/{chat_id}/export.
Result<Outcome> Export(Engine& engine, const Request& request);

}  // namespace reprise
