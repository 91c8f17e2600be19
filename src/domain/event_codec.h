#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "reprise/event.h"

namespace reprise {

// The data line of an event: one line of JSON, "type", "seq", "round_index" and (but for deltas) "at" first. The same
// bytes for the same event, live and from a file.
std::string EventData(const AgentEvent& event);

// Any event, as a server sends or lists it, perhaps without a number. nullopt: this program does not know its type (a
// newer server's), or it lacks a member of its type.
std::optional<AgentEvent> ReceivedEvent(const Json& json);

}  // namespace reprise
