#include "agent/call_runner.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <nlohmann/json.hpp>

#include "agent/history.h"
#include "agent/prompt.h"
#include "agent/retry_policy.h"
#include "agent/sub_agent.h"
#include "agent/told.h"
#include "approval/audit_lines.h"
#include "approval/loop_guard.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/text.h"
#include "domain/codec.h"
#include "domain/kept_output.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxLiveOutput = 256 * 1024;  // per call, as tool_output_delta; its result has its own limit
constexpr std::string_view kNoMoreLiveOutput = "\n(... more follows; it is not shown while the tool runs)\n";
constexpr std::size_t kMaxTogether = 8;  // concurrent calls of a round

ToolOutcome Failure(std::string_view text) { return {.output = std::string(text), .is_error = true}; }

// The model's original call; null if it is not in the state.
const ToolCall* AsMade(const Messages& messages, const std::string& id) {
  const auto calling = std::find_if(messages.rbegin(), messages.rend(),
                                    [](const Message& message) { return message.role == Role::kAssistant; });
  if (calling == messages.rend()) return nullptr;
  const auto call = std::ranges::find(calling->tool_calls, id, &ToolCall::id);
  return call == calling->tool_calls.end() ? nullptr : &*call;
}

bool MayRunBeside(const ToolTraits& traits) {
  return traits.concurrency == Concurrency::kAllowed ||
         (traits.concurrency == Concurrency::kIfReadOnly && traits.read_only);
}

std::string_view DecisionName(const ApprovalAnswer& answer) {
  if (answer.superseded) return "superseded";
  if (answer.expired) return "expired";
  return answer.approved ? "approved" : "rejected";
}

void EndWait(Span& wait, std::string_view approval_id, std::string_view decision) {
  wait.Set("reprise.approval.id", std::string(approval_id));
  wait.Set("reprise.approval.decision", std::string(decision));
  wait.End();
}

// The grant for the chat that the answer gives.
Grant GrantOf(const OpenCall& asked) {
  const ApprovalAnswer& answer = *asked.answer;
  return {.tool_name = asked.call.name,
          .arguments_digest = answer.pattern ? "" : ArgumentsDigest(answer.arguments.value_or(asked.call.arguments)),
          .terms_digest = asked.terms_digest,
          .pattern = answer.pattern.value_or(""),
          .means = MeaningIn(asked.patterns, answer.pattern),
          .expires_at = answer.expires_at};
}

// Adds a grant, replacing an equal one and removing expired ones.
void AddGrant(std::vector<Grant>& grants, Grant grant) {
  std::erase_if(grants, [id = GrantId(grant), now = Now()](const Grant& each) {
    return each.has_expired(now) || GrantId(each) == id;
  });
  grants.push_back(std::move(grant));
}

std::string TermsOf(const OfferedTool& offered) {
  return offered.tool == nullptr ? std::string() : TermsDigest(offered.tool->traits());
}

}  // namespace

CallRunner::CallRunner(Turn& turn) : turn_(turn) {
  std::ranges::copy_if(turn.state.grants, std::back_inserter(hosts_),
                       [](const Grant& each) { return each.tool_name == kNetworkTool; });
}

Async<Nothing> CallRunner::Run(std::vector<ToolCall> made) {
  turn_.usage_before_calls = turn_.usage;
  std::vector<PreparedCall> prepared;
  for (const ToolCall& call : made) prepared.push_back(Prepare(call, {turn_.tools, turn_.tools->Find(call.name)}));
  for (std::size_t next = 0; next < prepared.size();) {
    const Calls rest = Calls(prepared).subspan(next);
    if (const Calls together = ThatRunTogether(rest); together.size() > 1) {
      co_await RunTogether(together);
      next += together.size();
    } else if (const Calls asking = ThatAskTogether(rest); !asking.empty()) {
      co_await Ask(asking);
      next += asking.size();
    } else {
      co_await RunAlone(rest.front(), made[next]);
      ++next;
    }
  }
  co_return Nothing{};
}

Async<Nothing> CallRunner::Finish(std::vector<OpenCall> left) {
  std::vector<AskedCall> asked;
  std::vector<ToolCall> others;
  for (OpenCall& each : left) {
    if (each.was_shown()) {
      Tool* const tool = turn_.tools->Find(each.call.name);
      asked.push_back({.open = std::move(each), .offered = {turn_.tools, tool}});
      if (asked.back().open.waits()) BeginCallSpans(asked.back());
    } else {
      others.push_back(std::move(each.call));
    }
  }
  co_await RunAsked(std::move(asked));
  co_await Run(std::move(others));
  co_return Nothing{};
}

// --- before a call runs ----------------------------------------------------------------------------------------------

// The tool's current offer; `before` if nothing has changed.
OfferedTool CallRunner::OfferedNow(const OfferedTool& before, const std::string& name) const {
  if (before.tool != nullptr) before.tool->AwaitOffer(turn_.stop);
  auto now = turn_.parts.tools.Current();
  if (now == before.tools) return before;
  Tool* const tool = now->Find(name);
  return {std::move(now), tool};
}

CallRunner::PreparedCall CallRunner::Prepare(const ToolCall& call, OfferedTool offered) const {
  PreparedCall prepared;
  prepared.call = call;
  prepared.offered = std::move(offered);
  prepared.refused = CheckCall(call, prepared.offered, turn_.state, turn_.policy);
  return prepared;
}

// The model called the tool that existed when the round began, but the current one decides who is asked, and runs.
void CallRunner::Renew(PreparedCall& call) const {
  OfferedTool now = OfferedNow(call.offered, call.call.name);
  if (now.tool == call.offered.tool) return;
  if (now.tool != nullptr && TermsOf(now) == TermsOf(call.offered)) {
    call.offered = std::move(now);
    return;
  }
  const bool is_reviewed = call.is_reviewed;
  call = Prepare(call.call, std::move(now));
  call.is_reviewed = is_reviewed;
}

// Runs before any person is asked about the call, and after the calls before it, so that hooks can see their effects.
void CallRunner::Review(PreparedCall& call) const {
  const auto is_settled = [&] { return call.refused || is_stopped() || turn_.goes_round; };
  const auto refuse = [&](std::string why, std::string result) {
    call.refused = {.why = std::move(why), .result = std::move(result), .is_shown = true};
  };
  if (!is_settled()) Renew(call);
  if (call.is_reviewed || is_settled()) return;
  call.is_reviewed = true;
  if (turn_.parts.guard != nullptr) {
    CallGuard::Verdict verdict = turn_.parts.guard->Review(turn_.round, call.call, turn_.stop);
    if (verdict.refusal) return refuse("hook", *std::move(verdict.refusal));
    if (verdict.arguments) {
      const auto valid = call.offered.tools->Validate(*call.offered.tool, *verdict.arguments);
      if (!valid) {
        return refuse("hook", "A hook made the arguments into what is not accepted: " + valid.error().message);
      }
      call.call.arguments = *std::move(verdict.arguments);
    }
  }
  if (!turn_.parts.guards.refuse_call) return;
  if (auto why = turn_.parts.guards.refuse_call()) refuse("rate", *std::move(why));
}

std::optional<std::string> CallRunner::FailureOf(const PreparedCall& call) const {
  if (call.decision.ask() == nullptr) return std::nullopt;
  ToolContext context{.stop = turn_.stop, .on_output = {}, .ask = {}};
  context.editor = turn_.parts.editor;
  return call.offered.tool->FailureOf(call.call.arguments, context);
}

// The longest prefix of `calls` that `fits` accepts; each call in it is reviewed and decided. Later calls are reviewed
// later, except one that stopped fitting because of its review.
template <typename Fits>
CallRunner::Calls CallRunner::TakeWhile(Calls calls, const Fits& fits) const {
  std::size_t end = 0;
  for (; end < calls.size(); ++end) {
    PreparedCall& next = calls[end];
    if (end > 0) {
      DecideNow(next);
      if (!fits(calls.first(end), next)) break;
    }
    Review(next);
    DecideNow(next);
    // Only for the first, because earlier calls may let the others succeed.
    if (end == 0 && !std::exchange(next.is_tried, true)) next.failure = FailureOf(next);
    if (end == 0 && next.failure) {
      next.decision = {Decision::Refuse{.why = "would_fail", .result = *next.failure, .is_shown = true}};
    }
    if (!fits(calls.first(end), next)) break;
  }
  return calls.first(end);
}

// Calls that need no answer and whose tools may run concurrently.
CallRunner::Calls CallRunner::ThatRunTogether(Calls calls) const {
  return TakeWhile(calls.first(std::min(calls.size(), kMaxTogether)), [this](Calls, const PreparedCall& call) {
    return call.decision.run() != nullptr && MayRunBeside(call.offered.tool->traits()) && !turn_.goes_round;
  });
}

// A call equal to an earlier one waits for that one's answer, which may be a grant. A call that would fail waits for
// the effects of those before it.
CallRunner::Calls CallRunner::ThatAskTogether(Calls calls) const {
  return TakeWhile(calls, [this](Calls before, const PreparedCall& call) {
    const bool has_equal = std::ranges::any_of(before, [&](const PreparedCall& each) {
      return each.call.name == call.call.name && each.call.arguments == call.call.arguments;
    });
    return call.decision.ask() != nullptr && !has_equal && !is_stopped() && !turn_.goes_round &&
           (before.empty() || !FailureOf(call));
  });
}

// --- calls without a question ----------------------------------------------------------------------------------------

Async<Nothing> CallRunner::RunAlone(const PreparedCall& prepared, const ToolCall& made) {
  const ToolCall& call = prepared.call;
  // After a cancellation the remaining calls still get their result, without running.
  if (is_stopped() || turn_.goes_round) {
    NoteRefusal(made, is_stopped() ? "cancelled" : "loop");
    RecordResult(made, Failure(is_stopped() ? kNotBegunResult : kEndedResult));
  } else if (const Decision::Refuse* refuse = prepared.decision.refuse()) {
    if (refuse->loop) {
      Emit(event::LoopDetected{made.name, refuse->loop->count, std::string(refuse->loop->pattern)});
      turn_.goes_round = refuse->loop->warned;
    }
    if (refuse->is_shown) Emit(event::ToolCallStarted{call.id, call.name, call.arguments});
    NoteRefusal(refuse->loop ? made : call, refuse->why, refuse->decided_by);
    RecordResult(refuse->loop ? made : call, Failure(refuse->result));
  } else {
    CountUse(*prepared.decision.run());
    Emit(event::ToolCallStarted{call.id, call.name, call.arguments});
    const Execution execution{prepared.offered, call, call.arguments, *prepared.decision.run()};
    ToolOutcome outcome = co_await Execute(execution);
    RecordResult(call, std::move(outcome));
  }
  co_return Nothing{};
}

// Calls that run concurrently. The thread that claims a call runs it; its result is recorded after those of the calls
// before it.
struct CallRunner::Batch {
  const Calls calls;  // valid until the last call is recorded
  std::vector<std::optional<ToolOutcome>> outcomes = std::vector<std::optional<ToolOutcome>>(calls.size());
  std::size_t claimed = 0, recorded = 0;
  std::exception_ptr thrown = nullptr;          // the first; nothing is recorded after it, and it fails the run
  std::function<void(Nothing)> done = nullptr;  // called when all are recorded
  Mutex mutex{};                                // guards these members, and the turn's state meanwhile
};

// Shows all calls first and then each result in turn, so that the order of events does not depend on their durations.
Async<Nothing> CallRunner::RunTogether(Calls calls) {
  for (const PreparedCall& prepared : calls) {
    const ToolCall& call = prepared.call;
    if (is_stopped()) break;
    CountUse(*prepared.decision.run());
    Emit(event::ToolCallStarted{call.id, call.name, call.arguments});
  }
  turn_.grants = turn_.state.grants;
  // Shared, because threads may arrive after all calls have ended.
  const std::shared_ptr<Batch> batch(new Batch{.calls = calls});
  FromCallback<Nothing> all_recorded(turn_.parts.executor, [this, batch](std::function<void(Nothing)> done) {
    batch->done = std::move(done);
    for (std::size_t i = 1; i < batch->calls.size(); ++i) {
      turn_.parts.executor([this, batch] { WorkOn(*batch); });
    }
    WorkOn(*batch);  // if no other thread is free, this one runs all calls
  });
  co_await all_recorded;
  if (batch->thrown) std::rethrow_exception(std::exchange(batch->thrown, nullptr));  // late threads must not free it
  co_return Nothing{};
}

// This object lives until every claimed call is recorded.
void CallRunner::WorkOn(Batch& batch) {
  MutexLock lock(batch.mutex);
  while (batch.claimed < batch.calls.size()) {
    const std::size_t i = batch.claimed++;
    const PreparedCall& next = batch.calls[i];
    lock.unlock();
    ToolOutcome outcome;
    std::exception_ptr thrown;
    try {
      outcome = RunTool({next.offered, next.call, next.call.arguments, *next.decision.run()});
    } catch (...) {  // other threads may still run calls, so the run fails when they have ended
      thrown = std::current_exception();
    }
    lock.lock();
    if (!batch.thrown) batch.thrown = thrown;
    batch.outcomes[i] = std::move(outcome);
    for (std::size_t& turn = batch.recorded; turn < batch.calls.size() && batch.outcomes[turn]; ++turn) {
      if (batch.thrown) continue;
      try {
        RecordResult(batch.calls[turn].call, *std::move(batch.outcomes[turn]));
      } catch (...) {
        batch.thrown = std::current_exception();
      }
    }
  }
  if (batch.recorded < batch.calls.size()) return;
  const auto done = std::exchange(batch.done, nullptr);
  lock.unlock();
  if (done) done({});
}

// --- calls with a question -------------------------------------------------------------------------------------------

// Asks about all calls before any of them runs, so that they can be answered together and in any order.
Async<Nothing> CallRunner::Ask(Calls calls) {
  std::vector<event::ApprovalRequired> requests;
  std::vector<AskedCall> asked;
  for (const PreparedCall& each : calls) {
    const auto& request = requests.emplace_back(each.decision.ask()->request);
    asked.push_back({.open = {.call = each.call, .terms_digest = request.terms_digest, .patterns = request.patterns},
                     .offered = each.offered});
    BeginCallSpans(asked.back());
  }
  std::vector<std::string> ids = turn_.parts.approvals.Ask(turn_.round, std::move(requests), /*withdrawn=*/{});
  for (std::size_t i = 0; i < asked.size(); ++i) asked[i].open.approval_id = std::move(ids[i]);
  co_return co_await RunAsked(std::move(asked));
}

// A call with a question has its own span, because its execution is only a part of it. The wait begins before the
// question is shown.
void CallRunner::BeginCallSpans(AskedCall& asked) const {
  if (!turn_.span) return;
  if (!asked.span) {
    asked.span = turn_.span.Child("tool_call " + asked.open.call.name);
    asked.span.Set("gen_ai.tool.name", asked.open.call.name);
    asked.span.Set("gen_ai.tool.call.id", asked.open.call.id);
  }
  asked.wait = asked.span.Child("await_approval");
}

// Runs each call when it and those before it are answered.
Async<Nothing> CallRunner::RunAsked(std::vector<AskedCall> calls) {
  for (AskedCall& next : calls) {
    do {
      while (next.open.waits()) co_await TakeAnswer(calls);
    } while (AsksAnew(next));
    ToolOutcome outcome = co_await RunAnswered(next);
    // A stop may leave the waiting calls, and this one, which has not run, to another process. TakeAnswer finds that
    // out, so the result of this call must not be recorded before it.
    const bool was_stopped = is_stopped() && SaysCancelled(outcome.output);
    const auto waits = [](const AskedCall& each) { return each.open.waits(); };
    while (was_stopped && std::ranges::any_of(calls, waits)) co_await TakeAnswer(calls);
    next.span.End();
    RecordResult(next.open.call, std::move(outcome));
  }
  co_return Nothing{};
}

// Waits for an answer to one of the open calls and records it at once, so that it is not lost while the others wait.
Async<Nothing> CallRunner::TakeAnswer(std::vector<AskedCall>& calls) {
  std::vector<std::string> ids;
  for (const AskedCall& each : calls) {
    if (each.open.waits()) ids.push_back(each.open.approval_id);
  }
  auto answered = co_await turn_.parts.approvals.AwaitAnswer(std::move(ids), turn_.stop, turn_.parts.executor);
  for (AskedCall& asked : calls) {
    OpenCall& open = asked.open;
    if (!open.waits()) continue;
    if (!answered) {
      open.outcome = Failure(open.has_asked ? kCancelledResult : kNotBegunResult);
      EndWait(asked.wait, open.approval_id, "none");
    } else if (answered->approval_id == open.approval_id) {
      open.answer = std::move(answered->answer);
      EndWait(asked.wait, open.approval_id, DecisionName(*open.answer));
      open.answer->superseded ? static_cast<void>(AsksAnew(asked)) : RecordAnswer(open);
      break;
    }
  }
  co_return Nothing{};
}

// A call must run on the terms that the person agreed to. If they have changed when its turn comes, asks again on the
// new terms, and the answer no longer counts. True if the call waits now.
bool CallRunner::AsksAnew(AskedCall& asked) {
  OpenCall& open = asked.open;
  const bool is_agreed = open.answer && (open.answer->approved || open.answer->superseded);
  if (!is_agreed || open.has_asked || open.outcome || is_stopped()) return false;
  asked.offered = OfferedNow(asked.offered, open.call.name);
  if (is_stopped()) return false;
  const ShownCall shown{open.approval_id, open.terms_digest, open.answer};
  asked.decision = Decide({open.call, asked.offered}, turn_.state, turn_.policy, &shown);
  Decision::Ask* const ask = std::get_if<Decision::Ask>(&asked.decision.what);
  const Decision::Refuse* const refuse = asked.decision.refuse();
  if (ask == nullptr && (refuse == nullptr || !refuse->withdraws)) return false;

  static_cast<void>(Note(audit::Superseded(open.call, open.approval_id)));
  event::Rejected withdrawn{open.approval_id, open.call.id, std::nullopt};
  withdrawn.superseded = true;
  open.answer.reset();
  if (refuse != nullptr) {
    Emit(std::move(withdrawn));
    NoteRefusal(open.call, refuse->why);
    open.outcome = Failure(refuse->result);
    return false;
  }
  open.terms_digest = ask->request.terms_digest;
  open.patterns = ask->request.patterns;
  BeginCallSpans(asked);
  open.approval_id = turn_.parts.approvals.Ask(turn_.round, {std::move(ask->request)}, std::move(withdrawn)).front();
  return true;
}

void CallRunner::RecordAnswer(const OpenCall& asked) {
  if (asked.answer->approved && asked.answer->scope == ApprovalScope::kChat) {
    AddGrant(turn_.state.grants, GrantOf(asked));
    turn_.parts.observer.StateGrew(turn_.state);
  }
  ShowAnswer(asked);
}

void CallRunner::ShowAnswer(const OpenCall& asked) const {
  const ApprovalAnswer& answer = *asked.answer;
  const ToolCall& call = asked.call;
  AuditEntry entry = audit::Answered(call, asked.approval_id, answer);
  std::string digest = entry.arguments_digest;
  static_cast<void>(Note(std::move(entry)));
  if (!answer.approved) {
    return Emit(event::Rejected{.approval_id = asked.approval_id,
                                .call_id = call.id,
                                .feedback = answer.feedback,
                                .expired = answer.expired,
                                .answered_by = answer.answered_by});
  }
  Emit(event::Approved{asked.approval_id, call.id, std::move(digest), std::string(ToString(answer.scope)),
                       answer.arguments, answer.feedback, answer.answered_by, answer.pattern.value_or(""),
                       answer.expires_at, answer.mode ? std::string(ToString(*answer.mode)) : std::string(),
                       answer.outside_sandbox});
}

Async<ToolOutcome> CallRunner::RunAnswered(AskedCall& asked) {
  OpenCall& open = asked.open;
  const ToolCall& call = open.call;
  const std::optional<ApprovalAnswer>& answer = open.answer;
  if (open.outcome) co_return *std::move(open.outcome);
  if (answer && answer->superseded) co_return Failure(kOutdatedResult);
  if (answer && !answer->approved) co_return Failure(RejectedResult(*answer));
  // An answer and a cancellation may coincide; then the call does not run.
  if ((is_stopped() || !answer) && !open.has_asked) co_return Failure(kNotBegunResult);
  if (asked.offered.tool == nullptr) {
    const auto refused = CheckCall(call, asked.offered, turn_.state, turn_.policy);
    NoteRefusal(call, refused->why);
    co_return Failure(refused->result);
  }
  const std::string& arguments = answer && answer->arguments ? *answer->arguments : call.arguments;
  if (!open.has_asked) Emit(event::ToolCallStarted{call.id, call.name, arguments});
  const Decision::Run* const permission = asked.decision.run();
  const Execution execution{.offered = asked.offered,
                            .call = call,
                            .arguments = arguments,
                            .permission = permission ? *permission : Decision::Run{"approval", /*agreed=*/true},
                            .mode_after = answer ? answer->mode.value_or(ApprovalMode::kAsk) : ApprovalMode::kAsk,
                            .approval_id = open.approval_id,
                            .goes_on = open.has_asked,
                            .parent = asked.span ? &asked.span : nullptr};
  ToolOutcome outcome;
  // A rule of the configuration that is newer than the question, or that matches the arguments changed by the answer.
  if (const Decision::Refuse* refuse = asked.decision.refuse(); refuse != nullptr && !refuse->decided_by.empty()) {
    NoteRefusal(call, refuse->why, refuse->decided_by);
    outcome = Failure(refuse->result);
  } else {
    outcome = co_await Execute(execution);
  }
  if (answer && answer->arguments) outcome.output.insert(0, "(The user changed the arguments to " + arguments + ")\n");
  if (answer && answer->feedback) outcome.output += "\n(The user adds: " + *answer->feedback + ")";
  co_return outcome;
}

// --- a call that runs ------------------------------------------------------------------------------------------------

Async<ToolOutcome> CallRunner::Execute(const Execution& execution) {
  Tool& tool = *execution.offered.tool;
  turn_.grants = turn_.state.grants;
  if (!tool.traits().only_asks) co_return RunTool(execution);
  if (auto refused = Begin(execution)) co_return *std::move(refused);
  Span span = BeginSpan(execution);
  const ToolQuestion question = tool.QuestionOf(execution.arguments);
  event::InputRequired request = RequestFor(execution.call, question);
  Span wait = span.Child("await_input");
  auto reply =
      co_await turn_.parts.approvals.AskInput(turn_.round, std::move(request), turn_.stop, turn_.parts.executor);
  wait.End();
  co_return End(execution, tool.Answered(TakeReply(execution.call, std::move(reply))), std::move(span));
}

ToolOutcome CallRunner::RunTool(const Execution& execution) {
  if (auto refused = Begin(execution)) return *std::move(refused);
  std::optional<MutexLock> alone;
  if (!MayRunBeside(execution.offered.tool->traits())) alone.emplace(*turn_.parts.alone);
  auto recorder = BeginRecording(execution);
  Span span = BeginSpan(execution);
  ToolOutcome outcome;
  try {
    outcome = RunWithRetries(*execution.offered.tool, execution.arguments, ContextOf(execution, span));
  } catch (const std::exception& error) {
    // Tools must not throw. If one does, it must not end the run, because the run's state would be lost.
    LogError("a tool threw", {{"tool", execution.call.name}, {"what", error.what()}});
    outcome = Failure("The tool failed for an internal reason.");
  } catch (...) {
    LogError("a tool threw", {{"tool", execution.call.name}});
    outcome = Failure("The tool failed for an internal reason.");
  }
  outcome = End(execution, std::move(outcome), std::move(span));
  EndRecording(execution, std::move(recorder), outcome);  // includes changes by hooks
  return outcome;
}

std::unique_ptr<CallRecorder> CallRunner::BeginRecording(const Execution& execution) const {
  RunRecorder* const recorder = turn_.parts.recorder;
  if (recorder == nullptr) return nullptr;
  return recorder->Begin(execution.offered.tool->traits(), execution.arguments, turn_.stop);
}

void CallRunner::EndRecording(const Execution& execution, std::unique_ptr<CallRecorder> recorder,
                              ToolOutcome& outcome) const {
  if (!recorder) return;
  WorkspaceChanges changes = recorder->Finish();
  if (changes.unseen)
    outcome.output += "\n(What this call changed in the workspace is not recorded: it cannot be undone.)";
  for (auto& changed : InEvents(execution.call.id, std::move(changes))) Emit(std::move(changed));
}

Span CallRunner::BeginSpan(const Execution& execution) const {
  if (!turn_.span) return {};
  const ToolCall& call = execution.call;
  Span span = (execution.parent ? *execution.parent : turn_.span).Child("execute_tool " + call.name);
  span.Set("gen_ai.operation.name", "execute_tool");
  span.Set("gen_ai.tool.name", call.name);
  span.Set("gen_ai.tool.type", "function");
  span.Set("gen_ai.tool.call.id", call.id);
  if (span.takes_content()) {
    span.SetContent("gen_ai.tool.call.arguments", RedactedArguments(turn_.parts.guard, execution.arguments));
  }
  return span;
}

std::optional<ToolOutcome> CallRunner::Begin(const Execution& execution) const {
  if (execution.goes_on) return std::nullopt;
  if (is_stopped()) return Failure(kNotBegunResult);
  // A call that cannot be written to the audit log does not run.
  if (!Note(audit::Started(execution.call, execution.arguments, execution.permission, execution.approval_id))) {
    return Failure("Not run: the audit log could not be written.");
  }
  return std::nullopt;
}

ToolOutcome CallRunner::End(const Execution& execution, ToolOutcome outcome, Span span) const {
  span.Stop();
  const auto taken = std::chrono::steady_clock::now() - execution.began;
  static_cast<void>(Note(audit::Ended(execution.call, execution.arguments, outcome, taken, execution.approval_id)));
  if (CallGuard* const guard = turn_.parts.guard) {
    const ToolCall as_run{execution.call.id, execution.call.name, execution.arguments};
    outcome = guard->Passed(turn_.round, as_run, std::move(outcome), turn_.stop);
  }
  if (turn_.parts.files) KeepFiles(*turn_.parts.files, execution.call.name, outcome);
  if (is_stopped() && outcome.output.empty()) outcome.output = kCancelledResult, outcome.is_error = true;
  if (outcome.is_error) span.Fail(is_stopped() ? "cancelled" : "tool_error");
  span.SetContent("gen_ai.tool.call.result", outcome.output);
  return outcome;
}

ToolContext CallRunner::ContextOf(const Execution& execution, const Span& span) {
  const ToolCall& call = execution.call;
  ToolContext context{.stop = turn_.stop,
                      .timeout = turn_.limits.tool_timeout,
                      .on_output = LiveOutputOf(call),
                      .approved = execution.permission.agreed,
                      .knows_secrets = execution.permission.knows_secrets,
                      .outside_sandbox = execution.permission.outside_sandbox,
                      .ask = {}};
  context.ask = [this, &call, &span](const ToolQuestion& question, const std::stop_token& over) {
    const Span wait = span.Child("await_input");
    return AskAndWait(call, question, over);
  };
  context.files = turn_.parts.files;
  if (turn_.parts.files && turn_.limits.kept_bytes > 0) {
    context.keep_output = [this] {
      auto filter = turn_.parts.guard ? turn_.parts.guard->StoredFilter() : nullptr;
      return KeepOutput(*turn_.parts.files, std::move(filter), {2 * turn_.limits.told_bytes, turn_.limits.kept_bytes});
    };
  }
  if (execution.permission.agreed) {
    context.end_planning = [this, mode = execution.mode_after]() -> Result<ApprovalMode> {
      return turn_.parts.approvals.SetMode(mode).map([mode] { return mode; });
    };
  }
  context.recall = turn_.parts.recall;
  context.jobs = turn_.parts.jobs;
  context.documents = turn_.parts.documents;
  context.editor = turn_.parts.editor;
  if (span) context.span = &span;
  if (turn_.parts.guard != nullptr) {
    context.note_network = [note = turn_.parts.guard->Noter(), call, of_call = turn_.parts.of_call,
                            arguments = execution.arguments](const NetworkUse& use) {
      if (!note) return;
      AuditEntry entry = audit::Connected(call, arguments, use);
      entry.of_call = of_call;
      note(std::move(entry));
    };
  }
  context.change_agenda = [this, &call](const std::function<void(Agenda&)>& change) { ChangeAgenda(call, change); };
  context.may_reach = [this, &execution](const std::string& place, const std::stop_token& over) {
    return MayReach(execution, place, over);
  };
  context.research = [this, &call, &span](const std::string& question, const std::string& agent) {
    const SubAgentTask task{.call_id = call.id,
                            .round_index = turn_.round,
                            .question = question,
                            .agent = agent,
                            .grants = turn_.grants,
                            .used_before = turn_.usage_before_calls,
                            .span = &span};
    return RunSubAgent(turn_.parts, turn_.limits, task, turn_.model_name, turn_.stop);
  };
  return context;
}

std::function<void(std::string_view)> CallRunner::LiveOutputOf(const ToolCall& call) const {
  auto filter = turn_.parts.guard ? turn_.parts.guard->LiveFilter() : nullptr;
  return [this, &call, filter = std::move(filter), shown = std::size_t{0}](std::string_view bytes) mutable {
    if (shown > kMaxLiveOutput) return;
    std::string may_be_shown;
    if (filter) bytes = may_be_shown = filter(bytes);
    if (bytes.empty()) return;
    shown += bytes.size();
    std::string text = ToValidUtf8(bytes);
    if (shown > kMaxLiveOutput) text += kNoMoreLiveOutput;
    Emit(event::ToolOutputDelta{call.id, call.name, std::move(text)});
  };
}

void CallRunner::RecordResult(const ToolCall& call, ToolOutcome outcome) {
  AgentState& state = turn_.state;
  if (outcome.requires_confirmation) outcome.output += kConfirmationNote;
  Remember(state.memory, call, outcome);
  for (Grant& grant : outcome.grants) AddGrant(state.grants, std::move(grant));
  for (Grant& host : TakeNewHosts(call.id)) AddGrant(state.grants, std::move(host));
  if (outcome.job) {
    Emit(event::JobStarted{call.id, outcome.job->id, outcome.job->command});
    state.jobs.push_back(*std::move(outcome.job));
  }
  if (turn_.parts.jobs) {
    EndedJobs ended = TakeEndedJobs(*turn_.parts.jobs, state.jobs);
    for (event::JobEnded& each : ended.events) Emit(std::move(each));
    outcome.output += ended.note;
  }
  const ToolCall* made = AsMade(state.messages, call.id);
  const bool was_considered =
      !SaysCancelled(outcome.output) && outcome.output != kRefusedResult && outcome.output != kOutcomeUnknown;
  if (made && made->arguments != call.arguments && was_considered) {
    outcome.output.insert(0, ChangedByHook(call.arguments));
  }
  Message message{.role = Role::kTool,
                  .content = ToldOutput(call.name, outcome.output, turn_.limits.told_bytes),
                  .tool_calls = {},
                  .tool_call_id = call.id};
  message.name = call.name;
  message.is_error = outcome.is_error;
  message.parts = outcome.parts;
  turn_.usage += outcome.usage;
  state.messages.push_back(std::move(message));
  LookForStandstill(outcome.output);
  turn_.parts.observer.StateGrew(state);
  Emit(
      event::ToolResult{call.id, call.name, std::move(outcome.output), outcome.is_error, AttachmentsOf(outcome.parts)});
}

// Checks a complete round for progress. If there is none, adds a note for the model to the round's last result.
void CallRunner::LookForStandstill(std::string& output) {
  if (is_stopped() || !turn_.limits.find_standstills) return;
  const auto standstill = FindStandstill(turn_.state.messages);
  if (!standstill) return;
  Emit(event::LoopDetected{standstill->tool_name, standstill->count, std::string(standstill->pattern)});
  turn_.stands_still = standstill->ends;
  const std::string note = StandstillNote(*standstill);
  if (output.ends_with(note)) return;  // the output comes from a record
  output += note;
  Message& last = turn_.state.messages.Change(turn_.state.messages.size() - 1);
  last.content = ToldOutput(last.name, output, turn_.limits.told_bytes);
}

// --- questions and requests of tools ---------------------------------------------------------------------------------

event::InputRequired CallRunner::RequestFor(const ToolCall& call, const ToolQuestion& question) const {
  const auto seen = [this](const std::string& text) {
    return turn_.parts.guard ? turn_.parts.guard->Redacted(text) : text;
  };
  event::InputRequired request;
  request.call_id = call.id;
  request.question = seen(question.text);
  for (const std::string& option : question.options) request.options.push_back(seen(option));
  if (!question.schema.empty()) request.schema = seen(question.schema);
  if (request.schema && !ParseJson(*request.schema)) request.schema = "{}";  // redaction has damaged it
  if (!question.url.empty()) request.url = seen(question.url);
  return request;
}

ToolAnswer CallRunner::TakeReply(const ToolCall& call, Result<ApprovalGate::Reply> reply) const {
  if (!reply) return {.action = ToolAnswer::Action::kCancel};
  std::optional<std::string>& response = reply->answer.response;
  Emit(event::InputReceived{reply->request_id, call.id, response, reply->answer.answered_by});
  if (!response) return {.action = ToolAnswer::Action::kDecline};
  return {.action = ToolAnswer::Action::kAccept, .content = *std::move(response)};
}

// Asks for a tool in the middle of its work, on the tool's thread.
ToolAnswer CallRunner::AskAndWait(const ToolCall& call, const ToolQuestion& question,
                                  const std::stop_token& over) const {
  const Executor at_once = [](const std::function<void()>& job) { job(); };
  return TakeReply(call,
                   WaitFor(turn_.parts.approvals.AskInput(turn_.round, RequestFor(call, question), over, at_once)));
}

// Like a call of kNetworkTool in the midst of this one.
std::string CallRunner::MayReach(const Execution& execution, const std::string& place, const std::stop_token& over) {
  const ToolCall& call = execution.call;
  if (turn_.limits.nobody_to_ask || turn_.parts.approvals.ModeFor(call.id) == ApprovalMode::kDenyAll) {
    return "tools.network.allow does not name it, and nobody can be asked";
  }
  const Json arguments = ParseJson(execution.arguments).value_or(Json::object());
  const std::string command = TextMember(arguments, arguments.contains("code") ? "code" : "command");
  const std::size_t colon = place.rfind(':');
  OpenCall open;
  open.call.id = call.id;
  open.call.name = kNetworkTool;
  open.terms_digest = ArgumentsDigest(kNetworkTool);
  open.patterns = {{place, "commands may reach " + place}};
  open.call.arguments = DumpJson({{"host", place.substr(0, colon)},
                                  {"port", std::stoi(place.substr(colon + 1))},
                                  {"command", turn_.parts.guard ? turn_.parts.guard->Redacted(command) : command}});
  const Grant wanted{.tool_name = open.call.name,
                     .arguments_digest = ArgumentsDigest(open.call.arguments),
                     .terms_digest = open.terms_digest};
  const auto covers = [&](const Grant& each) {
    const bool fits = each.pattern.empty() ? each.arguments_digest == wanted.arguments_digest : each.pattern == place;
    return fits && each.tool_name == wanted.tool_name && !each.has_expired(Now());
  };
  const auto is_granted = [&]() REQUIRES(hosts_mutex_) { return std::ranges::any_of(hosts_, covers); };
  if (const MutexLock lock(hosts_mutex_); is_granted()) return {};
  const auto standing = turn_.parts.approvals.StandingGrants(wanted);
  if (const auto found = std::ranges::find_if(standing, covers); found != standing.end()) {
    turn_.parts.approvals.NoteUse({GrantId(*found)});
    return {};
  }
  open.answer = AskAboutHost(open, place, over);
  if (!open.answer) return "the command ended before anybody answered";
  if (open.answer->expired) return "nobody has answered in time";
  if (!open.answer->approved)
    return "the user refused it" + (open.answer->feedback ? ": " + *open.answer->feedback : "");
  if (open.answer->scope == ApprovalScope::kChat) {
    const MutexLock lock(hosts_mutex_);
    hosts_.push_back(GrantOf(open));
    new_hosts_.emplace_back(call.id, GrantOf(open));
  }
  return {};
}

// Asks and shows the answer, which is `expired` if the command has ended before. nullopt: the run has ended.
std::optional<ApprovalAnswer> CallRunner::AskAboutHost(const OpenCall& open, const std::string& place,
                                                       const std::stop_token& over) const {
  event::ApprovalRequired request;
  request.call_id = open.call.id;
  request.tool_name = open.call.name;
  request.tool_input = open.call.arguments;
  request.arguments_digest = ArgumentsDigest(open.call.arguments);
  request.terms_digest = open.terms_digest;
  request.reason = "the command wants to reach " + place + ", which no rule names";
  request.risk = "high";
  request.allowed_decisions = {"approve", "approve_for_chat", "approve_always", "reject"};
  request.patterns = open.patterns;
  const Executor at_once = [](const std::function<void()>& job) { job(); };
  OpenCall asked = open;
  asked.approval_id = turn_.parts.approvals.Ask(turn_.round, {std::move(request)}, std::nullopt).front();
  auto answered = WaitFor(turn_.parts.approvals.AwaitAnswer({asked.approval_id}, over, at_once));
  if (answered) asked.answer = std::move(answered->answer);
  // The question needs no answer any more, as the command has ended.
  if (!answered && !is_stopped()) asked.answer = ApprovalAnswer{.approved = false, .expired = true};
  if (asked.answer) ShowAnswer(asked);
  return std::move(asked.answer);
}

std::vector<Grant> CallRunner::TakeNewHosts(const std::string& call_id) {
  const MutexLock lock(hosts_mutex_);
  std::vector<Grant> taken;
  std::erase_if(new_hosts_, [&](auto& each) {
    if (each.first != call_id) return false;
    taken.push_back(std::move(each.second));
    return true;
  });
  return taken;
}

void CallRunner::ChangeAgenda(const ToolCall& call, const std::function<void(Agenda&)>& change) {
  const Agenda before = turn_.state.agenda;
  change(turn_.state.agenda);
  if (turn_.state.agenda == before) return;
  turn_.parts.observer.StateGrew(turn_.state);
  const Agenda& now = turn_.state.agenda;
  if (now.tasks != before.tasks) Emit(event::TaskUpdated{call.id, now.tasks});
  if (now.plan != before.plan) Emit(event::PlanUpdated{call.id, now.plan});
}

void CallRunner::CountUse(const Decision::Run& permission) {
  std::vector<std::string> elsewhere;
  bool is_counted = false;
  for (const std::string& name : permission.decided_by) {
    const auto grant =
        std::ranges::find_if(turn_.state.grants, [&](const Grant& each) { return GrantId(each) == name; });
    if (grant == turn_.state.grants.end()) {
      elsewhere.push_back(name);
      continue;
    }
    ++grant->uses;
    grant->used_at = Now();
    is_counted = true;
  }
  if (is_counted) turn_.parts.observer.StateGrew(turn_.state);
  if (permission.why != "rule" && !elsewhere.empty()) turn_.parts.approvals.NoteUse(elsewhere);
}

// --- audit log -------------------------------------------------------------------------------------------------------

// Ignores failures of the audit log, because a rejected call does not run anyway.
void CallRunner::NoteRefusal(const ToolCall& call, std::string_view why,
                             const std::vector<std::string>& decided_by) const {
  static_cast<void>(Note(audit::Refused(call, why, decided_by)));
}

Result<void> CallRunner::Note(AuditEntry entry) const {
  if (turn_.parts.guard == nullptr) return {};
  entry.of_call = turn_.parts.of_call;
  auto noted = turn_.parts.guard->Note(std::move(entry));
  if (!noted) {
    LogError("the audit log could not be written", {{"code", noted.error().reason}, {"detail", noted.error().detail}});
  }
  return noted;
}

}  // namespace reprise
