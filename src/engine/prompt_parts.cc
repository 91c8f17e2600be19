#include "engine/prompt_parts.h"

#include <re2/re2.h>

#include <algorithm>
#include <utility>

#include "agent/prompt.h"
#include "base/text.h"

namespace reprise {
namespace {

constexpr std::string_view kBlankLine = "\n\n";

// What stands in a pattern for a value.
constexpr char kDate = 1, kTools = 2, kWorkspace = 3, kEnvironment = 4, kGit = 5, kMemory = 6;
constexpr std::string_view kMarks = "\x01\x02\x03\x04\x05\x06";
std::string MarkOf(char kind) { return std::string(1, kind); }

// Whether the text can be such a value, as agent/prompt, app/git_state and tools/tool_catalog write it. Words beside a
// placeholder are none, or a rule that is gone from a module could pass for a part of its value.
bool IsValue(char kind, std::string_view text, const PromptFacts& facts) {
  static const RE2 kDateForm(R"(\d{4}-\d\d-\d\d)"), kToolsForm(R"([^\s,]+(?:, [^\s,]+)*)"), kPathForm(R"(/[^\n]*)"),
      kEnvironmentForm(R"(Tools work in the folder [^\n]+ on (?:[^\n.]|\.[^\n ])+\.)"
                       R"((?: run_shell is /bin/sh, (?:without a sandbox: as the user\.|in a sandbox unless its )"
                       R"(result says otherwise: commands write only in that folder and in /tmp, see the system but )"
                       R"(not the user's home, and have no network\.))?)"),
      kGitForm(R"((?:no branch, at commit [0-9a-f]+|a branch|branch [^\s;]+(?: at commit [0-9a-f]+|)"
               R"(, without a commit yet))(?:; a [a-z-]+ is in progress)?)"
               R"((?:; (?:at least )?(?:no|\d+) tracked files? changed and not staged(?:, merge conflicts)?)?\.)"),
      kMemoryForm(R"(\w+: [^\s"]+(?: "[^"\n]*")?(?:, [^\s"]+(?: "[^"\n]*")?)*)"
                  R"((?:\n\w+: [^\s"]+(?: "[^"\n]*")?(?:, [^\s"]+(?: "[^"\n]*")?)*)*)");
  if (text.empty() && kind != kDate) return true;
  const auto fits = [&](const RE2& form) { return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), form); };
  switch (kind) {
    case kDate:
      return fits(kDateForm);
    case kTools:
      return fits(kToolsForm);
    case kWorkspace:
      return text == facts.workspace || (facts.workspace_then.empty() ? fits(kPathForm) : text == facts.workspace_then);
    case kEnvironment:
      return text == facts.environment || fits(kEnvironmentForm);
    case kGit:
      return text == facts.git || fits(kGitForm);
    default:
      return fits(kMemoryForm);
  }
}

// Whether `text` is `pattern` with some values; `facts`: with such values. `steps` bounds the work on foreign texts.
bool Matches(std::string_view text, std::string_view pattern, const PromptFacts* facts, std::size_t& steps) {
  const std::size_t mark = pattern.find_first_of(kMarks);
  if (mark == pattern.npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, mark))) return false;
  const char kind = pattern[mark];
  text.remove_prefix(mark);
  pattern.remove_prefix(mark + 1);
  const std::string_view next = pattern.substr(0, pattern.find_first_of(kMarks));
  if (next.size() == pattern.size()) {
    return text.ends_with(next) &&
           (facts == nullptr || IsValue(kind, text.substr(0, text.size() - next.size()), *facts));
  }
  for (std::size_t at = text.find(next); at != text.npos && steps > 0; at = text.find(next, at + 1)) {
    --steps;
    if (facts != nullptr && !IsValue(kind, text.substr(0, at), *facts)) continue;
    if (Matches(text.substr(at), pattern, facts, steps)) return true;
  }
  return false;
}

}  // namespace

std::vector<ModulePattern> PatternsOf(SystemPrompt prompt, std::size_t max_plain_bytes) {
  PromptValues values{.date = MarkOf(kDate), .memory = {}, .max_plain_bytes = max_plain_bytes};
  prompt.workspace = MarkOf(kWorkspace);
  prompt.environment = prompt.git = "";
  const auto certain = ComposedModules(prompt, {}, values);
  prompt.environment = MarkOf(kEnvironment);
  prompt.git = MarkOf(kGit);
  values.memory = MarkOf(kMemory);
  std::vector<ModulePattern> patterns;
  for (PromptModule& module : ComposedModules(prompt, {ToolSpec{MarkOf(kTools), {}, {}}}, values)) {
    const bool is_certain = std::ranges::find(certain, module.name, &PromptModule::name) != certain.end();
    const auto made_of = std::ranges::find(prompt.modules, module.name, &PromptModule::name);
    const bool has_values =
        made_of != prompt.modules.end() && !made_of->is_plain && Trimmed(made_of->text) != module.text;
    patterns.push_back({std::move(module.name), std::move(module.text), has_values, !is_certain});
  }
  return patterns;
}

bool IsFilled(std::string_view text, std::string_view pattern, const PromptFacts* facts) {
  std::size_t steps = 2'000;
  return Matches(text, pattern, facts, steps);
}

std::optional<std::vector<PromptModule>> SplitPrompt(std::string_view system, const std::vector<ToldModule>& modules) {
  std::vector<PromptModule> parts;
  for (std::size_t i = 0; i + 1 < modules.size(); ++i) {
    const std::uint64_t bytes = modules[i].bytes.value_or(system.size());
    if (bytes >= system.size() || !system.substr(bytes).starts_with(kBlankLine)) return std::nullopt;
    parts.push_back({.name = modules[i].name, .text = std::string(system.substr(0, bytes))});
    system.remove_prefix(bytes + kBlankLine.size());
  }
  if (modules.empty() || !modules.back().bytes) return std::nullopt;
  parts.push_back({.name = modules.back().name, .text = std::string(system)});
  return parts;
}

std::string WithoutFolders(const std::string& text) {
  static const RE2 kFrom(R"((?m)^From .*/([^/\n]*:)$)"), kSkill(R"((?m)^(- [^ \n]+ \()[^)\n]*/([^/)\n]*\):))");
  std::string plain = text;
  RE2::GlobalReplace(&plain, kFrom, R"(From \1)");
  RE2::GlobalReplace(&plain, kSkill, R"(\1\2)");
  return plain;
}

}  // namespace reprise
