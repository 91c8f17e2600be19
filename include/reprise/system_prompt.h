#pragma once

#include <functional>
#include <string>
#include <vector>

namespace reprise {

// A part of the system prompt. Each request replaces {{date}} (today, UTC), {{tools}} (names of the tools),
// {{workspace}} and {{memory}} (entities that tools named lately) in its text.
struct PromptModule {
  std::string name;       // "10-rules"; modules are sorted by name
  std::string text;       // valid UTF-8
  bool is_plain = false;  // no placeholders are replaced
  bool operator==(const PromptModule&) const = default;
};

// Text before the conversation. No modules: none.
struct SystemPrompt {
  std::vector<PromptModule> modules{};
  std::string workspace{};     // replaces {{workspace}}
  std::string instructions{};  // of the client, for this run; verbatim, after the modules
};

// Called at the start of each run, on its thread; null: no system prompt.
using PromptSource = std::function<SystemPrompt()>;

}  // namespace reprise
