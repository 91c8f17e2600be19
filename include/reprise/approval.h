#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "reprise/event.h"
#include "reprise/ids.h"
#include "reprise/timestamp.h"

namespace reprise {

enum class ApprovalMode {
  kAsk,         // tools that require approval ask
  kReadOnly,    // every tool that is not read-only asks
  kApproveAll,  // nothing asks
  kDenyAll,     // what would ask is refused
};
// "ask", "read_only", "approve_all", "deny_all"; part of the wire, of the file format and of the configuration.
std::string_view ToString(ApprovalMode mode);
std::optional<ApprovalMode> ParseApprovalMode(std::string_view name);

enum class ApprovalScope {
  kOnce,
  kChat,    // further equal calls in this chat need no approval; an edit restores the grants of its time
  kAlways,  // further equal calls in every chat need none until that is revoked (reprise/grant_store.h)
};
// "once", "chat", "always"; part of the wire and of the file format.
std::string_view ToString(ApprovalScope scope);
std::optional<ApprovalScope> ParseApprovalScope(std::string_view name);

// What the configuration says of calls, in every chat and mode: kDeny before kAsk before kAllow.
enum class RuleAction {
  kAllow,  // they run without a question. Not a call that needs consent, or touches what Tool::ReasonToAsk is about
  kAsk,    // they ask, whatever was granted
  kDeny,   // they are refused, whatever anybody says
};
// "allow", "ask", "deny"; part of the configuration and of the wire.
std::string_view ToString(RuleAction action);
std::optional<RuleAction> ParseRuleAction(std::string_view name);
struct ToolRule {
  std::string tool;                      // a name, or a pattern of names (fnmatch(3))
  std::optional<std::string> pattern{};  // of calls, in the tool's language (Tool::MeaningOf); nullopt: all calls
  RuleAction action = RuleAction::kAsk;
};

// How long a pattern counts if nobody says otherwise.
inline constexpr std::chrono::seconds kPatternLifetime = std::chrono::hours(30 * 24);
inline constexpr std::chrono::seconds kMaxGrantLifetime = std::chrono::hours(10 * 365 * 24);

// What a person answers to approval_required.
struct ApprovalAnswer {
  bool approved = false;
  std::optional<std::string> arguments{};  // JSON object text that replaces the call's arguments fully
  std::optional<std::string> feedback{};   // for the model to read
  ApprovalScope scope = ApprovalScope::kOnce;
  std::optional<std::string> arguments_digest{};  // if given, must be the digest that was shown
  // For a scope beyond kOnce: one of the patterns that were offered, to be granted in place of this call's arguments.
  std::optional<std::string> pattern{};
  std::optional<std::chrono::seconds>
      lifetime{};                         // of the grant; zero: without end. nullopt: kPatternLifetime, or none
  std::optional<Timestamp> expires_at{};  // what that came to; only the engine says so
  bool expired = false;                   // nobody has answered in time; only the engine says so
  bool superseded = false;                // what was shown is not so any more; likewise
  std::string answered_by{};              // the user; empty: the only one, or nobody
};

struct PendingApproval {
  ChatId chat_id;
  InteractionId interaction_id;
  event::ApprovalRequired request;
};

// What a person answers to input_required.
struct InputAnswer {
  std::optional<std::string> response{};  // JSON object text if the question has a schema; nullopt: declined
  std::string answered_by{};              // as in ApprovalAnswer
};

struct PendingInput {
  ChatId chat_id;
  InteractionId interaction_id;
  event::InputRequired request;
};

}  // namespace reprise
