#include "engine/answers.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <variant>

#include "approval/decision.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/try.h"
#include "domain/codec.h"

namespace reprise {
namespace {

// How long an answering client waits for the record of its answer. The write goes to the page cache, in well under a
// millisecond unless the disk is dead.
constexpr std::chrono::seconds kRecordLimit{2};

// Sets when a grant ends, counted from now.
void SetExpiry(ApprovalAnswer& answer) {
  answer.expires_at.reset();
  if (!answer.approved || answer.scope == ApprovalScope::kOnce) return;
  const auto usual = answer.pattern ? kPatternLifetime : std::chrono::seconds(0);
  const auto lifetime = std::min(answer.lifetime.value_or(usual), kMaxGrantLifetime);
  if (lifetime.count() > 0) answer.expires_at = Now() + lifetime;
}

bool IsJsonObject(const std::string& text) {
  const auto json = ParseJson(text);
  return json && json->is_object();
}

void SetMode(const event::ApprovalRequired& request, ApprovalAnswer& answer) {
  if (answer.approved && !answer.mode && !request.modes.empty()) answer.mode = ApprovalMode::kAsk;
}

Error InvalidAnswer(std::string message) { return Refused(Reason::kInvalidAnswer, std::move(message)); }

}  // namespace

Result<PendingApproval> Answers::AnswerApproval(std::string_view approval_id, ApprovalAnswer answer,
                                                const std::optional<InteractionRef>& within) {
  SetExpiry(answer);
  const bool for_always = answer.approved && answer.scope == ApprovalScope::kAlways;
  if (!TRY(IsAskedHere(services_.approvals, approval_id))) {
    auto pending = FindElsewhere<ApprovalKind>(approval_id, within);
    if (!pending) return pending;
    const std::string id(approval_id);
    const InteractionRef run{pending->chat_id, pending->interaction_id};
    const auto supersede = [&] { return services_.parts.questions->Answer(run, id, kSuperseded); };
    TRY(CheckApproval(pending->chat_id, pending->request, answer, supersede));
    SetMode(pending->request, answer);
    const auto decide = [&] { return services_.parts.questions->Answer(run, id, answer); };
    const auto given = for_always ? GrantAnd(pending->request, answer, decide) : decide();
    return given.map([&] { return *pending; });
  }
  const auto found = TRY(FindOpen(services_.approvals, approval_id, within));
  const PendingApproval& pending = ApprovalRequests::PendingOf(*found);
  const auto supersede = [&] { return Give(services_.approvals, found, kSuperseded); };
  TRY(CheckApproval(pending.chat_id, pending.request, answer, supersede));
  SetMode(pending.request, answer);
  const auto run = busy_.RunOf(pending.chat_id, pending.interaction_id);  // before it can end
  const auto given = for_always ? GrantAndGive(found, answer) : Give(services_.approvals, found, answer);
  if (!given) return Fail(WhyNotGiven(given.error()));
  return KeepAnswer(run, pending.request.approval_id, std::move(answer)).map([&] { return pending; });
}

Result<void> Answers::CheckApproval(const ChatId& chat, const event::ApprovalRequired& request,
                                    const ApprovalAnswer& answer, const std::function<Result<void>()>& supersede) {
  if (answer.arguments_digest && *answer.arguments_digest != request.arguments_digest) {
    return Fail(Reason::kDigestMismatch, "arguments_digest is not the digest of the arguments that wait for approval");
  }
  if (answer.mode && (!answer.approved || request.modes.empty())) {
    return Fail(InvalidAnswer("\"mode\" is only for the approval of a plan"));
  }
  if (answer.outside_sandbox && !(answer.approved && request.allows(kApproveOutside))) {
    return Fail(InvalidAnswer("\"outside_sandbox\" is only for the approval of a call that may leave its sandbox"));
  }
  if (answer.outside_sandbox && answer.scope != ApprovalScope::kOnce) {
    return Fail(InvalidAnswer("\"scope\" must be \"once\": \"outside_sandbox\" is for one call"));
  }
  if (!answer.approved) return {};
  if (answer.mode && std::ranges::find(request.modes, ToString(*answer.mode)) == request.modes.end()) {
    return Fail(InvalidAnswer("\"mode\" must be one of those in approval_required.modes"));
  }
  TRY(CheckGrant(request, answer));
  const auto workspace = TRY(busy_.WorkspaceOf(chat));
  const auto tools = services_.editors.ToolsNow(chat, workspace->tools);
  if (IsOutdated(request, *tools)) {
    if (auto withdrawn = supersede(); !withdrawn) return Fail(WhyNotGiven(withdrawn.error()));
    return Fail(Reason::kStale,
                "the tool, or where it would run, is not what was shown any more; the call was not approved "
                "and is asked about again");
  }
  const Tool* const tool = tools->Find(request.tool_name);
  if (answer.arguments) {
    if (tool == nullptr) return Fail(ErrorCode::kNotFound, "the tool is not there any more");
    if (auto valid = tools->Validate(*tool, *answer.arguments); !valid) return valid;
  }
  if (tool != nullptr) {
    const std::string& arguments = answer.arguments ? *answer.arguments : request.tool_input;
    if (!answer.outside_sandbox && tool->OutsideOf(arguments) == OutsideSandbox::kAsked) {
      return Fail(
          InvalidAnswer("this call asks to run outside the sandbox, which needs \"outside_sandbox\": true; "
                        "other arguments keep it inside"));
    }
    const auto hold = FindHold(services_.RulesIn(*workspace), *tool, arguments);
    if (hold && hold->action == RuleAction::kDeny) {
      return Fail(Reason::kDeniedByRule,
                  RuleName(hold->rule) + " of this server denies this call; reject it, or send other arguments");
    }
  }
  return DropOutdatedGrants(tool);
}

Result<void> Answers::CheckGrant(const event::ApprovalRequired& request, const ApprovalAnswer& answer) {
  if (answer.scope != ApprovalScope::kOnce && !request.allows("approve_for_chat")) {
    return Fail(InvalidAnswer("\"scope\" must be \"once\": each such call is asked about"));
  }
  if (!answer.pattern) return {};
  if (answer.scope == ApprovalScope::kOnce) {
    return Fail(InvalidAnswer("\"pattern\" needs the \"scope\" \"chat\" or \"always\""));
  }
  if (answer.arguments) {
    return Fail(InvalidAnswer("\"pattern\" does not go with \"arguments\": it was offered for those that were shown"));
  }
  if (std::ranges::none_of(request.patterns,
                           [&](const CallPattern& each) { return each.pattern == *answer.pattern; })) {
    return Fail(InvalidAnswer("\"pattern\" must be one of those in approval_required.patterns"));
  }
  return {};
}

Result<PendingInput> Answers::AnswerInput(std::string_view request_id, InputAnswer answer,
                                          const std::optional<InteractionRef>& within) {
  if (!TRY(IsAskedHere(services_.inputs, request_id))) {
    auto pending = FindElsewhere<InputKind>(request_id, within);
    if (!pending) return pending;
    TRY(CheckInput(pending->request, answer));
    return services_.parts.questions
        ->Answer({pending->chat_id, pending->interaction_id}, std::string(request_id), answer)
        .map([&] { return *pending; });
  }
  const auto found = TRY(FindOpen(services_.inputs, request_id, within));
  const PendingInput& pending = InputRequests::PendingOf(*found);
  TRY(CheckInput(pending.request, answer));
  const auto run = busy_.RunOf(pending.chat_id, pending.interaction_id);  // before it can end
  if (auto given = Give(services_.inputs, found, answer); !given) return Fail(WhyNotGiven(given.error()));
  return KeepAnswer(run, pending.request.request_id, std::move(answer)).map([&] { return pending; });
}

Result<void> Answers::CheckInput(const event::InputRequired& request, const InputAnswer& answer) const {
  if (!request.schema || !answer.response) return {};
  if (!IsJsonObject(*answer.response)) {
    return Fail(InvalidAnswer("\"response\" must be a JSON object, as the question's schema says"));
  }
  return services_.parts.check_form ? services_.parts.check_form(*request.schema, *answer.response) : Result<void>();
}

template <typename Kind>
Result<void> Answers::Give(Requests<Kind>& requests, const typename Requests<Kind>::Found& found,
                           const typename Kind::Answer& answer) {
  return requests.Claim(found).and_then([&] { return Settle(requests, found, answer); });
}

template <typename Kind>
Result<void> Answers::Settle(Requests<Kind>& requests, const typename Requests<Kind>::Found& found,
                             const typename Kind::Answer& answer) {
  QuestionStore* const questions = services_.parts.questions;
  if (questions == nullptr) return requests.Settle(found, answer);
  const auto& asked = Requests<Kind>::PendingOf(*found);
  auto decided = questions->Answer({asked.chat_id, asked.interaction_id}, asked.request.*Kind::kId, answer);
  // If another answer came first, it is on its way here.
  auto settled = requests.Settle(found, decided ? std::optional(answer) : std::nullopt);
  return decided ? settled : decided;
}

template <typename Kind>
Result<bool> Answers::IsAskedHere(const Requests<Kind>& requests, std::string_view id) const {
  if (!services_.parts.questions) return true;
  const auto found = requests.Find(id, std::nullopt);
  if (!found) return false;
  const auto& pending = Requests<Kind>::PendingOf(**found);
  const auto run = busy_.RunOf(pending.chat_id, pending.interaction_id);
  if (!run) return true;
  return run->hold()->IsHeldNow();  // false if another process has taken the run up and asks there
}

template <typename Kind>
Result<typename Kind::Pending> Answers::FindElsewhere(std::string_view id,
                                                      const std::optional<InteractionRef>& within) const {
  auto question = services_.parts.questions->Find(std::string(id));
  const bool is_gone = !question && IsNotFound(question.error());
  if (is_gone && within && WasAsked<Kind>(id, *within)) return Fail(AlreadyProcessed<Kind>());
  if (is_gone) return Fail(NeverAsked<Kind>());
  if (!question) return Fail(std::move(question.error()));
  auto* const pending = std::get_if<typename Kind::Pending>(&*question);
  const bool is_meant = pending && (!within || QuestionRun(*question) == *within);
  if (!is_meant) return Fail(NeverAsked<Kind>());
  return std::move(*pending);
}

void Answers::TakeFromOthers(const std::optional<InteractionRef>& of) {
  QuestionStore* const questions = services_.parts.questions;
  if (questions == nullptr) return;
  for (const auto& run : busy_.Runs()) {
    if (of && of->interaction_id != run->id()) continue;
    if (of && of->chat_id != run->chat_id()) continue;
    if (run->status() == InteractionStatus::kRunning) continue;  // it has no open question
    const auto answered = questions->Answered({run->chat_id(), run->id()});
    if (!answered) {
      LogWarning("answers of other servers could not be read",
                 {{"chat", run->chat_id().str()}, {"detail", answered.error().detail}});
      continue;
    }
    for (const auto& [id, answer] : *answered) {
      // An answer that was given here is no longer found.
      if (const auto* const approval = std::get_if<ApprovalAnswer>(&answer)) {
        if (const auto found = services_.approvals.Find(id, std::nullopt)) {
          static_cast<void>(services_.approvals.Give(*found, *approval));
        }
      } else if (const auto found = services_.inputs.Find(id, std::nullopt)) {
        static_cast<void>(services_.inputs.Give(*found, std::get<InputAnswer>(answer)));
      }
    }
  }
}

namespace {

// Adds the questions of this kind in `all` that are not in `here`.
template <typename Pending, typename Id>
void AddOthers(std::vector<Pending>& here, const std::vector<PendingQuestion>& all, Id id) {
  for (const PendingQuestion& question : all) {
    const auto* const pending = std::get_if<Pending>(&question);
    if (!pending) continue;
    const auto is_it = [&](const Pending& each) { return each.request.*id == pending->request.*id; };
    if (std::ranges::none_of(here, is_it)) here.push_back(*pending);
  }
}

}  // namespace

std::vector<PendingApproval> Answers::Approvals() const {
  auto waiting = services_.approvals.Waiting();
  if (!services_.parts.questions) return waiting;
  if (const auto all = services_.parts.questions->Waiting()) AddOthers(waiting, *all, ApprovalKind::kId);
  return waiting;
}

std::vector<PendingInput> Answers::Inputs() const {
  auto waiting = services_.inputs.Waiting();
  if (!services_.parts.questions) return waiting;
  if (const auto all = services_.parts.questions->Waiting()) AddOthers(waiting, *all, InputKind::kId);
  return waiting;
}

Result<PendingApproval> Answers::FindApproval(std::string_view approval_id) const {
  if (!TRY(IsAskedHere(services_.approvals, approval_id))) {
    return FindElsewhere<ApprovalKind>(approval_id, std::nullopt);
  }
  return services_.approvals.Find(approval_id, std::nullopt).map([](const auto& found) {
    return ApprovalRequests::PendingOf(*found);
  });
}

Result<FileChange> Answers::PreviewChange(std::string_view approval_id) const {
  const auto pending = FindApproval(approval_id);
  if (!pending) return Fail(ErrorCode::kNotFound, "no such approval waits");
  const auto workspace = TRY(busy_.WorkspaceOf(pending->chat_id));
  const auto tools = services_.editors.ToolsNow(pending->chat_id, workspace->tools);
  const Tool* const tool = tools->Find(pending->request.tool_name);
  if (tool == nullptr) return Fail(NoChangeToShow("the tool is not there any more"));
  // A restart may have changed the workspace, so that its files are not those the question is about.
  if (IsOutdated(pending->request, *tools)) {
    return Fail(NoChangeToShow("the tool, or where it would run, is not what was shown any more"));
  }
  return tool->PreviewChange(pending->request.tool_input);
}

template <typename Kind>
Result<typename Requests<Kind>::Found> Answers::FindOpen(const Requests<Kind>& requests, std::string_view id,
                                                         const std::optional<InteractionRef>& within) const {
  auto found = requests.Find(id, within);
  if (found) return found;
  if (within && IsNotFound(found.error()) && WasAsked<Kind>(id, *within)) return Fail(AlreadyProcessed<Kind>());
  return Fail(WhyNotGiven(found.error()));
}

template <typename Kind>
bool Answers::WasAsked(std::string_view id, const InteractionRef& within) const {
  const auto stored = interactions_.Find(within.chat_id, within.interaction_id);
  return stored && std::ranges::any_of(stored->events, [&](const AgentEvent& each) {
           const auto* request = std::get_if<decltype(Kind::Pending::request)>(&each.payload);
           return request != nullptr && request->*Kind::kId == id;
         });
}

// A request that is gone while the engine stops need not have been answered; the next engine may ask again.
Error Answers::WhyNotGiven(const Error& error) const {
  return busy_.is_stopping() && error.Is(Reason::kAlreadyProcessed) ? Stopping() : error;
}

// The grant is stored before the answer, because an agent that reads the answer may make its next call at once.
Result<void> Answers::GrantAnd(const event::ApprovalRequired& request, const ApprovalAnswer& answer,
                               const std::function<Result<void>()>& give) {
  GrantStore* const grants = services_.parts.grants;
  if (grants == nullptr) return Fail(InvalidAnswer("\"scope\" cannot be \"always\": this server keeps no grants"));
  const auto grant = TRY(StandingGrantFor(request, answer));
  const bool added = TRY(grants->Add(grant));
  auto given = give();
  // Another answer came first, or the run was stopped meanwhile.
  if (!given && added) static_cast<void>(grants->Remove(GrantId(grant.grant)));
  return given;
}

Result<void> Answers::GrantAndGive(const ApprovalRequests::Found& found, const ApprovalAnswer& answer) {
  if (auto claimed = services_.approvals.Claim(found); !claimed) return claimed;
  bool is_settled = false;
  const auto settle = [&] { return is_settled = true, Settle(services_.approvals, found, answer); };
  auto given = GrantAnd(ApprovalRequests::PendingOf(*found).request, answer, settle);
  if (!is_settled) static_cast<void>(services_.approvals.Settle(found, std::nullopt));
  return given;
}

Result<void> Answers::DropOutdatedGrants(const Tool* tool) {
  GrantStore* const store = services_.parts.grants;
  if (store == nullptr || tool == nullptr || !tool->traits().needs_consent) return {};
  const auto grants = store->List();
  if (!grants && grants.error().code == ErrorCode::kCorruption) return {};  // then nothing is granted
  if (!grants) return Fail(grants.error());
  for (const StandingGrant& each : *grants) {
    if (each.grant.tool_name != tool->traits().spec.name) continue;
    auto removed = store->Remove(GrantId(each.grant));
    if (!removed && !IsNotFound(removed.error())) return removed;
  }
  return {};
}

// On a thread of its own, because a dead disk must not block the caller, and waiting runs must not delay the record.
Result<void> Answers::KeepAnswer(const std::shared_ptr<Run>& run, const std::string& id, GivenAnswer answer) {
  if (!run) return {};
  const auto kept = std::make_shared<std::promise<Result<void>>>();
  auto outcome = kept->get_future();
  try {
    services_.control.Submit(
        [run, id, answer = std::move(answer), kept] { kept->set_value(run->KeepAnswer(id, answer)); });
  } catch (const std::system_error& error) {
    return Fail(NoThreads(error.what()));
  }
  if (outcome.wait_for(kRecordLimit) == std::future_status::ready) return outcome.get();
  return Fail(Reason::kNotOnRecord, "the answer was taken, but the disk does not respond");
}

}  // namespace reprise
