#pragma once

#include <string>

#include "reprise/interaction.h"

namespace reprise {

// {"messages":[...]} on one line, as other programs read conversations: each message as it goes over the wire of
// OpenAI's interface, without what a provider has added for itself.
std::string ConversationLine(const AgentState& state);

}  // namespace reprise
