#pragma once

#include <memory>

#include "doors/conversations.h"
#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// OpenAI's interfaces (docs/openai.md): Chat Completions, Responses, models, audio.
void AddOpenAiRoutes(Router& router, const HandlerContext& context, std::shared_ptr<Conversations> conversations);

}  // namespace reprise
