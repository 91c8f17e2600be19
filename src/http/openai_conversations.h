#pragma once

#include <memory>

#include "doors/openai/request_notes.h"
#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// OpenAI's Conversations (docs/openai.md): chats by that interface, and the items that responses are made of.
void AddConversationRoutes(Router& router, const HandlerContext& context, std::shared_ptr<RequestNotes> notes);

}  // namespace reprise
