#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "approval/loop_guard.h"
#include "approval/rules.h"
#include "reprise/approval.h"
#include "reprise/event.h"
#include "reprise/grant_store.h"
#include "reprise/message.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

// Whether a tool call runs, and on whose word. This is decided here and nowhere else; the agent acts upon it, the audit
// log names it, and the engine asks here what an answer that comes over HTTP is worth.

// The results of calls that did not run.
inline constexpr std::string_view kCancelledResult = "Cancelled before it finished.";
inline constexpr std::string_view kEndedResult = "Not run: the interaction was ended.";
// The configuration does not let anybody be asked.
inline constexpr std::string_view kRefusedResult = "This server refuses calls that need approval.";
inline constexpr std::string_view kNobodyToAskResult = "This call needs approval, and nobody can be asked here.";
// The same words whatever has changed: a replay knows only that something has.
inline constexpr std::string_view kOutdatedResult =
    "Not run: the tool has changed since this call was made, and the call does not fit it any more. Look at the tools "
    "there are now.";

// A tool, and the set it is of.
struct OfferedTool {
  std::shared_ptr<const ToolSet> tools;
  Tool* tool;  // null: there is no such tool
};

namespace decision {
struct Run {
  std::string_view why;                   // as AuditEntry::reason of kStarted
  bool agreed = false;                    // a person has agreed to it: to this one, or to all that are equal
  bool knows_secrets = false;             // and knew that it touches what Tool::ReasonToAsk is about
  std::vector<std::string> decided_by{};  // as AuditEntry::decided_by
};
struct Ask {
  event::ApprovalRequired request;  // without an id and times
};
struct Refuse {
  std::string why;                        // as AuditEntry::reason of kRefused
  std::string result;                     // for the model
  bool is_shown = false;                  // people see that the call was made
  bool withdraws = false;                 // what a person was shown: it is not so any more
  std::optional<CallLoop> loop{};         // set if that is why
  std::vector<std::string> decided_by{};  // as AuditEntry::decided_by
};
}  // namespace decision

struct Decision {
  using Run = decision::Run;
  using Ask = decision::Ask;
  using Refuse = decision::Refuse;
  std::variant<Refuse, Run, Ask> what;

  const Run* run() const { return std::get_if<Run>(&what); }
  const Ask* ask() const { return std::get_if<Ask>(&what); }
  const Refuse* refuse() const { return std::get_if<Refuse>(&what); }
};

// What holds for all calls of a run.
struct ApprovalPolicy {
  std::function<ApprovalMode(const ToolCall&)> mode = nullptr;  // as it is now; null: kAsk
  bool nobody_to_ask = false;                                   // what would ask is refused
  bool check_confirmations = true;                              // false, of a replay: the record knows
  // Those for always that bear on a call (GrantStore::For); null: there are none.
  std::function<std::vector<Grant>(const Grant& call)> standing_grants = nullptr;
  ToolRules rules{};
};

// What a person was shown of a call, and has said.
struct ShownCall {
  std::string approval_id;
  std::string terms_digest;
  std::optional<ApprovalAnswer> answer{};
};

// A call as it may run: a hook may have changed its arguments.
struct ReviewedCall {
  ToolCall call;
  OfferedTool offered;
  std::optional<Decision::Refuse> refused{};  // by CheckCall, a hook or the rate of calls
};

// Why a call cannot run whatever anybody says: there is no such tool, its arguments do not fit, or it claims a
// confirmation that was not given. nullopt: it can.
std::optional<Decision::Refuse> CheckCall(const ToolCall& call, const OfferedTool& offered, const AgentState& state,
                                          const ApprovalPolicy& policy);

// For a call whose turn has come. `shown`: null if nobody was asked about it, else it is answered. What was agreed to
// is what runs: if the tool, or where it would run, is not what was shown, the call asks anew as it is now.
Decision Decide(const ReviewedCall& call, const AgentState& state, const ApprovalPolicy& policy,
                const ShownCall* shown = nullptr);

// The answer to one whose terms have changed since it was shown.
inline const ApprovalAnswer kSuperseded{.approved = false, .superseded = true};

// Whether a call that waits would now run on other terms than were shown. As far as it is known: false for a tool that
// is not there or does not know its terms. Decide looks again before the call runs.
bool IsOutdated(const event::ApprovalRequired& request, const ToolSet& tools);

// The sentence of one of the patterns that were offered; empty: there is none.
std::string MeaningIn(const std::vector<CallPattern>& offered, const std::optional<std::string>& pattern);

// Whether a pattern says another thing today than a person has agreed to, as another version of the tool may have it:
// then it covers nothing.
bool MeansAnother(const Grant& grant, const Tool& tool);

// What an answer grants beyond its call.
Grant GrantOf(const event::ApprovalRequired& request, const ApprovalAnswer& answer);

// What a grant of this call for always would be. kInvalidArgument: it cannot be granted so.
Result<StandingGrant> StandingGrantFor(const event::ApprovalRequired& request, const ApprovalAnswer& answer);

// What the model reads of a call that a person has rejected, or has not answered in time.
std::string RejectedResult(const ApprovalAnswer& answer);

// Confirmation within the conversation: a tool may answer that the user must agree first (ToolOutcome,
// requires_confirmation). The model asks, the user says something, and the same call with `"confirmed": true` among its
// arguments is let through, once. Follows from the messages alone, so whatever restores them restores it.

// What such a tool's answer ends with.
inline constexpr std::string_view kConfirmationNote =
    "\n(This needs the user's confirmation. Ask the user. Only if they agree, make the same call again in your next "
    "turn, with \"confirmed\": true added to its arguments.)";

// Why `call`, of the last message that calls tools, must not run: it claims a confirmation that was not asked for
// before the user last spoke, or was used already. For the model; nullopt: it claims none, or rightly.
std::optional<std::string> FalseConfirmation(const Messages& messages, const ToolCall& call);

}  // namespace reprise
namespace reprise::every_call {

// The one pattern of tools of other programs, of which nobody here knows what arguments do: "*", any call. For the
// members of Tool of the same names.

inline constexpr std::string_view kPattern = "*";

// `meaning`: the sentence that says what it covers.
inline Result<std::string> MeaningOf(std::string_view pattern, std::string meaning) {
  if (pattern != kPattern) return Fail(ErrorCode::kInvalidArgument, "the one pattern of such a tool is *");
  return meaning;
}

inline std::optional<std::vector<std::size_t>> CoveredBy(const std::vector<std::string>& patterns) {
  const auto found = std::find(patterns.begin(), patterns.end(), kPattern);
  if (found == patterns.end()) return std::nullopt;
  return std::vector{static_cast<std::size_t>(found - patterns.begin())};
}

}  // namespace reprise::every_call
