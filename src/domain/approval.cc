#include "reprise/approval.h"

namespace reprise {

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
