#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/interaction.h"
#include "reprise/system_prompt.h"

// The modules of a recorded system prompt, and those of today with any values, to be compared one by one.
namespace reprise {

// A module as an agent writes it, with marks in place of its placeholders' values.
struct ModulePattern {
  std::string name, text;
  bool has_values = false;       // placeholders
  bool may_be_left_out = false;  // if its values are empty
};

// What is known of values of placeholders.
struct PromptFacts {
  std::string workspace, environment, git;  // of today
  std::string workspace_then{};             // of the recorded turn; empty: not known
};

// `max_plain_bytes`: PromptValues::max_plain_bytes.
std::vector<ModulePattern> PatternsOf(SystemPrompt prompt, std::size_t max_plain_bytes);
// Whether the text of a pattern has become `text` with some values: those that placeholders have, whose form is known.
// Without `facts` any text counts as a value.
bool IsFilled(std::string_view text, std::string_view pattern, const PromptFacts* facts);

// The modules of a system prompt with their texts; nullopt if they do not add up to it.
std::optional<std::vector<PromptModule>> SplitPrompt(std::string_view system, const std::vector<ToldModule>& modules);

// The text of instructions or skills without the folders of their files, which depend on the machine: lines such as
// "From FILE:" and "- NAME (FILE): ...".
std::string WithoutFolders(const std::string& text);

}  // namespace reprise
