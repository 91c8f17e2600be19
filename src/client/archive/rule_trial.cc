#include "client/archive/rule_trial.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <tuple>

#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"

namespace reprise {
namespace {

constexpr std::size_t kMostCandidates = 100;  // each is compared with all calls of its tool

// Every tool of today, and one more.
class WithOneMore final : public ToolSet {
 public:
  WithOneMore(std::shared_ptr<const ToolSet> rest, Tool& more) : rest_(std::move(rest)), more_(more) {}
  Tool* Find(std::string_view name) const override {
    return name == more_.traits().spec.name ? &more_ : rest_->Find(name);
  }
  // Its schema is the server's.
  Result<void> Validate(const Tool& tool, std::string_view arguments) const override {
    return &tool == &more_ ? Result<void>() : rest_->Validate(tool, arguments);
  }
  const std::vector<Tool*>& tools() const override { return rest_->tools(); }
  const std::vector<ToolSpec>& specs() const override { return rest_->specs(); }
  bool RequiresApproval(const Tool& tool) const override {
    return &tool == &more_ ? tool.traits().requires_approval : rest_->RequiresApproval(tool);
  }

 private:
  const std::shared_ptr<const ToolSet> rest_;
  Tool& more_;
};

ToolRules With(const ToolRules& rules, ToolRule more) {
  std::vector<ToolRule> all = rules ? *rules : std::vector<ToolRule>();
  all.push_back(std::move(more));
  return std::make_shared<const std::vector<ToolRule>>(std::move(all));
}

std::string NamesOr(const std::vector<std::string>& names, std::string_view otherwise) {
  return names.empty() ? std::string(otherwise) : Joined(names, ", ");
}

}  // namespace

bool TriedCall::is_new_refusal() const {
  return verdict == Verdict::kRefused &&
         (call->fate == PastCall::Fate::kRan || call->fate == PastCall::Fate::kApproved ||
          call->fate == PastCall::Fate::kChanged);
}

// A tool of an MCP server that is not connected, as far as the record of a call tells.
class RuleTrial::ToolOfServer final : public Tool {
 public:
  explicit ToolOfServer(const PastCall& call) {
    traits_.spec = {.name = call.call.name, .description = {}, .parameters = R"({"type":"object"})"};
    traits_.read_only = traits_.idempotent = false;
    traits_.requires_approval = call.permission != "default";
    // Then the answer was the consent, which cannot be for all chats.
    traits_.needs_consent =
        call.asked && call.asked->allows("approve_for_chat") && !call.asked->allows("approve_always");
  }
  const ToolTraits& traits() const override { return traits_; }
  Result<std::string> MeaningOf(std::string_view pattern, PatternUse) const override {
    return every_call::MeaningOf(pattern, "Every call of " + traits_.spec.name + ".");
  }
  std::optional<std::vector<std::size_t>> CoveredBy(const std::vector<std::string>& patterns,
                                                    std::string_view) const override {
    return every_call::CoveredBy(patterns);
  }
  Touch Touches(std::string_view, std::string_view) const override { return Touch::kYes; }
  ToolOutcome Run(std::string_view, const ToolContext&) override {
    return {.output = "This tool stands for one of the past.", .is_error = true};
  }

 private:
  ToolTraits traits_;
};

struct RuleTrial::Place {
  PresentAgent agent;
  std::shared_ptr<const ToolSet> tools;
  std::vector<std::string> servers{};

  const ToolRules& rules() const { return agent.options.rules; }
};

// The tool of a call.
struct RuleTrial::Found {
  const Place* place;
  OfferedTool offered;
  std::shared_ptr<Tool> of_server{};  // what `offered` names, if it is of a server
};

RuleTrial::RuleTrial(AgentIn agent_in) : agent_in_(std::move(agent_in)) {}
RuleTrial::~RuleTrial() = default;

Result<RuleTrial::Place*> RuleTrial::In(const std::string& folder) {
  auto found = places_.find(folder);
  if (found == places_.end()) {
    auto opened = agent_in_(folder).map([](PresentAgent agent) {
      auto place = std::make_unique<Place>(Place{.agent = agent, .tools = agent.workspace.tools.Current()});
      for (const ToolServer& server : agent.workspace.tools.Servers()) place->servers.push_back(server.name);
      return place;
    });
    found = places_.emplace(folder, std::move(opened)).first;
  }
  if (!found->second) return Fail(found->second.error());
  return found->second->get();
}

Result<RuleTrial::Found> RuleTrial::Find(const PastCall& call) {
  const Place* const place = TRY(In(call.workspace));
  const std::string& name = call.call.name;
  if (Tool* const tool = place->tools->Find(name)) return Found{place, {place->tools, tool}};
  const bool is_of_server =
      std::ranges::any_of(place->servers, [&](const std::string& server) { return name.starts_with(server + "__"); });
  if (!is_of_server) return Fail(ErrorCode::kNotFound, "there is no tool " + name + " now");
  auto tool = std::make_shared<ToolOfServer>(call);
  return Found{place, {std::make_shared<WithOneMore>(place->tools, *tool), tool.get()}, tool};
}

// The mode is on record only by what it did. A call that asked although its tool does not was asked about by a rule, or
// in ApprovalMode::kReadOnly.
ApprovalMode RuleTrial::ModeThen(const PastCall& call, const Found& found) {
  const auto& [tools, tool] = found.offered;
  const ToolTraits& traits = tool->traits();
  if (traits.ends_planning || call.refused_for_plan) return ApprovalMode::kPlan;
  if (call.permission == "mode") return ApprovalMode::kApproveAll;
  if (call.permission == "auto") return ApprovalMode::kAuto;
  const bool asks_by_default = tools->RequiresApproval(*tool) || traits.needs_consent || traits.asks_each_time ||
                               tool->ReasonToAsk(call.call.arguments);
  if (!call.was_asked() || asks_by_default || traits.read_only) return ApprovalMode::kAsk;
  return FindHold(found.place->rules(), *tool, call.call.arguments) ? ApprovalMode::kAsk : ApprovalMode::kReadOnly;
}

// `as`: the call, perhaps with other arguments.
Decision RuleTrial::DecideOn(const PastCall& call, const ToolCall& as, const Found& found, const ToolRules& rules) {
  ApprovalPolicy policy{
      .nobody_to_ask = call.fate == PastCall::Fate::kRefusedByMode, .check_confirmations = false, .rules = rules};
  policy.mode = [mode = ModeThen(call, found)](const ToolCall&) { return mode; };
  if (call.permission == "auto") policy.can_undo = [](const ToolTraits&, std::string_view) { return true; };
  AgentState state;
  if (call.permission == "grant" || call.permission == "standing_grant") {
    const Tool& tool = *found.offered.tool;
    state.grants.push_back({.tool_name = as.name,
                            .arguments_digest = ArgumentsDigest(as.arguments),
                            .terms_digest = TermsDigest(tool.traits(), tool.ReasonToAsk(as.arguments))});
  }
  return Decide({as, found.offered}, state, policy);
}

TriedCall RuleTrial::Try(const PastCall& call, const ToolRules& rules) {
  TriedCall tried{.call = &call};
  if (call.fate == PastCall::Fate::kUnknown) return tried.why = "the audit log does not have them", tried;
  if (call.fate == PastCall::Fate::kRefused) return tried.why = "they were refused before any rule counted", tried;
  const auto found = Find(call);
  if (const auto place = In(call.workspace); !found && place) {
    const auto& is_denied = (*place)->agent.is_denied;
    if (is_denied && is_denied(call.call.name)) {
      tried.verdict = TriedCall::Verdict::kRefused;
      return tried.why = "tools.allow and tools.deny", tried;
    }
  }
  if (!found) return tried.why = found.error().message, tried;
  if (!found->offered.tools->Validate(*found->offered.tool, call.call.arguments)) {
    return tried.why = "their arguments do not fit the tool " + call.call.name + " of today", tried;
  }
  const Decision decision = DecideOn(call, call.call, *found, rules);
  if (const Decision::Run* const run = decision.run()) {
    tried.verdict = TriedCall::Verdict::kRuns;
    const bool is_of_grant = run->why == "grant";  // of one that stands for what was granted then
    tried.why = is_of_grant ? std::string(run->why) : NamesOr(run->decided_by, run->why);
  } else if (const Decision::Refuse* const refuse = decision.refuse()) {
    tried.verdict = TriedCall::Verdict::kRefused;
    tried.why = NamesOr(refuse->decided_by, refuse->why);
  } else {
    tried.verdict = TriedCall::Verdict::kAsks;
    const auto hold = FindHold(rules, *found->offered.tool, call.call.arguments);
    tried.why = hold ? RuleName(hold->rule) : "default";
  }
  return tried;
}

// Equal calls with equal answers.
struct RuleTrial::Evidence {
  ToolCall as;  // as it ran, or as it was held back
  Found found;
  std::vector<const PastCall*> calls{};
};

// A rule, and the calls that speak for it.
struct RuleTrial::Candidate {
  ToolRule rule;
  std::size_t rank = 0;  // the narrowest have 0
  std::vector<const PastCall*> calls{};
};

namespace {

std::set<ChatId> ChatsOf(const std::vector<const PastCall*>& calls) {
  std::set<ChatId> chats;
  for (const PastCall* const each : calls) chats.insert(each->chat);
  return chats;
}

bool IsEnough(const std::vector<const PastCall*>& calls) {
  return calls.size() >= RuleTrial::kLeastServed && ChatsOf(calls).size() >= RuleTrial::kLeastChats;
}

// The patterns of rules that allow calls of this tool.
std::vector<std::string> AllowedPatterns(const ToolRules& rules, const std::string& tool) {
  std::vector<std::string> patterns;
  for (std::size_t i = 0; rules && i < rules->size(); ++i) {
    const ToolRule& rule = (*rules)[i];
    if (rule.action == RuleAction::kAllow && rule.pattern && SpeaksOf(rule, tool)) patterns.push_back(*rule.pattern);
  }
  return patterns;
}

}  // namespace

// Those that people allowed and that would ask today, or those that were held back.
std::vector<RuleTrial::Evidence> RuleTrial::Collect(const std::vector<PastCall>& calls, bool allowed) {
  std::map<std::tuple<std::string, std::string, std::string, ApprovalMode, bool>, Evidence> all;
  for (const PastCall& each : calls) {
    const bool was_allowed = each.fate == PastCall::Fate::kApproved || each.fate == PastCall::Fate::kChanged;
    if (allowed ? !was_allowed || each.outside_sandbox : !each.was_held_back()) continue;
    auto found = Find(each);
    if (!found) continue;
    ToolCall as = each.call;
    if (allowed && each.fate == PastCall::Fate::kChanged) as.arguments = each.changed_to;
    const bool needs_consent = found->offered.tool->traits().needs_consent;
    Evidence& evidence = all.try_emplace({each.workspace, as.name, as.arguments, ModeThen(each, *found), needs_consent},
                                         Evidence{as, *found})
                             .first->second;
    evidence.calls.push_back(&each);
  }
  std::vector<Evidence> kept;
  for (auto& [key, evidence] : all) {
    const auto& [as, found, same] = evidence;
    const bool fits = found.offered.tools->Validate(*found.offered.tool, as.arguments).has_value();
    if (!fits || (allowed && !DecideOn(*same.front(), as, found, found.place->rules()).ask())) continue;
    kept.push_back(std::move(evidence));
  }
  return kept;
}

// Whether the rule, on top of those of today, lets the call run.
bool RuleTrial::LetsRun(const ToolRule& rule, const Evidence& evidence) {
  const auto& [as, found, calls] = evidence;
  if (rule.tool != as.name) return false;
  if (rule.pattern) {  // a decision takes longer
    auto patterns = AllowedPatterns(found.place->rules(), as.name);
    patterns.push_back(*rule.pattern);
    if (!found.offered.tool->CoveredBy(patterns, as.arguments)) return false;
  }
  const ToolRules rules = With(found.place->rules(), rule);
  const Decision decision = DecideOn(*calls.front(), as, found, rules);
  const Decision::Run* const run = decision.run();
  return run != nullptr && std::ranges::find(run->decided_by, RuleName(rules->size() - 1)) != run->decided_by.end();
}

// The rules for which enough of the calls speak by themselves, the narrowest first. A built-in tool without patterns
// has none, because a rule could only allow every call of it.
std::vector<RuleTrial::Candidate> RuleTrial::CandidatesOf(const std::vector<Evidence>& allowed) {
  std::map<std::pair<std::string, std::optional<std::string>>, Candidate> all;
  const auto add = [&](const Evidence& evidence, std::optional<std::string> pattern, std::size_t rank) {
    Candidate& candidate = all[{evidence.as.name, pattern}];
    candidate.rule = {.tool = evidence.as.name, .pattern = std::move(pattern), .action = RuleAction::kAllow};
    candidate.rank = std::max(candidate.rank, rank);
    candidate.calls.insert(candidate.calls.end(), evidence.calls.begin(), evidence.calls.end());
  };
  for (const Evidence& each : allowed) {
    if (each.found.of_server) {
      add(each, std::nullopt, 0);
      continue;
    }
    const auto patterns = each.found.offered.tool->PatternsOf(each.as.arguments);
    for (std::size_t i = 0; i < patterns.size(); ++i) add(each, patterns[i].pattern, i);
  }
  std::vector<Candidate> enough;
  for (auto& [key, candidate] : all) {
    if (IsEnough(candidate.calls)) enough.push_back(std::move(candidate));
  }
  std::ranges::stable_sort(enough, std::greater<>(), [](const Candidate& each) { return each.calls.size(); });
  if (enough.size() > kMostCandidates) enough.erase(enough.begin() + kMostCandidates, enough.end());
  std::ranges::stable_sort(enough, {}, &Candidate::rank);
  return enough;
}

std::vector<SuggestedRule> RuleTrial::Suggest(const std::vector<PastCall>& calls) {
  const auto allowed = Collect(calls, /*allowed=*/true), held_back = Collect(calls, /*allowed=*/false);
  struct Kept {
    Candidate candidate;
    std::set<const Evidence*> serves;
  };
  std::vector<Kept> kept;
  std::set<const Evidence*> served;
  for (Candidate& next : CandidatesOf(allowed)) {
    if (std::ranges::any_of(held_back, [&](const Evidence& each) { return LetsRun(next.rule, each); })) continue;
    std::set<const Evidence*> serves;
    std::vector<const PastCall*> gained;
    next.calls.clear();
    for (const Evidence& each : allowed) {
      if (!LetsRun(next.rule, each)) continue;
      serves.insert(&each);
      next.calls.insert(next.calls.end(), each.calls.begin(), each.calls.end());
      if (!served.contains(&each)) gained.insert(gained.end(), each.calls.begin(), each.calls.end());
    }
    if (!IsEnough(gained)) continue;
    served.insert(serves.begin(), serves.end());
    std::erase_if(kept, [&](const Kept& narrower) { return std::ranges::includes(serves, narrower.serves); });
    kept.push_back({std::move(next), std::move(serves)});
  }
  std::vector<SuggestedRule> suggested;
  for (const auto& [candidate, serves] : kept) {
    const Found& found = (*serves.begin())->found;
    if (!CheckRules({candidate.rule}, *found.place->tools, found.place->servers)) continue;
    suggested.push_back({.rule = candidate.rule,
                         .means = RuleMeaning(candidate.rule, *found.offered.tool),
                         .served = candidate.calls.size(),
                         .chats = ChatsOf(candidate.calls)});
  }
  std::ranges::stable_sort(suggested, std::greater<>(), &SuggestedRule::served);
  return suggested;
}

}  // namespace reprise
