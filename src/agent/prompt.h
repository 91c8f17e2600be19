#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"
#include "reprise/system_prompt.h"
#include "reprise/tool.h"

namespace reprise {

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
