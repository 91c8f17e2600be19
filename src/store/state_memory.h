#pragma once

#include <cstddef>

#include "reprise/message.h"

namespace reprise {

// What the state takes, about: its objects and the texts in them.
std::size_t MemoryOf(const AgentState& state);

}  // namespace reprise
