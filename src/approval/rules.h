#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/approval.h"
#include "reprise/result.h"
#include "reprise/tool.h"

// Applies the configuration's rules (`tools.rules`) to a call.
namespace reprise {

using ToolRules = std::shared_ptr<const std::vector<ToolRule>>;  // null if there are none

// One list, in this order.
ToolRules Together(ToolRules configured, ToolRules added);

// "rule 1", the name in the audit log, in messages and in GET /tools.
std::string RuleName(std::size_t index);

// Whether a rule can apply to calls of the tool with this name.
bool SpeaksOf(const ToolRule& rule, const std::string& tool_name);

// A rule that holds a call back.
struct Hold {
  RuleAction action = RuleAction::kAsk;  // or kDeny
  std::size_t rule = 0;
  bool is_certain = true;  // false: we cannot tell what the call does, so it asks
};
// The strictest rule that applies. If we cannot tell whether a rule applies, the call asks.
std::optional<Hold> FindHold(const ToolRules& rules, const Tool& tool, std::string_view arguments);

// The text for the model, and for a person who wants such a call all the same.
std::string DeniedByRule(std::size_t rule);

// kInvalidArgument, naming the rule, if a rule is malformed or can never match. `tools` are those of this program; the
// tools of `servers` are not known yet.
Result<void> CheckRules(const std::vector<ToolRule>& rules, const ToolSet& tools,
                        const std::vector<std::string>& servers);

// A sentence that says what the rule covers. REQUIRES: the rule can apply to the tool.
std::string RuleMeaning(const ToolRule& rule, const Tool& tool);

}  // namespace reprise
