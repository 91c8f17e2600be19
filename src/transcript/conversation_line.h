#pragma once

#include <string>

#include "reprise/interaction.h"

namespace reprise {

// {"messages":[...]} on one line, the form in which other programs read conversations: each message as on the wire of
// OpenAI's interface, without provider extras.
std::string ConversationLine(const AgentState& state);

}  // namespace reprise
