#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "engine/services.h"
#include "reprise/ids.h"
#include "reprise/tool.h"

namespace reprise {

// What an agent looks for in earlier turns.
struct RecallTask {
  ChatId chat;
  std::optional<InteractionId> last{};  // the turn before the agent's; nullopt: it is the first
  std::string workspace;                // of the chat
  std::string query;
  bool everywhere = false;  // also in the other chats of that folder
};

// Excerpts for the model, the best first, each with its chat, turn and event. Of the agent's chat only the turns that
// lead to it count, because an edit takes the others back. Ends after a few seconds at most, and when `stop` is
// requested.
ToolOutcome Recall(EngineServices& services, const RecallTask& task, const std::stop_token& stop);

}  // namespace reprise
