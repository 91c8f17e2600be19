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
  kPlan,        // those are refused until a person has approved a plan, which sets another mode
  kAuto,        // what the sandbox or rewind confines does not ask
  kApproveAll,  // nothing asks
  kDenyAll,     // calls that would ask are refused
};
// "ask", "read_only", "plan", "auto", "approve_all", "deny_all"; part of the wire, of the file format and of the
// configuration.
//
//   if (const auto mode = reprise::ParseApprovalMode("read_only")) Print(reprise::ToString(*mode));
//   reprise::ApprovalAnswer answer{.approved = true, .scope = reprise::ApprovalScope::kChat};
//   auto answered = engine.AnswerApproval(approval_id, answer);
std::string_view ToString(ApprovalMode mode);
std::optional<ApprovalMode> ParseApprovalMode(std::string_view name);

enum class ApprovalScope {
  kOnce,
  kChat,    // equal calls in this chat need no approval; an edit restores earlier grants
  kAlways,  // equal calls in every chat need none until revoked (reprise/grant_store.h)
};
// "once", "chat", "always"; part of the wire and of the file format.
std::string_view ToString(ApprovalScope scope);
std::optional<ApprovalScope> ParseApprovalScope(std::string_view name);

// The configuration's action for calls, in every chat and mode: kDeny before kAsk before kAllow.
enum class RuleAction {
  kAllow,  // runs without approval, unless the call needs consent or has a Tool::ReasonToAsk
  kAsk,    // asks, whatever was granted
  kDeny,   // is refused, whatever a person says
};
// "allow", "ask", "deny"; part of the configuration and of the wire.
std::string_view ToString(RuleAction action);
std::optional<RuleAction> ParseRuleAction(std::string_view name);
struct ToolRule {
  std::string tool;                      // a name, or a pattern of names (fnmatch(3))
  std::optional<std::string> pattern{};  // of calls, in the tool's language (Tool::MeaningOf); nullopt: all calls
  RuleAction action = RuleAction::kAsk;
};

// Default lifetime of a granted pattern.
inline constexpr std::chrono::seconds kPatternLifetime = std::chrono::hours(30 * 24);
inline constexpr std::chrono::seconds kMaxGrantLifetime = std::chrono::hours(10 * 365 * 24);

// A person's answer to approval_required.
struct ApprovalAnswer {
  bool approved = false;
  std::optional<std::string> arguments{};  // JSON object text that replaces all of the call's arguments
  std::optional<std::string> feedback{};   // for the model to read
  ApprovalScope scope = ApprovalScope::kOnce;
  std::optional<std::string> arguments_digest{};  // if set, must equal the digest shown
  // Beyond kOnce: an offered pattern, granted instead of this call's arguments.
  std::optional<std::string> pattern{};
  std::optional<std::chrono::seconds> lifetime{};  // of the grant; zero: no end. nullopt: kPatternLifetime, or none
  std::optional<Timestamp> expires_at{};           // the resulting end; set only by the engine
  std::optional<ApprovalMode> mode{};              // with which a plan is approved; nullopt: kAsk
  bool outside_sandbox = false;                    // lets this one call run outside its tool's sandbox; kOnce only
  bool expired = false;                            // not answered in time; set only by the engine
  bool superseded = false;                         // the request shown is outdated; likewise
  std::string answered_by{};                       // the user; empty: the only one, or none
};

struct PendingApproval {
  ChatId chat_id;
  InteractionId interaction_id;
  event::ApprovalRequired request;
};

// A person's answer to input_required.
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
