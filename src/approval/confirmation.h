#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/message.h"

// Confirmation within the conversation: a tool may answer that the user must agree first (ToolOutcome,
// requires_confirmation). The model asks, the user says something, and the same call with `"confirmed": true` among its
// arguments is let through, once. Follows from the messages alone, so whatever restores them restores it.
namespace reprise {

// What such a tool's answer ends with.
inline constexpr std::string_view kConfirmationNote =
    "\n(This needs the user's confirmation. Ask the user. Only if they agree, make the same call again in your next "
    "turn, with \"confirmed\": true added to its arguments.)";

// Why `call`, of the last message that calls tools, must not run: it claims a confirmation that was not asked for
// before the user last spoke, or was used already. For the model; nullopt: it claims none, or rightly.
std::optional<std::string> FalseConfirmation(const Messages& messages, const ToolCall& call);

}  // namespace reprise
