#include "approval/rules.h"

#include <fnmatch.h>

#include <algorithm>

namespace reprise {
namespace {

constexpr std::string_view kWildcards = "*?[\\";

bool IsOneName(const std::string& name) { return name.find_first_of(kWildcards) == std::string::npos; }

PatternUse UseOf(const ToolRule& rule) {
  return rule.action == RuleAction::kAllow ? PatternUse::kAllow : PatternUse::kHold;
}

Result<void> CheckRule(const ToolRule& rule, const ToolSet& tools, const std::vector<std::string>& servers) {
  const auto wrong = [](std::string why) { return Fail(ErrorCode::kInvalidArgument, std::move(why)); };
  if (rule.pattern) {
    const Tool* const tool = IsOneName(rule.tool) ? tools.Find(rule.tool) : nullptr;
    if (tool == nullptr) {
      return wrong("has a pattern, so \"tool\" must be the name of one tool of this program, and \"" + rule.tool +
                   "\" is none");
    }
    auto meaning = tool->MeaningOf(*rule.pattern, UseOf(rule));
    if (!meaning) return wrong("has the pattern \"" + *rule.pattern + "\": " + meaning.error().message);
    return {};
  }
  const auto& all = tools.specs();
  if (std::ranges::any_of(all, [&](const ToolSpec& each) { return SpeaksOf(rule, each.name); })) return {};
  // Of the servers' tools only the prefix is known here.
  const auto may_be_of = [&](const std::string& server) {
    return rule.tool.starts_with(server + "__") || (!IsOneName(rule.tool) && SpeaksOf(rule, server + "__x"));
  };
  const std::size_t fixed = rule.tool.find_first_of(kWildcards);
  const bool is_open =
      fixed != std::string::npos && std::ranges::any_of(servers, [&](const auto& each) {
        return (each + "__").starts_with(rule.tool.substr(0, fixed)) || rule.tool.starts_with(each + "__");
      });
  if (is_open || std::ranges::any_of(servers, may_be_of)) return {};
  return wrong("can never match: there is no tool \"" + rule.tool + "\"");
}

}  // namespace

ToolRules Together(ToolRules configured, ToolRules added) {
  if (!added || added->empty()) return configured;
  if (!configured) return added;
  auto all = std::make_shared<std::vector<ToolRule>>(*configured);
  all->insert(all->end(), added->begin(), added->end());
  return all;
}

std::string RuleName(std::size_t index) { return "rule " + std::to_string(index + 1); }

bool SpeaksOf(const ToolRule& rule, const std::string& tool_name) {
  return ::fnmatch(rule.tool.c_str(), tool_name.c_str(), 0) == 0;
}

namespace {

bool Holds(const ToolRule& rule, const ToolTraits& traits) {
  return SpeaksOf(rule, traits.spec.name) ||
         std::ranges::any_of(traits.acts_as, [&](const std::string& name) { return SpeaksOf(rule, name); });
}

}  // namespace

std::optional<Hold> FindHold(const ToolRules& rules, const Tool& tool, std::string_view arguments) {
  std::optional<Hold> hold;
  if (!rules) return hold;
  for (std::size_t i = 0; i < rules->size(); ++i) {
    const ToolRule& rule = (*rules)[i];
    if (rule.action == RuleAction::kAllow || !Holds(rule, tool.traits())) continue;
    const Touch touch = rule.pattern ? tool.Touches(*rule.pattern, arguments) : Touch::kYes;
    if (touch == Touch::kNo) continue;
    const bool is_certain = touch == Touch::kYes;
    if (rule.action == RuleAction::kDeny && is_certain) return Hold{RuleAction::kDeny, i, is_certain};
    if (!hold || (is_certain && !hold->is_certain)) hold = Hold{RuleAction::kAsk, i, is_certain};
  }
  return hold;
}

std::string DeniedByRule(std::size_t rule) {
  return "Not run: " + RuleName(rule) + " of this server denies it. Nobody can allow it here; do without it.";
}

Result<void> CheckRules(const std::vector<ToolRule>& rules, const ToolSet& tools,
                        const std::vector<std::string>& servers) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto checked = CheckRule(rules[i], tools, servers);
    if (checked) continue;
    return Fail(ErrorCode::kInvalidArgument, "tools.rules: " + RuleName(i) + " (" +
                                                 std::string(ToString(rules[i].action)) + " " + rules[i].tool + ") " +
                                                 checked.error().message);
  }
  return {};
}

std::string RuleMeaning(const ToolRule& rule, const Tool& tool) {
  if (!rule.pattern) return "Every call of " + tool.traits().spec.name + ".";
  return tool.MeaningOf(*rule.pattern, UseOf(rule)).value_or("");
}

}  // namespace reprise
