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

// Working memory: the entities that recent tool calls have named, so that "the page" or "that file" still has a meaning
// when the results have been summed up.

// Adds the entities of a successful call: `path` and `url` arguments; from a JSON result the objects' ids, paths and
// URLs with their names; from a short text the words that look like ids ("page-123", UUIDs). The newest is last; an
// entity that is named again becomes the newest; beyond kMaxEntities the oldest are dropped. Accepts only words that
// can be an id, a path or a URL (no spaces, limited length), and names without control characters, because they are
// untrusted and shown to the model.
void Remember(std::vector<Entity>& memory, const ToolCall& call, const ToolOutcome& outcome);

// The entities that the calls among the first `end` messages have named, according to their results there.
std::vector<Entity> NamedBefore(const Messages& messages, std::size_t end);

// One line per kind of entity, `page: page-123 "About us", page-4`; empty for no entities.
std::string DescribeMemory(const std::vector<Entity>& memory);

// The built-in modules, for names that the user has not defined. Short, and constant all day, because providers cache
// the beginning of requests.
std::vector<PromptModule> DefaultPromptModules();

// kInvalidArgument if `text` has an unknown {{placeholder}}; the message names it.
Result<void> CheckPromptModule(std::string_view text);

struct PromptValues {
  std::string date;                                 // "2026-11-21"
  std::string memory;                               // DescribeMemory
  std::size_t max_plain_bytes = std::string::npos;  // of all plain modules together; cut text gets a note
};

// Adds the module at its place, unless the prompt has one of this name.
void AddModule(SystemPrompt& prompt, PromptModule module);

// What the client's instructions and a hook's text are called among the modules.
inline constexpr std::string_view kRequestPart = "request", kHookPart = "hook";

// The modules as a request's system prompt has them: trimmed, and without empty ones and those whose placeholders are
// all empty. Placeholders in inserted values are not replaced. The client's instructions come last, as kRequestPart.
std::vector<PromptModule> ComposedModules(const SystemPrompt& prompt, const std::vector<ToolSpec>& tools,
                                          const PromptValues& values);
// The system prompt: these texts, separated by blank lines.
std::string JoinModules(const std::vector<PromptModule>& composed);

}  // namespace reprise
