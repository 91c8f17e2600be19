#include "approval/decision.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "domain/codec.h"

namespace reprise {

namespace {

constexpr std::size_t kMaxGrantInput = 1000;  // characters of the arguments stored with a grant, for people

std::string UnknownTool(const std::string& name, const ToolSet& tools) {
  std::string text = "There is no tool named \"" + name + "\". Available:";
  for (const ToolSpec& spec : tools.specs()) text += " " + spec.name;
  return text;
}

std::string GoesRound(const ToolCall& call, int count) {
  return "Not run: this is call number " + std::to_string(count) + " of " + call.name +
         " with the same arguments, and nothing has changed in between. Do not make it again: use the results you "
         "have, try "
         "something else, or answer and say what is missing.";
}

std::string_view RiskName(Risk risk) {
  switch (risk) {
    case Risk::kLow:
      return "low";
    case Risk::kMedium:
      return "medium";
    case Risk::kHigh:
      return "high";
  }
  return "high";
}

std::string HoldReason(const Hold& hold) {
  if (hold.is_certain) return "; " + RuleName(hold.rule) + " of this server wants each such call asked about";
  return "; it cannot be told whether " + RuleName(hold.rule) + " of this server applies";
}

// `hold` is a rule that asks despite grants, so no grant is offered.
Decision::Ask AskAbout(const ToolCall& call, const Tool& tool, const std::optional<std::string>& sensitive,
                       const std::optional<Hold>& hold) {
  const ToolTraits& traits = tool.traits();
  event::ApprovalRequired request;
  request.call_id = call.id;
  request.tool_name = call.name;
  request.tool_input = call.arguments;
  request.arguments_digest = ArgumentsDigest(call.arguments);
  request.terms_digest = TermsDigest(traits, sensitive);
  request.reason = traits.approval_reason + (sensitive ? ": " + *sensitive : "") + (hold ? HoldReason(*hold) : "");
  request.risk = RiskName(sensitive ? Risk::kHigh : traits.risk);
  const OutsideSandbox outside = tool.OutsideOf(call.arguments);
  const bool leaves = outside == OutsideSandbox::kAsked;
  if (!leaves) request.allowed_decisions = {"approve"};
  const bool can_be_granted = !hold && !traits.asks_each_time && !traits.ends_planning && !leaves;
  for (const ApprovalMode mode : kModesAfterPlan) {
    if (traits.ends_planning) request.modes.emplace_back(ToString(mode));
  }
  if (can_be_granted) request.allowed_decisions.emplace_back("approve_for_chat");
  if (can_be_granted && !traits.needs_consent) request.allowed_decisions.emplace_back("approve_always");
  if (outside != OutsideSandbox::kNo) request.allowed_decisions.emplace_back(kApproveOutside);
  request.allowed_decisions.insert(request.allowed_decisions.end(), {"edit", "reject"});
  if (can_be_granted && !sensitive && !traits.needs_consent && traits.terms)
    request.patterns = tool.PatternsOf(call.arguments);
  return {std::move(request)};
}

Decision::Refuse Denied(const Hold& hold) {
  return {.why = "rule", .result = DeniedByRule(hold.rule), .is_shown = true, .decided_by = {RuleName(hold.rule)}};
}

// The lasting permission that lets a call run unasked: people's grants and the configuration's rules. nullopt if there
// is none. No pattern covers a call that has a ReasonToAsk.
std::optional<Decision::Run> AllowedBefore(const ToolCall& call, const Tool& tool,
                                           const std::optional<std::string>& sensitive, const AgentState& state,
                                           const ApprovalPolicy& policy, const ToolRules& rules) {
  const Grant key{tool.traits().spec.name, ArgumentsDigest(call.arguments), TermsDigest(tool.traits(), sensitive)};
  std::vector<std::string> patterns;
  std::vector<std::pair<std::string_view, std::string>> granted_by;  // the kind and the name of each
  std::optional<Decision::Run> equal;
  const auto look_at = [&](const std::vector<Grant>& grants, std::string_view why, Timestamp now) {
    for (const Grant& each : grants) {
      if (equal || !BearsOn(each, key, now) || MeansAnother(each, tool)) continue;
      if (each.pattern.empty()) {
        equal = Decision::Run{why, /*agreed=*/true, sensitive.has_value(), false, {GrantId(each)}};
      } else {
        patterns.push_back(each.pattern);
        granted_by.emplace_back(why, GrantId(each));
      }
    }
  };
  look_at(state.grants, "grant", Now());
  if (!equal && policy.standing_grants) look_at(policy.standing_grants(key), "standing_grant", Now());
  if (equal || sensitive) return equal;

  for (std::size_t i = 0; rules && i < rules->size(); ++i) {
    const ToolRule& rule = (*rules)[i];
    if (rule.action != RuleAction::kAllow || !SpeaksOf(rule, key.tool_name)) continue;
    if (!rule.pattern) return Decision::Run{.why = "rule", .decided_by = {RuleName(i)}};
    patterns.push_back(*rule.pattern);
    granted_by.emplace_back("rule", RuleName(i));
  }
  if (patterns.empty()) return std::nullopt;
  const auto covering = tool.CoveredBy(patterns, call.arguments);
  if (!covering) return std::nullopt;
  Decision::Run run{.why = "rule"};
  for (const std::size_t index : *covering) {
    const auto& [why, name] = granted_by.at(index);
    if (why != "rule") run.agreed = true;
    if (run.why == "rule" || why == "grant") run.why = why;
    run.decided_by.push_back(name);
  }
  return run;
}

Decision DecideAnswered(const ReviewedCall& reviewed, const AgentState& state, const ApprovalPolicy& policy,
                        const ToolRules& rules, const ShownCall& shown) {
  const auto& [call, offered, refused] = reviewed;
  const ApprovalAnswer& answer = *shown.answer;
  if (!answer.approved && !answer.superseded) return {Decision::Refuse{"rejected", RejectedResult(answer)}};
  const Tool* const tool = offered.tool;
  const auto sensitive = tool == nullptr ? std::nullopt : tool->ReasonToAsk(call.arguments);
  if (!answer.superseded) {
    if (tool == nullptr) return {Decision::Refuse{"unknown_tool", UnknownTool(call.name, *offered.tools)}};
    const std::string& arguments = answer.arguments ? *answer.arguments : call.arguments;
    const auto hold = FindHold(rules, *tool, arguments);
    if (hold && hold->action == RuleAction::kDeny) return {Denied(*hold)};
    // A person who rewrote the arguments knows what they do.
    const bool knows_secrets = sensitive || answer.arguments;
    const OutsideSandbox outside = tool->OutsideOf(arguments);
    const bool may_be_there =
        answer.outside_sandbox ? outside != OutsideSandbox::kNo : outside != OutsideSandbox::kAsked;
    if (may_be_there && TermsDigest(tool->traits(), sensitive) == shown.terms_digest) {
      return {Decision::Run{"approval", /*agreed=*/true, knows_secrets, answer.outside_sandbox}};
    }
  }
  if (auto unfit = CheckCall(call, offered, state, policy)) {
    unfit->result = kOutdatedResult;
    unfit->withdraws = true;
    return {*std::move(unfit)};
  }
  const auto hold = FindHold(rules, *tool, call.arguments);
  if (hold && hold->action == RuleAction::kDeny) return {Denied(*hold)};
  return {AskAbout(call, *tool, sensitive, hold)};
}

}  // namespace

std::optional<Decision::Refuse> CheckCall(const ToolCall& call, const OfferedTool& offered, const AgentState& state,
                                          const ApprovalPolicy& policy) {
  const auto& [tools, tool] = offered;
  const auto refuse = [](std::string why, std::string result) {
    return Decision::Refuse{std::move(why), std::move(result), /*is_shown=*/true};
  };
  if (tool == nullptr) return refuse("unknown_tool", UnknownTool(call.name, *tools));
  if (const auto valid = tools->Validate(*tool, call.arguments); !valid) {
    return refuse("invalid_arguments", "The arguments were not accepted: " + valid.error().message);
  }
  if (!policy.check_confirmations) return std::nullopt;
  auto why = FalseConfirmation(state.messages, call);
  if (!why) return std::nullopt;
  return refuse("confirmation", *std::move(why));
}

Decision Decide(const ReviewedCall& reviewed, const AgentState& state, const ApprovalPolicy& policy,
                const ShownCall* shown) {
  const ToolRules rules = Together(policy.rules, policy.added_rules ? policy.added_rules() : nullptr);
  if (shown != nullptr) return DecideAnswered(reviewed, state, policy, rules, *shown);
  const auto& [call, offered, refused] = reviewed;
  if (const auto loop = FindCallLoop(state.messages, call.id)) {
    return {Decision::Refuse{.why = "loop", .result = GoesRound(call, loop->count), .loop = loop}};
  }
  if (refused) return {*refused};

  const auto hold = FindHold(rules, *offered.tool, call.arguments);
  if (hold && hold->action == RuleAction::kDeny) return {Denied(*hold)};

  const ToolTraits& traits = offered.tool->traits();
  std::vector<ApprovalMode> modes = {policy.mode ? policy.mode(call) : ApprovalMode::kAsk};
  if (policy.also) modes.push_back(*policy.also);
  const auto has = [&](ApprovalMode mode) { return std::ranges::find(modes, mode) != modes.end(); };
  const auto sensitive = offered.tool->ReasonToAsk(call.arguments);
  if (traits.ends_planning) {  // a person decides on each plan, whatever mode or grant there is
    if (!has(ApprovalMode::kPlan)) return {Decision::Refuse{"mode", std::string(kNotPlanningResult), true}};
    if (policy.nobody_to_ask) return {Decision::Refuse{"mode", std::string(kNobodyToAskResult)}};
    return {AskAbout(call, *offered.tool, sensitive, hold)};
  }
  if (has(ApprovalMode::kPlan) && !traits.read_only) {
    return {Decision::Refuse{"mode", std::string(kPlanningResult), true}};
  }
  const bool asks_by_default = sensitive || offered.tools->RequiresApproval(*offered.tool);
  const auto can_undo = [&] {
    return traits.confined && !sensitive && policy.can_undo && policy.can_undo(traits, call.arguments);
  };
  const auto asks_in = [&](ApprovalMode mode) {
    if (mode == ApprovalMode::kApproveAll) return false;
    if (mode == ApprovalMode::kReadOnly) return sensitive.has_value() || !traits.read_only;
    return asks_by_default && !(mode == ApprovalMode::kAuto && can_undo());
  };
  bool asks = std::ranges::any_of(modes, asks_in);
  const bool leaves = offered.tool->OutsideOf(call.arguments) == OutsideSandbox::kAsked;
  if (hold || traits.asks_each_time || leaves) {  // in every mode and despite grants
    asks = true;
  } else if (traits.needs_consent) {  // no grant covers it
    asks = std::ranges::any_of(modes, [](auto mode) { return mode != ApprovalMode::kApproveAll; });
  } else if (!asks && !asks_by_default) {
    return {Decision::Run{"default"}};
  } else if (auto allowed = AllowedBefore(call, *offered.tool, sensitive, state, policy, rules)) {
    return {*std::move(allowed)};
  }
  if (!asks) return {Decision::Run{has(ApprovalMode::kAuto) && asks_by_default && can_undo() ? "auto" : "mode"}};
  if (policy.nobody_to_ask) return {Decision::Refuse{"mode", std::string(kNobodyToAskResult)}};
  if (has(ApprovalMode::kDenyAll)) return {Decision::Refuse{"mode", std::string(kRefusedResult)}};
  return {AskAbout(call, *offered.tool, sensitive, hold)};
}

bool IsOutdated(const event::ApprovalRequired& request, const ToolSet& tools) {
  const Tool* tool = tools.Find(request.tool_name);
  if (tool == nullptr || !tool->traits().terms) return false;
  return TermsDigest(tool->traits(), tool->ReasonToAsk(request.tool_input)) != request.terms_digest;
}

std::string MeaningIn(const std::vector<CallPattern>& offered, const std::optional<std::string>& pattern) {
  const auto found =
      std::ranges::find_if(offered, [&](const CallPattern& each) { return pattern && each.pattern == *pattern; });
  return found == offered.end() ? std::string() : found->means;
}

bool MeansAnother(const Grant& grant, const Tool& tool) {
  if (grant.pattern.empty() || grant.means.empty()) return false;
  const auto now = tool.MeaningOf(grant.pattern, PatternUse::kAllow);
  return !now || *now != grant.means;
}

Grant GrantOf(const event::ApprovalRequired& request, const ApprovalAnswer& answer) {
  Grant grant{.tool_name = request.tool_name,
              .arguments_digest = {},
              .terms_digest = request.terms_digest,
              .pattern = answer.pattern.value_or(""),
              .means = MeaningIn(request.patterns, answer.pattern),
              .expires_at = answer.expires_at};
  if (!answer.pattern)
    grant.arguments_digest = ArgumentsDigest(answer.arguments ? *answer.arguments : request.tool_input);
  return grant;
}

Result<StandingGrant> StandingGrantFor(const event::ApprovalRequired& request, const ApprovalAnswer& answer) {
  if (!request.allows("approve_always")) {
    return Fail(Reason::kInvalidMember, "\"scope\" cannot be \"always\": nobody has approved this tool as it is now");
  }
  const std::string& arguments = answer.arguments ? *answer.arguments : request.tool_input;
  return StandingGrant{.grant = GrantOf(request, answer),
                       .tool_input = std::string(Utf8Prefix(arguments, kMaxGrantInput)),
                       .created_at = Now()};
}

std::string RejectedResult(const ApprovalAnswer& answer) {
  std::string text = answer.expired ? "Nobody approved this call in time. It was not run."
                                    : "The user rejected this call. It was not run.";
  if (answer.feedback) text += " Their words: " + *answer.feedback;
  return text;
}

namespace {

constexpr const char* kMember = "confirmed";

struct Claim {
  bool confirmed = false;
  Json arguments = {};  // without "confirmed"
};

Claim ClaimOf(const std::string& arguments) {
  auto parsed = ParseJson(arguments);
  if (!parsed || !parsed->is_object()) return {};
  Claim claim{.confirmed = false, .arguments = *std::move(parsed)};
  if (const auto member = claim.arguments.find(kMember); member != claim.arguments.end()) {
    // Any value that a tool may take for a yes.
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

// Whether one of the messages [begin, end) makes this call and its tool requires confirmation.
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

// Whether the call was made with the confirmation between `begin` and this call.
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
  const auto last = std::find_if(messages.rbegin(), messages.rend(), IsOfPerson);
  const auto before = last == messages.rend() ? last : std::find_if(last + 1, messages.rend(), IsOfPerson);
  const auto place = [&](auto it) { return static_cast<std::size_t>(messages.rend() - it); };
  const std::size_t now = place(last), asked = place(before);  // where this turn and the previous one begin
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
