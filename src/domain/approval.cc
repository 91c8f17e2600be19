#include "reprise/approval.h"

namespace reprise {

std::string_view ToString(ApprovalMode mode) {
  switch (mode) {
    case ApprovalMode::kAsk:
      return "ask";
    case ApprovalMode::kReadOnly:
      return "read_only";
    case ApprovalMode::kPlan:
      return "plan";
    case ApprovalMode::kAuto:
      return "auto";
    case ApprovalMode::kApproveAll:
      return "approve_all";
    case ApprovalMode::kDenyAll:
      return "deny_all";
  }
  return "ask";
}

std::optional<ApprovalMode> ParseApprovalMode(std::string_view name) {
  for (const auto mode : {ApprovalMode::kAsk, ApprovalMode::kReadOnly, ApprovalMode::kPlan, ApprovalMode::kAuto,
                          ApprovalMode::kApproveAll, ApprovalMode::kDenyAll}) {
    if (name == ToString(mode)) return mode;
  }
  return std::nullopt;
}

std::string_view ToString(RuleAction action) {
  switch (action) {
    case RuleAction::kAllow:
      return "allow";
    case RuleAction::kAsk:
      return "ask";
    case RuleAction::kDeny:
      return "deny";
  }
  return "deny";
}

std::optional<RuleAction> ParseRuleAction(std::string_view name) {
  for (const auto action : {RuleAction::kAllow, RuleAction::kAsk, RuleAction::kDeny}) {
    if (name == ToString(action)) return action;
  }
  return std::nullopt;
}

std::string_view ToString(ApprovalScope scope) {
  switch (scope) {
    case ApprovalScope::kOnce:
      return "once";
    case ApprovalScope::kChat:
      return "chat";
    case ApprovalScope::kAlways:
      return "always";
  }
  return "once";
}

std::optional<ApprovalScope> ParseApprovalScope(std::string_view name) {
  for (const auto scope : {ApprovalScope::kOnce, ApprovalScope::kChat, ApprovalScope::kAlways}) {
    if (name == ToString(scope)) return scope;
  }
  return std::nullopt;
}

}  // namespace reprise
