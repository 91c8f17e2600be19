#include "engine/prompt_parts.h"

#include <re2/re2.h>

#include <algorithm>
#include <utility>

#include "agent/prompt.h"
#include "base/text.h"

namespace reprise {
namespace {

constexpr std::string_view kAnyValue = "\x01", kBlankLine = "\n\n";

// Whether `text` is `pattern` with some values.
bool Matches(std::string_view text, std::string_view pattern) {
  std::size_t star = pattern.find(kAnyValue);
  if (star == pattern.npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + kAnyValue.size());
  while ((star = pattern.find(kAnyValue)) != pattern.npos) {
    const std::size_t at = text.find(pattern.substr(0, star));
    if (at == text.npos) return false;
    text.remove_prefix(at + star);
    pattern.remove_prefix(star + kAnyValue.size());
  }
  return text.ends_with(pattern);
}

}  // namespace

std::vector<ModulePattern> PatternsOf(SystemPrompt prompt, std::size_t max_plain_bytes) {
  PromptValues values{.date = "2026-11-21", .memory = {}, .max_plain_bytes = max_plain_bytes};  // any, see IsFilled
  prompt.workspace = kAnyValue;
  prompt.environment = prompt.git = "";
  const auto certain = ComposedModules(prompt, {}, values);
  prompt.environment = prompt.git = values.memory = kAnyValue;
  std::vector<ModulePattern> patterns;
  for (PromptModule& module : ComposedModules(prompt, {ToolSpec{std::string(kAnyValue), {}, {}}}, values)) {
    const bool is_certain = std::ranges::find(certain, module.name, &PromptModule::name) != certain.end();
    const auto made_of = std::ranges::find(prompt.modules, module.name, &PromptModule::name);
    const bool has_values =
        made_of != prompt.modules.end() && !made_of->is_plain && Trimmed(made_of->text) != module.text;
    patterns.push_back({std::move(module.name), std::move(module.text), has_values, !is_certain});
  }
  return patterns;
}

bool IsFilled(std::string text, std::string pattern) {
  static const RE2 kDate(R"(\d{4}-\d\d-\d\d)");
  for (std::string* const each : {&text, &pattern}) RE2::GlobalReplace(each, kDate, "\x02");
  return Matches(text, pattern);
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
