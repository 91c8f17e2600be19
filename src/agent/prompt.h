#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/message.h"
#include "reprise/result.h"
#include "reprise/system_prompt.h"
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

// The modules that stand where a user has none of that name. Short, and the same all day: providers keep what requests
// begin with in a cache.
std::vector<PromptModule> DefaultPromptModules();

// kInvalidArgument if `text` has a {{placeholder}} that is not one of ours; the message names it.
Result<void> CheckPromptModule(std::string_view text);

struct PromptValues {
  std::string date;                                 // "2026-11-21"
  std::string memory;                               // DescribeMemory
  std::size_t max_plain_bytes = std::string::npos;  // of a module that is plain; it is cut, and says so
};

// The text of a request's system prompt: the modules with a blank line between them, white space around them removed.
// Left out are empty ones, and those whose placeholders all stand for nothing. What is put in is not looked at again.
std::string ComposePrompt(const SystemPrompt& prompt, const std::vector<ToolSpec>& tools, const PromptValues& values);

}  // namespace reprise
