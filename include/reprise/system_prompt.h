#pragma once

#include <functional>
#include <string>
#include <vector>

namespace reprise {

// A part of the system prompt. In its text {{date}} (today, UTC), {{tools}} (the tools' names), {{workspace}} and
// {{memory}} (what tools have named lately) stand for what they are when a request is made.
struct PromptModule {
  std::string name;       // "10-rules"; modules stand in the order of their names
  std::string text;       // valid UTF-8
  bool is_plain = false;  // as it is: nothing in it stands for anything
  bool operator==(const PromptModule&) const = default;
};

// What a model is told before the conversation. No modules: nothing.
struct SystemPrompt {
  std::vector<PromptModule> modules{};
  std::string workspace{};     // for {{workspace}}
  std::string instructions{};  // of the client, for this run; as they are, behind the modules
};

// Asked at the beginning of each run, by its thread; null: there is no system prompt.
using PromptSource = std::function<SystemPrompt()>;

}  // namespace reprise
