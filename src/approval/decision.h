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

// Decides, as the only place, whether a tool call runs and on whose authority. The agent acts on the decision, the
// audit log records it, and the engine checks answers from HTTP here.

// The results of calls that did not run.
inline constexpr std::string_view kNotBegunResult = "Not run: the interaction was cancelled.";
inline constexpr std::string_view kEndedResult = "Not run: the interaction was ended.";
// The configuration forbids asking.
inline constexpr std::string_view kRefusedResult = "This server refuses calls that need approval.";
inline constexpr std::string_view kNobodyToAskResult = "This call needs approval, and nobody can be asked here.";
inline constexpr std::string_view kPlanningResult =
    "Not run: the user wants a plan before anything is changed. Look around with tools that only read, then present "
    "the "
    "plan; once the user has approved it, make such calls.";
inline constexpr std::string_view kNotPlanningResult =
    "Not run: no plan is wanted, or it has been approved. Go on with the work.";
// The modes with which a plan may be approved.
inline constexpr ApprovalMode kModesAfterPlan[] = {ApprovalMode::kAsk, ApprovalMode::kReadOnly, ApprovalMode::kAuto,
                                                   ApprovalMode::kApproveAll};
// The same text for every change, because a replay knows only that something changed.
inline constexpr std::string_view kOutdatedResult =
    "Not run: the tool has changed since this call was made, and the call does not fit it any more. Look at the tools "
    "there are now.";

// The result of a call that ran when the interaction was cancelled. Earlier versions recorded it for calls that had not
// begun, too.
inline constexpr std::string_view kCancelledResult = "Cancelled before it finished.";
inline bool SaysCancelled(std::string_view result) { return result == kNotBegunResult || result == kCancelledResult; }

// A tool and its set.
struct OfferedTool {
  std::shared_ptr<const ToolSet> tools;
  Tool* tool;  // null if there is no such tool
};

namespace decision {
struct Run {
  std::string_view why;                   // AuditEntry::reason of kStarted
  bool agreed = false;                    // a person agreed to this call, or to all equal ones
  bool knows_secrets = false;             // and knew of its Tool::ReasonToAsk
  bool outside_sandbox = false;           // and lets this one call run outside the tool's sandbox
  std::vector<std::string> decided_by{};  // as AuditEntry::decided_by
};
struct Ask {
  event::ApprovalRequired request;  // without an id and times
};
struct Refuse {
  std::string why;                        // as AuditEntry::reason of kRefused
  std::string result;                     // for the model
  bool is_shown = false;                  // people see the call
  bool withdraws = false;                 // withdraws what a person was shown, because it changed
  std::optional<CallLoop> loop{};         // set if a loop is the reason
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

// The policy for all calls of a run.
struct ApprovalPolicy {
  std::function<ApprovalMode(const ToolCall&)> mode = nullptr;  // the current mode; null: kAsk
  std::optional<ApprovalMode> also{};                           // a call that asks in this mode asks, too
  bool nobody_to_ask = false;                                   // refuse the calls that would ask
  bool check_confirmations = true;                              // false in a replay, which has the record
  // The grants for always that bear on a call (GrantStore::For); null: there are none.
  std::function<std::vector<Grant>(const Grant& call)> standing_grants = nullptr;
  ToolRules rules{};                            // of the configuration
  std::function<ToolRules()> added_rules = {};  // those that people have added by now; empty: there are none
  // Whether the changes of such a call can be taken back; null: no change can.
  std::function<bool(const ToolTraits& traits, std::string_view arguments)> can_undo = nullptr;
};

// The call as a person saw it, and the answer.
struct ShownCall {
  std::string approval_id;
  std::string terms_digest;
  std::optional<ApprovalAnswer> answer{};
};

// A call after review, perhaps with arguments changed by a hook.
struct ReviewedCall {
  ToolCall call;
  OfferedTool offered;
  std::optional<Decision::Refuse> refused{};  // by CheckCall, a hook or the rate of calls
};

// Why a call cannot run even if approved: no such tool, invalid arguments, or a false claim of confirmation. nullopt if
// it can run.
std::optional<Decision::Refuse> CheckCall(const ToolCall& call, const OfferedTool& offered, const AgentState& state,
                                          const ApprovalPolicy& policy);

// Decides on a call that is next to run. `shown` is null if no approval was asked for, else it is answered. Only what a
// person agreed to may run: if the tool or its place differs from what was shown, the call asks again as it is now.
Decision Decide(const ReviewedCall& call, const AgentState& state, const ApprovalPolicy& policy,
                const ShownCall* shown = nullptr);

// The answer to a request whose terms changed after it was shown.
inline const ApprovalAnswer kSuperseded{.approved = false, .superseded = true};

// Whether a waiting call would now run on other terms than those shown. False if the tool is missing or does not know
// its terms; Decide checks again before the call runs.
bool IsOutdated(const event::ApprovalRequired& request, const ToolSet& tools);

// The sentence of `pattern` among those offered; empty if it is not there.
std::string MeaningIn(const std::vector<CallPattern>& offered, const std::optional<std::string>& pattern);

// Whether a pattern's meaning differs from the one that a person agreed to, perhaps in another version of the tool.
// Such a pattern covers nothing.
bool MeansAnother(const Grant& grant, const Tool& tool);

// The grant in an answer, beyond its call.
Grant GrantOf(const event::ApprovalRequired& request, const ApprovalAnswer& answer);

// The grant for always of this call. kInvalidArgument if it cannot be granted.
Result<StandingGrant> StandingGrantFor(const event::ApprovalRequired& request, const ApprovalAnswer& answer);

// The model's text for a call that was rejected or not answered in time.
std::string RejectedResult(const ApprovalAnswer& answer);

// Confirmation within the conversation: a tool may answer that the user must agree first (ToolOutcome,
// requires_confirmation). The model asks, the user replies, and then the same call with `"confirmed": true` among its
// arguments may run once. The state follows from the messages alone, so restoring them restores it.

// The end of such a tool's answer.
inline constexpr std::string_view kConfirmationNote =
    "\n(This needs the user's confirmation. Ask the user. Only if they agree, make the same call again in your next "
    "turn, with \"confirmed\": true added to its arguments.)";

// Tells the model why `call`, from the last message that calls tools, must not run: the confirmation that it claims was
// not asked for before the user last spoke, or is used up. nullopt if it claims none, or a valid one.
std::optional<std::string> FalseConfirmation(const Messages& messages, const ToolCall& call);

}  // namespace reprise
namespace reprise::every_call {

// "*", any call: the only pattern for tools of other programs, whose arguments we cannot interpret. The functions
// implement the members of Tool of the same names.

inline constexpr std::string_view kPattern = "*";

// `meaning` is the sentence that says what it covers.
inline Result<std::string> MeaningOf(std::string_view pattern, std::string meaning) {
  if (pattern != kPattern) return Fail(ErrorCode::kInvalidArgument, "the only pattern of such a tool is *");
  return meaning;
}

inline std::optional<std::vector<std::size_t>> CoveredBy(const std::vector<std::string>& patterns) {
  const auto found = std::ranges::find(patterns, kPattern);
  if (found == patterns.end()) return std::nullopt;
  return std::vector{static_cast<std::size_t>(found - patterns.begin())};
}

}  // namespace reprise::every_call
