#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reprise/message.h"
#include "reprise/tool.h"

namespace reprise {

inline constexpr std::size_t kMaxEntities = 10;

// Working memory: what tool calls have named lately, so that "the page" or "that file" still means something when the
// results have been summed up.

// Adds what a call that succeeded was about and what it named: `path` and `url` arguments; of a JSON result the
// objects' ids, paths and addresses with their names; of a short text the words that look like ids ("page-123", UUIDs).
// The newest is last; what is named again becomes the newest; beyond kMaxEntities the oldest go. Only words that can be
// an id, a path or an address are taken (no blanks, nothing longer than a line), and names without control characters:
// they come from outside and are shown to the model.
void Remember(std::vector<Entity>& memory, const ToolCall& call, const ToolOutcome& outcome);

// What the calls among the first `end` messages have named, from their results as they stand there.
std::vector<Entity> NamedBefore(const Messages& messages, std::size_t end);

// One line per kind of entity, `page: page-123 "About us", page-4`; empty for no entities.
std::string DescribeMemory(const std::vector<Entity>& memory);

}  // namespace reprise
