#include "approval/confirmation.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace reprise {
namespace {

constexpr const char* kMember = "confirmed";

struct Claim {
  bool confirmed = false;
  Json arguments = {};  // without the claim
};

Claim ClaimOf(const std::string& arguments) {
  auto parsed = ParseJson(arguments);
  if (!parsed || !parsed->is_object()) return {};
  Claim claim{.confirmed = false, .arguments = *std::move(parsed)};
  if (const auto member = claim.arguments.find(kMember); member != claim.arguments.end()) {
    // Whatever a tool may take for a yes.
    claim.confirmed = !member->is_null() && *member != false;
    claim.arguments.erase(member);
  }
  return claim;
}

const Message* ResultOf(const Messages& messages, std::size_t round, const std::string& call_id) {
  for (std::size_t i = round + 1; i < messages.size() && messages[i].role == Role::kTool; ++i) {
    if (messages[i].tool_call_id == call_id) return &messages[i];
  }
  return nullptr;
}

bool IsSame(const ToolCall& made, const ToolCall& call, const Claim& claim, bool confirmed) {
  if (made.name != call.name) return false;
  const Claim other = ClaimOf(made.arguments);
  return other.confirmed == confirmed && IsSameInAnyOrder(other.arguments, claim.arguments);
}

// Whether one of the messages [begin, end) makes this call and the tool wants a confirmation.
bool WasAsked(const Messages& messages, std::size_t begin, std::size_t end, const ToolCall& call, const Claim& claim) {
  for (std::size_t i = begin; i < end; ++i) {
    for (const ToolCall& made : messages[i].tool_calls) {
      const Message* result = ResultOf(messages, i, made.id);
      const bool asks = result && result->content.value_or("").ends_with(kConfirmationNote);
      if (asks && (IsSame(made, call, claim, false) || IsSame(made, call, claim, true))) return true;
    }
  }
  return false;
}

// Whether the call was made, as confirmed, since `begin` and before this one.
bool WasUsed(const Messages& messages, std::size_t begin, const ToolCall& call, const Claim& claim) {
  const auto last = std::find_if(messages.rbegin(), messages.rend(),
                                 [](const Message& message) { return !message.tool_calls.empty(); });
  for (std::size_t i = begin; i < messages.size(); ++i) {
    for (const ToolCall& made : messages[i].tool_calls) {
      if (&messages[i] == &*last && made.id == call.id) return false;
      if (IsSame(made, call, claim, true)) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<std::string> FalseConfirmation(const Messages& messages, const ToolCall& call) {
  const Claim claim = ClaimOf(call.arguments);
  if (!claim.confirmed) return std::nullopt;
  const auto is_user = [](const Message& message) { return message.role == Role::kUser; };
  const auto last = std::find_if(messages.rbegin(), messages.rend(), is_user);
  const auto before = last == messages.rend() ? last : std::find_if(last + 1, messages.rend(), is_user);
  const auto place = [&](auto it) { return static_cast<std::size_t>(messages.rend() - it); };
  const std::size_t now = place(last), asked = place(before);  // where this turn and the one before it begin
  if (!WasAsked(messages, asked, now, call, claim)) {
    return "Not run: the user was not asked to confirm this very call in the turn before. Make it without "
           "\"confirmed\" first, ask the user, and wait for their answer.";
  }
  if (WasUsed(messages, now, call, claim)) {
    return "Not run: the user's confirmation was for one call, and it has been made.";
  }
  return std::nullopt;
}

}  // namespace reprise
