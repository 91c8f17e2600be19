#pragma once

#include <string>

#include "reprise/event.h"

namespace reprise {

// The data line of an event: one line of JSON, "type", "seq", "round_index" and (but for deltas) "at" first. The same
// bytes for the same event, live and from a file.
std::string EventData(const AgentEvent& event);

}  // namespace reprise
