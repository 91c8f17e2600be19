#include "engine/recorded_replay.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/agent_loop.h"
#include "agent/history.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/try.h"
#include "engine/recording.h"
#include "engine/unattended.h"

namespace reprise {
namespace {

// For failures that must not be retried, of any kind: the provider asks for a longer pause than any policy allows.
constexpr std::chrono::hours kNeverAgain{1'000'000};
// Calls that run together show their events in the recorded order. A replay ends if one waits longer than this.
constexpr std::chrono::seconds kStandstill{10};

class Replay;

// A tool that replays its record. There is one object per call, which learns its call when the arguments are checked,
// before anything else happens.
class RecordedTool final : public Tool {
 public:
  RecordedTool(Replay& replay, std::string name) : replay_(replay) {
    traits_.spec.name = std::move(name);
    traits_.terms.reset();
    traits_.concurrency = Concurrency::kNever;
  }
  const ToolTraits& traits() const override { return traits_; }
  OutsideSandbox OutsideOf(std::string_view) const override { return OutsideSandbox::kOffered; }  // the record decides
  void AwaitOffer(const std::stop_token& stop) override;
  std::optional<std::string> FailureOf(std::string_view arguments, const ToolContext& context) const override;
  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override;

  const RecordedCall* call() const { return call_; }
  void Bind(const RecordedCall& call) {
    call_ = &call;
    traits_.needs_consent = call.asked.has_value();  // otherwise an earlier grant would count
    if (call.beside_another && !call.changed_agenda()) traits_.concurrency = Concurrency::kAllowed;
  }

 private:
  Replay& replay_;
  ToolTraits traits_;
  const RecordedCall* call_ = nullptr;
};

// The agent's whole world, made from the record.
class Replay final : public ModelClient, public ToolRegistry, public Unattended, public CallGuard {
 public:
  Replay(Recording recording, bool is_imported) : recording_(std::move(recording)), is_imported_(is_imported) {
    if (recording_.continued) answered_ = true;
    tools_ = std::make_shared<RecordedTools>(*this);
  }

  ReplayReport Run(const Executor& executor);

  // ModelClient
  void Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) override;
  // ToolRegistry
  std::shared_ptr<const ToolSet> Current() const override { return tools_; }
  // AgentObserver
  void Emit(std::uint32_t round_index, EventPayload payload) override;
  // ApprovalGate
  std::vector<std::string> Ask(std::uint32_t round_index, std::vector<event::ApprovalRequired> requests,
                               std::optional<event::Rejected> withdrawn) override;
  Async<Result<Answered>> AwaitAnswer(std::vector<std::string> approval_ids, std::stop_token stop,
                                      const Executor& executor) override;
  // A chat's mode may change during a run, so each call is decided by the mode it had then.
  // Granted calls were not asked about, as the record shows.
  ApprovalMode ModeFor(const std::string& call_id) override;
  Async<Result<Reply>> AskInput(std::uint32_t round_index, event::InputRequired request, std::stop_token stop,
                                const Executor& executor) override;

  // CallGuard: changes by hooks are in the record; a refusal by a hook is a result like others, or ended the run.
  Result<void> Heard(std::uint32_t, const std::string&, const std::string&, const std::stop_token&) override;
  std::optional<std::string> CheckAnswer(std::uint32_t, int, const std::string&, const std::stop_token&) override;
  Verdict Review(std::uint32_t round_index, const ToolCall& call, const std::stop_token& stop) override;
  Result<void> Note(AuditEntry) override { return {}; }
  ToolOutcome Passed(std::uint32_t, const ToolCall&, ToolOutcome outcome, const std::stop_token&) override {
    return outcome;
  }

  // The call whose approval the record withdraws next; null if none.
  const RecordedCall* WithdrawnNext();
  // Whether the call was asked about only after another one had run, because it would have failed before.
  bool IsAskedLater(const RecordedCall& call);
  // Replays the visible acts of the tool; returns its output.
  ToolOutcome Play(const RecordedCall* call, const ToolContext& context);

 private:
  class RecordedTools final : public ToolSet {
   public:
    explicit RecordedTools(Replay& replay) : replay_(replay) {}
    Tool* Find(std::string_view name) const override { return replay_.MakeTool(name); }
    Result<void> Validate(const Tool& tool, std::string_view arguments) const override {
      if (const RecordedCall* call = replay_.WithdrawnNext()) return replay_.BindAgain(tool, *call);
      replay_.Bind(tool, arguments);
      return {};
    }
    const std::vector<Tool*>& tools() const override { return none_; }
    const std::vector<ToolSpec>& specs() const override { return no_specs_; }
    bool RequiresApproval(const Tool& tool) const override {
      const RecordedCall* call = static_cast<const RecordedTool&>(tool).call();
      return call != nullptr && (call->asked || call->was_refused());
    }

   private:
    Replay& replay_;
    const std::vector<Tool*> none_;
    const std::vector<ToolSpec> no_specs_;
  };

  Tool* MakeTool(std::string_view name);
  // Prepares the call once more for another question; an error if the record ends it there.
  Result<void> BindAgain(const Tool& tool, const RecordedCall& call);
  void Bind(const Tool& tool, std::string_view arguments);
  // For a call that runs beside others: blocks until all earlier events have been shown. False if that never happens.
  void AwaitAnswerAboutHost(const std::vector<std::string>& approval_ids);
  bool AwaitTurn(const RecordedCall& call, std::size_t at);
  ToolOutcome OutcomeOf(const RecordedCall* call);

  void Compare(AgentEvent actual) REQUIRES(mutex_);
  void Diverge(std::optional<AgentEvent> actual, std::string reason) REQUIRES(mutex_);
  void Miss(std::string reason) REQUIRES(mutex_) { Diverge(std::nullopt, std::move(reason)); }
  // Ignores everything that follows.
  void End() REQUIRES(mutex_);
  void Advance() REQUIRES(mutex_);
  void TakeCompactions(std::size_t messages) REQUIRES(mutex_);
  // Steps of sub-agents are output of a tool, so like its result they come from the record.
  void SkipNested() REQUIRES(mutex_);
  const AgentEvent* Next() const REQUIRES(mutex_) {
    return next_ < recording_.events.size() ? &recording_.events[next_] : nullptr;
  }
  RecordedRound* Round() REQUIRES(mutex_);
  const RecordedCall* CallOf(const std::string& id) REQUIRES(mutex_);
  std::uint64_t NextSeq() const REQUIRES(mutex_);
  void CompareEnd(const AgentOutcome& outcome) REQUIRES(mutex_);
  // The model's failure where the record lacks its whole response.
  Error WhyNoResponse() REQUIRES(mutex_);

  Recording recording_;
  const bool is_imported_;
  std::stop_source stop_;
  std::shared_ptr<const ToolSet> tools_;

  Mutex mutex_;
  Condition turn_;  // notified when an event is shown, or none will follow
  std::deque<std::unique_ptr<RecordedTool>> made_ GUARDED_BY(mutex_);
  std::vector<const RecordedCall*> bound_ GUARDED_BY(mutex_);
  std::size_t next_ GUARDED_BY(mutex_) = 0;          // in recording_.events
  std::uint32_t round_ GUARDED_BY(mutex_) = 0;       // the model's current round
  std::size_t retries_ GUARDED_BY(mutex_) = 0;       // of this round
  bool answered_ GUARDED_BY(mutex_) = false;         // the model has answered in this round
  std::optional<Error> unheard_ GUARDED_BY(mutex_);  // why the response is ignored
  bool over_ GUARDED_BY(mutex_) = false;
  ReplayReport report_ GUARDED_BY(mutex_);
};

// Only the record tells whether the tool had changed since it was shown.
void RecordedTool::AwaitOffer(const std::stop_token&) {
  if (call_ != nullptr && replay_.WithdrawnNext() == call_) traits_.terms = "others";
}

std::optional<std::string> RecordedTool::FailureOf(std::string_view, const ToolContext&) const {
  if (call_ == nullptr || !call_->asked || !replay_.IsAskedLater(*call_)) return std::nullopt;
  return "what comes before it has to run first";
}

ToolOutcome RecordedTool::Run(std::string_view, const ToolContext& context) { return replay_.Play(call_, context); }

// --- the agent's inputs ----------------------------------------------------------------------------------------------

Error Cancelled() { return MakeError(ErrorCode::kCancelled, "the interaction was cancelled"); }

RecordedRound* Replay::Round() {
  const auto found = recording_.rounds.find(round_);
  return found == recording_.rounds.end() ? nullptr : &found->second;
}

const RecordedCall* Replay::CallOf(const std::string& id) {
  const RecordedRound* round = Round();
  if (round == nullptr) return nullptr;
  const auto found = std::ranges::find_if(round->calls, [&](const auto& each) { return each.call.id == id; });
  return found == round->calls.end() ? nullptr : &*found;
}

Error Replay::WhyNoResponse() {
  if (!recording_.last_words.empty() && !recording_.cut_off()) {
    const EventPayload& last = recording_.last_words.front().payload;
    if (const auto* failed = std::get_if<event::Failed>(&last)) {
      Error error{.code = ErrorCode::kProvider, .reason = failed->code, .message = failed->message};
      error.retryable = failed->retryable;
      error.retry_after = kNeverAgain;
      return error;
    }
    stop_.request_stop();
    return Cancelled();
  }
  return Cancelled();
}

void Replay::Generate(const ModelRequest& request, ModelStream& stream, std::stop_token, Done done) {
  std::string thinking, text;
  Result<ModelResponse> response = Fail(Cancelled());
  {
    const MutexLock lock(mutex_);
    if (std::exchange(answered_, false)) {
      ++round_;
      retries_ = 0;
    }
    TakeCompactions(request.messages.size());
    RecordedRound* round = Round();
    if (round && retries_ < round->retries.size()) {
      const event::Retry& retry = round->retries[retries_++];
      Error error{.code = ErrorCode::kProvider, .reason = retry.code, .message = retry.message};
      error.retryable = true;
      response = Fail(std::move(error));
    } else {
      answered_ = true;
      if (round) {
        thinking = round->thinking;
        if (round->message) text = round->message->content.value_or("");
      }
      if (round && round->message && round->complete) {
        ModelResponse whole{
            .tool_calls = round->message->tool_calls, .usage = round->usage, .extras = round->message->extras};
        whole.truncated = round->truncated;
        whole.searches = round->searches;
        whole.citations = round->citations;
        whole.pauses = round->pauses;
        const bool shown = round->calls.empty() || round->calls.front().asked;
        if (!shown && round->calls.front().stopped_before()) stop_.request_stop();
        response = std::move(whole);
      } else if (is_imported_ && recording_.last_words.empty() && Next() == nullptr) {
        End();  // a call has ended the turn where it comes from
      } else if (recording_.last_words.empty()) {
        Miss("the agent asks the model, and the record has no response");
      } else {
        Error why = WhyNoResponse();
        const bool has_shown = round && (round->message || !round->thinking.empty());
        // The response had ended, or its usage would be unknown.
        if (has_shown && (why.Is(Reason::kHookDenied) || round->usage != TokenUsage{})) {
          if (why.code == ErrorCode::kCancelled) stop_.request_stop();
          response = ModelResponse{.tool_calls = {}, .usage = round->usage, .extras = {}};
          unheard_ = std::move(why);
        } else {
          response = Fail(std::move(why));
        }
      }
    }
  }
  if (!thinking.empty()) stream.OnThinking(thinking);
  if (!text.empty()) stream.OnText(text);
  done(std::move(response));  // last, because the replay may be over after it
}

Result<void> Replay::Heard(std::uint32_t, const std::string&, const std::string&, const std::stop_token&) {
  const MutexLock lock(mutex_);
  if (unheard_) return Fail(*unheard_);
  return {};
}

std::optional<std::string> Replay::CheckAnswer(std::uint32_t, int, const std::string&, const std::stop_token&) {
  const MutexLock lock(mutex_);
  const RecordedRound* round = Round();
  return round == nullptr ? std::nullopt : round->sent_back;
}

Tool* Replay::MakeTool(std::string_view name) {
  const MutexLock lock(mutex_);
  return made_.emplace_back(std::make_unique<RecordedTool>(*this, std::string(name))).get();
}

ApprovalMode Replay::ModeFor(const std::string& call_id) {
  const MutexLock lock(mutex_);
  const RecordedCall* call = CallOf(call_id);
  return call != nullptr && call->was_refused() ? ApprovalMode::kDenyAll : ApprovalMode::kAsk;
}

CallGuard::Verdict Replay::Review(std::uint32_t, const ToolCall& call, const std::stop_token&) {
  const MutexLock lock(mutex_);
  const RecordedRound* round = Round();
  if (round == nullptr) return {};
  const auto recorded =
      std::ranges::find_if(round->calls, [&](const RecordedCall& each) { return each.call.id == call.id; });
  if (recorded == round->calls.end()) return {};
  return {.refusal = {}, .arguments = recorded->changed};
}

const RecordedCall* Replay::WithdrawnNext() {
  const MutexLock lock(mutex_);
  const auto* rejected = Next() ? std::get_if<event::Rejected>(&Next()->payload) : nullptr;
  return rejected && rejected->superseded ? CallOf(rejected->call_id) : nullptr;
}

bool Replay::IsAskedLater(const RecordedCall& call) {
  const MutexLock lock(mutex_);
  for (std::size_t i = next_; i < recording_.events.size(); ++i) {
    const EventPayload& payload = recording_.events[i].payload;
    const auto* const asked = std::get_if<event::ApprovalRequired>(&payload);
    if (asked != nullptr && asked->call_id == call.call.id) return false;
    if (std::holds_alternative<event::ToolResult>(payload)) return true;
  }
  return false;
}

Result<void> Replay::BindAgain(const Tool& tool, const RecordedCall& call) {
  const_cast<RecordedTool&>(static_cast<const RecordedTool&>(tool)).Bind(call);
  if (!call.withdrawn) return {};
  return Fail(ErrorCode::kInvalidArgument, "the call did not fit the tool any more");
}

void Replay::Bind(const Tool& tool, std::string_view arguments) {
  const MutexLock lock(mutex_);
  if (static_cast<const RecordedTool&>(tool).call() != nullptr) return;  // for a call whose arguments a hook changed
  RecordedRound* round = Round();
  if (round == nullptr) return;
  for (const RecordedCall& call : round->calls) {
    if (call.call.name != tool.traits().spec.name || call.call.arguments != arguments) continue;
    if (std::ranges::find(bound_, &call) != bound_.end()) continue;
    bound_.push_back(&call);
    const_cast<RecordedTool&>(static_cast<const RecordedTool&>(tool)).Bind(call);
    return;
  }
}

bool Replay::AwaitTurn(const RecordedCall& call, std::size_t at) {
  MutexLock lock(mutex_);
  const auto its_turn = [&]() REQUIRES(mutex_) { return over_ || next_ >= at; };
  if (call.beside_another && !turn_.wait_for(lock, kStandstill, its_turn))
    Miss("no run shows the recorded events in this order");
  return !over_;
}

ToolOutcome Replay::Play(const RecordedCall* call, const ToolContext& context) {
  if (call == nullptr) return OutcomeOf(call);
  for (const RecordedStep& step : call->steps) {
    if (!AwaitTurn(*call, step.at)) break;
    if (const auto* asked = std::get_if<event::InputRequired>(&step.payload)) {
      context.ask({.text = asked->question,
                   .schema = asked->schema.value_or(""),
                   .url = asked->url.value_or(""),
                   .options = asked->options},
                  context.stop);
    } else if (const auto* host = std::get_if<event::ApprovalRequired>(&step.payload)) {
      const Json place = ParseJson(host->tool_input).value_or(Json::object());
      context.may_reach(TextMember(place, "host") + ":" + std::to_string(place.value("port", 0)), context.stop);
    } else if (const auto* updated = std::get_if<event::TaskUpdated>(&step.payload)) {
      context.change_agenda([&](Agenda& agenda) { agenda.tasks = updated->tasks; });
    } else if (const auto* plan = std::get_if<event::PlanUpdated>(&step.payload)) {
      context.change_agenda([&](Agenda& agenda) { agenda.plan = plan->steps; });
    }
  }
  if (call->result_at) AwaitTurn(*call, *call->result_at);
  return OutcomeOf(call);
}

ToolOutcome Replay::OutcomeOf(const RecordedCall* call) {
  const MutexLock lock(mutex_);
  if (call == nullptr || !call->started || !call->outcome) {
    if (!over_) Miss("the agent runs a tool, and the record has no result");
    return {.output = std::string(kCancelledResult), .is_error = true};
  }
  ToolOutcome outcome = *call->outcome;
  // The agent adds these by itself. (Feedback that is not in the event stays a part of the tool's output.)
  if (call->approved && call->approved->feedback) {
    const std::string added = "\n(The user adds: " + *call->approved->feedback + ")";
    if (outcome.output.ends_with(added)) outcome.output.resize(outcome.output.size() - added.size());
  }
  const auto take_off = [&outcome](const std::string& added) {
    if (outcome.output.starts_with(added)) outcome.output.erase(0, added.size());
  };
  if (call->changed) take_off(ChangedByHook(*call->changed));
  if (call->approved && call->approved->tool_input) {
    take_off("(The user changed the arguments to " + *call->approved->tool_input + ")\n");
  }
  return outcome;
}

// Gives the recorded answer to this very question; without one, the events that follow tell why.
Async<Result<ApprovalGate::Reply>> Replay::AskInput(std::uint32_t round_index, event::InputRequired request,
                                                    std::stop_token, const Executor&) {
  const RecordedCall* call = nullptr;
  {
    const MutexLock lock(mutex_);
    const AgentEvent* next = Next();
    const auto* asked = next ? std::get_if<event::InputRequired>(&next->payload) : nullptr;
    if (asked != nullptr) request.request_id = asked->request_id;
    const auto& calls = Round()->calls;  // one of these calls asks
    call = &*std::ranges::find_if(calls, [&](const RecordedCall& each) { return each.call.id == request.call_id; });
  }
  Emit(round_index, request);
  for (const RecordedStep& step : call->steps) {
    const auto* answer = std::get_if<event::InputReceived>(&step.payload);
    if (answer == nullptr || answer->request_id != request.request_id) continue;
    if (!AwaitTurn(*call, step.at)) break;
    co_return Reply{request.request_id, {.response = answer->response, .answered_by = answer->answered_by}};
  }
  co_return Fail(Cancelled());
}

std::vector<std::string> Replay::Ask(std::uint32_t round_index, std::vector<event::ApprovalRequired> requests,
                                     std::optional<event::Rejected> withdrawn) {
  std::vector<std::string> ids;
  if (withdrawn) Emit(round_index, *std::move(withdrawn));
  for (event::ApprovalRequired& request : requests) {
    {
      const MutexLock lock(mutex_);
      const auto* next = Next() ? std::get_if<event::ApprovalRequired>(&Next()->payload) : nullptr;
      if (next && next->call_id == request.call_id) {
        request.approval_id = next->approval_id;
        request.created_at = next->created_at;
        request.expires_at = next->expires_at;
        request.terms_digest = next->terms_digest;
        request.reason = next->reason;
        request.risk = next->risk;
        request.allowed_decisions = next->allowed_decisions;
        request.patterns = next->patterns;
        request.modes = next->modes;
      }
    }
    ids.push_back(request.approval_id);
    Emit(round_index, std::move(request));
  }
  return ids;
}

// Other calls may have gone on between a question about a host and its answer.
void Replay::AwaitAnswerAboutHost(const std::vector<std::string>& approval_ids) {
  const RecordedStep* answer = nullptr;
  const RecordedCall* of = nullptr;
  {
    const MutexLock lock(mutex_);
    RecordedRound* round = Round();
    for (const RecordedCall& call : round ? std::span(round->calls) : std::span<RecordedCall>()) {
      for (const RecordedStep& step : call.steps) {
        const auto* approved = std::get_if<event::Approved>(&step.payload);
        const auto* rejected = std::get_if<event::Rejected>(&step.payload);
        const bool is_it = (approved != nullptr && approved->approval_id == approval_ids.front()) ||
                           (rejected != nullptr && rejected->approval_id == approval_ids.front());
        if (is_it) answer = &step, of = &call;
      }
    }
  }
  if (answer != nullptr) AwaitTurn(*of, answer->at);
}

// The next recorded event is the answer; if not, there was none.
Async<Result<ApprovalGate::Answered>> Replay::AwaitAnswer(std::vector<std::string> approval_ids, std::stop_token,
                                                          const Executor&) {
  AwaitAnswerAboutHost(approval_ids);
  const MutexLock lock(mutex_);
  const AgentEvent* next = Next();
  const auto asked = [&](const std::string& id) { return std::ranges::find(approval_ids, id) != approval_ids.end(); };
  const auto* approved = next && !over_ ? std::get_if<event::Approved>(&next->payload) : nullptr;
  if (approved && asked(approved->approval_id)) {
    ApprovalAnswer answer{.approved = true,
                          .arguments = approved->tool_input,
                          .feedback = approved->feedback,
                          .scope = ParseApprovalScope(approved->scope).value_or(ApprovalScope::kOnce),
                          .answered_by = approved->answered_by};
    if (!approved->pattern.empty()) answer.pattern = approved->pattern;
    answer.expires_at = approved->grant_expires_at;
    answer.mode = ParseApprovalMode(approved->mode);
    answer.outside_sandbox = approved->outside_sandbox;
    co_return Answered{approved->approval_id, std::move(answer)};
  }
  const auto* rejected = next && !over_ ? std::get_if<event::Rejected>(&next->payload) : nullptr;
  if (rejected && asked(rejected->approval_id)) {
    co_return Answered{rejected->approval_id,
                       {.approved = false,
                        .feedback = rejected->feedback,
                        .expired = rejected->expired,
                        .superseded = rejected->superseded,
                        .answered_by = rejected->answered_by}};
  }
  stop_.request_stop();
  co_return Fail(Cancelled());
}

// --- the agent's outputs ---------------------------------------------------------------------------------------------

void Replay::Emit(std::uint32_t round_index, EventPayload payload) {
  if (IsDelta(payload)) return;
  const MutexLock lock(mutex_);
  Compare({.seq = NextSeq(), .round_index = round_index, .at = {}, .payload = std::move(payload)});
}

std::uint64_t Replay::NextSeq() const {
  if (const AgentEvent* next = Next()) return next->seq;
  if (!recording_.last_words.empty()) return recording_.last_words.front().seq;
  return recording_.events.empty() ? 2 : recording_.events.back().seq + 1;  // interaction_started is number 1
}

void Replay::SkipNested() {
  for (; Next() != nullptr; Advance()) {
    const auto* nested = std::get_if<event::Nested>(&Next()->payload);
    if (nested == nullptr) return;
    const RecordedRound& round = recording_.rounds.at(Next()->round_index);
    const bool known = std::ranges::any_of(
        round.calls, [&](const RecordedCall& call) { return call.call.id == nested->call_id && call.started; });
    if (!known) return Miss("no such call ran");
  }
}

void Replay::Compare(AgentEvent actual) {
  if (over_) return;
  SkipNested();
  if (over_) return;
  const AgentEvent* expected = Next();
  if (expected == nullptr) {
    if (recording_.cut_off()) return End();
    return Diverge(std::move(actual), "the record has no such event");
  }
  if (auto* retry = std::get_if<event::Retry>(&actual.payload)) {
    const auto* recorded = std::get_if<event::Retry>(&expected->payload);
    if (recorded) retry->delay_ms = recorded->delay_ms;
  }
  if (auto* result = std::get_if<event::ToolResult>(&actual.payload);
      result && result->tool_output == kNotBegunResult) {
    const auto* recorded = std::get_if<event::ToolResult>(&expected->payload);
    if (recorded && SaysCancelled(recorded->tool_output)) result->tool_output = recorded->tool_output;
  }
  actual.at = expected->at;
  if (actual != *expected) return Diverge(std::move(actual), "the replay does something else than the record says");
  Advance();
  SkipNested();
  // Stops where the recorded run stopped: before a result of a call that never ran.
  const AgentEvent* next = Next();
  const auto* result = next ? std::get_if<event::ToolResult>(&next->payload) : nullptr;
  if (result == nullptr || next->round_index != expected->round_index) return;
  const auto& calls = recording_.rounds.at(next->round_index).calls;
  const bool stopped = std::ranges::any_of(
      calls, [&](const RecordedCall& each) { return each.call.id == result->id && each.stopped_before(); });
  if (stopped) stop_.request_stop();
}

void Replay::Advance() {
  ++next_;
  ++report_.events;
  turn_.notify_all();
}

// Whether a request fits depends on the tools at the time and the provider's token counts, which the record lacks, so a
// recorded compaction counts as needed. Its content must match what the state keeps of it.
void Replay::TakeCompactions(std::size_t messages) {
  const auto& kept = recording_.end.compaction;
  const auto is_compaction = [](const AgentEvent& event) {
    const auto* compacted = std::get_if<event::Compacted>(&event.payload);
    return compacted != nullptr && compacted->results == 0;
  };
  while (Next() != nullptr && Next()->round_index == round_) {
    const AgentEvent& next = *Next();
    if (const auto* cleared = std::get_if<event::Compacted>(&next.payload); cleared && cleared->results > 0) {
      if (recording_.end.cleared == 0) return Miss("no result is cleared in the final state");
      Advance();
      continue;
    }
    const bool before_one = next_ + 1 < recording_.events.size() && is_compaction(recording_.events[next_ + 1]);
    const bool of_summary =
        std::holds_alternative<event::Usage>(next.payload) && (before_one || (Round() && !Round()->message));
    if (!of_summary && !is_compaction(next)) return;
    if (const auto* told = std::get_if<event::Compacted>(&next.payload)) {
      if (!kept) return Miss("the final state does not have the summary");
      const auto count = static_cast<std::uint64_t>(told->messages);
      const bool is_last = std::none_of(recording_.events.begin() + static_cast<std::ptrdiff_t>(next_) + 1,
                                        recording_.events.end(), is_compaction);
      const bool possible = told->messages > 0 && kept->first <= messages && count <= messages - kept->first;
      if (!possible || (is_last && (kept->end - kept->first != count || kept->summary != told->summary))) {
        AgentEvent actual = next;
        auto& made = std::get<event::Compacted>(actual.payload);
        made.messages = static_cast<std::int64_t>(kept->end - kept->first);
        made.summary = kept->summary;
        return Diverge(std::move(actual), "the final state has another summary");
      }
    }
    Advance();
  }
}

void Replay::End() {
  over_ = true;
  stop_.request_stop();
  turn_.notify_all();
}

void Replay::Diverge(std::optional<AgentEvent> actual, std::string reason) {
  if (over_) return;
  Divergence divergence{.seq = NextSeq()};
  if (const AgentEvent* next = Next()) {
    divergence.expected = *next;
  } else if (!recording_.last_words.empty()) {
    divergence.expected = recording_.last_words.front();
  }
  divergence.actual = std::move(actual);
  divergence.reason = std::move(reason);
  report_.divergence = std::move(divergence);
  End();
}

// The last event is the run's, not the agent's, so this makes it as the run does.
void Replay::CompareEnd(const AgentOutcome& outcome) {
  if (report_.divergence) return;
  SkipNested();
  if (Next() != nullptr && std::holds_alternative<event::Compacted>(Next()->payload)) {
    round_ = Next()->round_index;  // no request came after it: where an imported turn comes from, it was summed up then
    TakeCompactions(outcome.state.messages.size());
    if (report_.divergence) return;
  }
  if (Next() != nullptr) return Miss("the replay ends before the record does");
  const auto& words = recording_.last_words;
  const auto* failed = words.empty() ? nullptr : std::get_if<event::Failed>(&words.front().payload);
  const auto* cancelled = words.empty() ? nullptr : std::get_if<event::Cancelled>(&words.front().payload);
  const AgentEvent* last = words.empty() ? nullptr : &words.front();
  // A failure of the disk or the process ends a run at any point of the agent's work.
  const bool from_outside = failed != nullptr && (!outcome.error || over_);
  if (!over_ && !from_outside) {
    std::optional<EventPayload> said;
    if (outcome.status == InteractionStatus::kCancelled) said = event::Cancelled{cancelled ? cancelled->reason : ""};
    if (outcome.error) {
      said = event::Failed{outcome.error->reason, outcome.error->message, outcome.error->retryable};
    }
    const bool equal = said.has_value() == (last != nullptr) && (!said || *said == last->payload);
    if (!equal) {
      std::optional<AgentEvent> actual;
      if (said) actual = AgentEvent{.seq = NextSeq(), .payload = *std::move(said)};
      return Diverge(std::move(actual), "the replay ends in another way than the record says");
    }
  }
  report_.events += words.size();
  InteractionStatus status = InteractionStatus::kCompleted;
  if (!words.empty()) {
    status = std::holds_alternative<event::Failed>(words.back().payload) ? InteractionStatus::kFailed
                                                                         : InteractionStatus::kCancelled;
  }
  if (status != recording_.status) {
    report_.divergence = Divergence{.seq = (words.empty() ? NextSeq() : words.back().seq + 1),
                                    .reason = "the events do not lead to the recorded status"};
  } else if (!over_ && outcome.state.agenda != recording_.end.agenda) {
    report_.divergence =
        Divergence{.seq = NextSeq(), .reason = "the events do not lead to the recorded tasks and plan"};
  }
}

ReplayReport Replay::Run(const Executor& executor) {
  const Delay at_once = [&executor](std::chrono::milliseconds, std::function<void()> call) {
    executor(std::move(call));
  };
  AgentLoop agent({.model = *this,
                   .tools = *this,
                   .observer = *this,
                   .approvals = *this,
                   .executor = executor,
                   .delay = at_once,
                   .guard = this},
                  recording_.limits, "recorded", std::move(recording_.start), stop_.get_token());
  const auto ended = std::make_shared<std::promise<AgentOutcome>>();
  agent.Start([ended](AgentOutcome outcome) { ended->set_value(std::move(outcome)); },
              recording_.continued.value_or(Interrupted{}));
  const AgentOutcome outcome = ended->get_future().get();
  const MutexLock lock(mutex_);
  CompareEnd(outcome);
  return std::move(report_);
}

// No work of the agent, so there is nothing to run: the events are compared with the final state.
ReplayReport CompareChangeByHand(const Interaction& changed) {
  const Agenda& agenda = changed.final_agent_state->agenda;
  const bool is_run = !changed.model.empty();  // a run that only summarized the chat
  ReplayReport report;
  for (const AgentEvent& recorded : changed.events) {
    std::optional<EventPayload> made;
    if (std::holds_alternative<event::TaskUpdated>(recorded.payload)) {
      made = event::TaskUpdated{std::nullopt, agenda.tasks};
    } else if (std::holds_alternative<event::PlanUpdated>(recorded.payload)) {
      made = event::PlanUpdated{std::nullopt, agenda.plan};
    } else if (std::holds_alternative<event::GrantsUpdated>(recorded.payload)) {
      made = event::GrantsUpdated{changed.final_agent_state->grants};
    } else if (std::holds_alternative<event::FilesChanged>(recorded.payload)) {
      made = recorded.payload;  // an act of a person in the workspace, which the state does not hold
    } else if (const auto* compacted = std::get_if<event::Compacted>(&recorded.payload)) {
      made = *compacted;
      const auto& kept = changed.final_agent_state->compaction;
      std::get<event::Compacted>(*made).summary = kept ? kept->summary : std::string();
    } else if (is_run) {
      made = recorded.payload;  // acts of model and people, which the state does not hold
    }
    if (made != recorded.payload) {
      report.divergence = Divergence{.seq = recorded.seq, .expected = recorded};
      if (made) report.divergence->actual = AgentEvent{recorded.seq, recorded.round_index, recorded.at, *made};
      report.divergence->reason = "the final state does not say what this event does";
      return report;
    }
    ++report.events;
  }
  return report;
}

}  // namespace

Result<ReplayReport> ReplayRecorded(const Interaction& interaction, const Executor& executor) {
  TRY(CheckReplayable(interaction));
  if (interaction.user_message.empty()) return CompareChangeByHand(interaction);
  auto recording = TRY(Recording::Of(interaction));
  return Replay(std::move(recording), interaction.imported).Run(executor);
}

}  // namespace reprise
