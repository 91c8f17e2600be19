#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reprise/event.h"
#include "reprise/ids.h"

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

// What a person answers to approval_required.
struct ApprovalAnswer {
  bool approved = false;
  std::optional<std::string> arguments{};  // JSON object text that replaces the call's arguments fully
  std::optional<std::string> feedback{};   // for the model to read
  ApprovalScope scope = ApprovalScope::kOnce;
  std::optional<std::string> arguments_digest{};  // if given, must be the digest that was shown
  bool expired = false;                           // nobody has answered in time; only the engine says so
  bool superseded = false;                        // what was shown is not so any more; likewise
  std::string answered_by{};                      // the user; empty: the only one, or nobody
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
