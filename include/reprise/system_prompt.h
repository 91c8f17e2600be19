#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// A part of the system prompt. Each request replaces {{date}} (today, UTC), {{tools}} (names of the tools),
// {{workspace}}, {{environment}} (where tools work and what commands may do), {{git}} (the state of its work tree when
// the conversation began) and {{memory}} (entities that tools named lately) in its text.
struct PromptModule {
  std::string name;       // "10-rules"; modules are sorted by name
  std::string text;       // valid UTF-8
  bool is_plain = false;  // no placeholders are replaced
  bool operator==(const PromptModule&) const = default;
};

// The modules of the project's instructions (AGENTS.md) and of the list of skills.
inline constexpr std::string_view kProjectModule = "70-project", kSkillsModule = "72-skills";
// Those of the words of MCP servers begin with this, followed by the server's name.
inline constexpr std::string_view kServerModule = "74-mcp-";

// Text before the conversation. No modules: none.
struct SystemPrompt {
  std::vector<PromptModule> modules{};
  std::string workspace{};    // replaces {{workspace}}
  std::string environment{};  // replaces {{environment}}
  std::string git{};          // replaces {{git}}
  // Makes `git` for a run of this chat, quickly: the same text for all of a conversation, or each turn would lose what
  // the provider has cached of it. Null: there is none.
  std::function<std::string(std::string_view chat)> git_of{};
  std::string instructions{};  // of the client, for this run; verbatim, after the modules
};

// Called at the start of each run, on its thread; null: no system prompt.
using PromptSource = std::function<SystemPrompt()>;

}  // namespace reprise
