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

// What the configuration's rules (`tools.rules`) say of a call.
namespace reprise {

using ToolRules = std::shared_ptr<const std::vector<ToolRule>>;  // null: there are none

// "rule 1", as the audit log, messages and GET /tools name it.
std::string RuleName(std::size_t index);

// Whether a rule speaks of calls of a tool of this name at all.
bool SpeaksOf(const ToolRule& rule, const std::string& tool_name);

// What holds a call back.
struct Hold {
  RuleAction action = RuleAction::kAsk;  // or kDeny
  std::size_t rule = 0;
  bool is_certain = true;  // false: it cannot be told what the call does, and so it asks
};
// The strictest that there is. A call that a rule may speak of, for all that can be told, asks.
std::optional<Hold> FindHold(const ToolRules& rules, const Tool& tool, std::string_view arguments);

// What a model reads, and a person who wants such a call all the same.
std::string DeniedByRule(std::size_t rule);

// kInvalidArgument: a rule that cannot be understood, or can never match. The message names it. `tools` are those of
// this program; tools of the `servers` come later.
Result<void> CheckRules(const std::vector<ToolRule>& rules, const ToolSet& tools,
                        const std::vector<std::string>& servers);

// A rule in words: what it speaks of, in a sentence. REQUIRES: it speaks of the tool.
std::string RuleMeaning(const ToolRule& rule, const Tool& tool);

}  // namespace reprise
