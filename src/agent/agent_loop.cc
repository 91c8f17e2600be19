#include "agent/agent_loop.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/confirmation.h"
#include "agent/history.h"
#include "agent/loop_guard.h"
#include "agent/prompt.h"
#include "agent/sub_agent.h"
#include "agent/tool_retry.h"
#include "agent/working_memory.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/random.h"
#include "base/utf8.h"
#include "domain/codec.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxLiveOutput = 256 * 1024;  // of one call, as tool_output_delta; its result has its own cap

constexpr std::string_view kEndedResult = "Not run: the interaction was ended.";

// The same words whatever has changed: a replay knows only that something has.
constexpr std::string_view kOutdatedResult =
    "Not run: the tool has changed since this call was made, and the call does not fit it any more. Look at the tools "
    "there are now.";

constexpr std::string_view kNoMoreLiveOutput = "\n(... more follows; it is not shown while the tool runs)\n";
constexpr std::chrono::seconds kSummaryTimeout{30};
constexpr std::size_t kMaxTogether = 8;  // calls of one round at once

ToolOutcome Failure(std::string text) { return {.output = std::move(text), .is_error = true}; }

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

std::string GoesRound(const ToolCall& call, int count) {
  return "Not run: this is call number " + std::to_string(count) + " of " + call.name +
         " with the same arguments, and nothing has changed in between. Do not make it again: use the results you "
         "have, "
         "try something else, or answer and say what is missing.";
}

AuditEntry EntryOf(AuditEntry::Event event, const ToolCall& call, const std::string& arguments) {
  return {.event = event, .call_id = call.id, .tool_name = call.name, .arguments_digest = ArgumentsDigest(arguments)};
}

// The call as the model made it; null if it is not in the state.
const ToolCall* AsMade(const std::vector<Message>& messages, const std::string& id) {
  const auto calling = std::find_if(messages.rbegin(), messages.rend(),
                                    [](const Message& message) { return message.role == Role::kAssistant; });
  if (calling == messages.rend()) return nullptr;
  const auto call = std::find_if(calling->tool_calls.begin(), calling->tool_calls.end(),
                                 [&](const ToolCall& each) { return each.id == id; });
  return call == calling->tool_calls.end() ? nullptr : &*call;
}

std::string UnknownTool(const std::string& name, const ToolSet& tools) {
  std::string text = "There is no tool named \"" + name + "\". Available:";
  for (const ToolSpec& spec : tools.specs()) text += " " + spec.name;
  return text;
}

bool IsConcurrent(const ToolTraits& traits) {
  return traits.concurrency == Concurrency::kAllowed ||
         (traits.concurrency == Concurrency::kIfReadOnly && traits.read_only);
}

AgentLoop::Parts WithCount(AgentLoop::Parts parts) {
  if (!parts.said) parts.said = std::make_shared<std::atomic<std::size_t>>(0);
  return parts;
}

std::size_t SizeBesideText(const ModelResponse& response) {
  std::size_t bytes = response.extras.size();
  for (const ToolCall& call : response.tool_calls) bytes += call.id.size() + call.name.size() + call.arguments.size();
  return bytes;
}

Error TooMuchSaid(std::size_t limit) {
  return Error{.code = ErrorCode::kProvider,
               .reason = "response_too_large",
               .message = "the model's answers in this interaction are longer than " + std::to_string(limit >> 20) +
                          " MiB together"};
}

}  // namespace

// Passes the model's deltas on and keeps what was said: the only copy, whole or broken off.
class AgentLoop::StreamRelay : public ModelStream {
 public:
  StreamRelay(AgentObserver& observer, std::uint32_t round) : observer_(observer), round_(round) {}
  void OnThinking(std::string_view delta) override {
    bytes_ += delta.size();
    thinking_ += delta;
    observer_.AddThinkingDelta(round_, delta);
  }
  void OnText(std::string_view delta) override {
    bytes_ += delta.size();
    text_ += delta;
    observer_.AddTextDelta(round_, delta);
  }
  void OnBatchEnd() override { observer_.FlushDeltas(); }
  bool silent() const { return thinking_.empty() && text_.empty(); }
  std::size_t bytes() const { return bytes_; }
  const std::string& text() const { return text_; }
  std::string TakeThinking() { return std::move(thinking_); }
  std::string TakeText() { return std::move(text_); }

 private:
  AgentObserver& observer_;
  const std::uint32_t round_;
  std::size_t bytes_ = 0;
  std::string thinking_, text_;
};

AgentLoop::AgentLoop(Parts parts, AgentLimits limits, std::string model_name, AgentState state, std::stop_token stop)
    : parts_(WithCount(std::move(parts))),
      limits_(limits),
      model_name_(std::move(model_name)),
      stop_(std::move(stop)),
      tools_(parts_.tools.Current()),
      state_(std::move(state)),
      context_(limits_.context_window) {
  ShowMemory();
}

AgentLoop::~AgentLoop() = default;

void AgentLoop::Start(std::function<void(AgentOutcome)> done) {
  done_ = std::move(done);
  if (parts_.guard && parts_.guard->reviews_requests()) return Later([this] { Begin(); });
  Step([this] { Begin(); });
}

void AgentLoop::Later(std::function<void()> step) {
  const auto executor = parts_.executor;  // the loop may be gone when it returns
  executor([this, step = std::move(step)] { Step(step); });
}

void AgentLoop::Step(const std::function<void()>& step) {
  try {
    step();
  } catch (const std::bad_alloc&) {
    if (!done_) throw;  // it has come to its end
    Finish(InteractionStatus::kFailed, Error{.code = ErrorCode::kUnavailable,
                                             .reason = "overloaded",
                                             .message = "the system has no memory left for this interaction",
                                             .retryable = true});
  }
}

void AgentLoop::Begin() {
  if (!parts_.guard || Admitted(parts_.guard->Begin(stop_))) AskModel();
}

bool AgentLoop::Admitted(const Result<void>& admitted) {
  if (!admitted) FinishByGuard(admitted.error());
  return admitted.has_value();
}

void AgentLoop::FinishByGuard(const Error& why) {
  if (stop_.stop_requested()) return Finish(InteractionStatus::kCancelled);
  Finish(InteractionStatus::kFailed, why);
}

void AgentLoop::Continue(const Interrupted& interrupted, std::function<void(AgentOutcome)> done) {
  round_ = interrupted.round_index;
  if (interrupted.calls.empty()) return Start(std::move(done));
  done_ = std::move(done);
  if (parts_.guard && !Admitted(parts_.guard->Begin(stop_))) return;
  // Whatever the configuration says by now: those that were shown as waiting wait.
  std::vector<AskedCall> asked;
  std::vector<ToolCall> others;
  for (const OpenCall& each : interrupted.calls) {
    if (each.was_shown()) {
      asked.push_back({each, Offered(each.call.name)});
    } else {
      others.push_back(each.call);
    }
  }
  RunAsked(std::move(asked));
  RunCalls(others);
  NextRound();
}

void AgentLoop::NextRound() {
  if (goes_round_) {
    return Finish(InteractionStatus::kFailed, Error{.code = ErrorCode::kInternal,
                                                    .reason = "loop_detected",
                                                    .message = "the agent kept making the same tool calls"});
  }
  ++round_;
  AskModel();
}

void AgentLoop::AskModel() {
  if (stop_.stop_requested()) return Finish(InteractionStatus::kCancelled);
  if (round_ == static_cast<std::uint32_t>(limits_.max_rounds)) {
    --round_;  // the last word belongs to the last round there was
    return Finish(InteractionStatus::kFailed, Error{.code = ErrorCode::kInternal,
                                                    .reason = "max_rounds",
                                                    .message = "the agent did not finish within " +
                                                               std::to_string(limits_.max_rounds) + " rounds"});
  }
  if (const auto& over_budget = parts_.guards.over_budget) {
    if (auto why = over_budget(usage_)) {
      return Finish(InteractionStatus::kFailed,
                    Error{.code = ErrorCode::kInternal, .reason = "budget_exceeded", .message = *std::move(why)});
    }
  }
  if (parts_.guard) {
    auto admitted = parts_.guard->Admit(round_, model_name_, stop_);
    if (!Admitted(admitted.map([](const std::string&) {}))) return;
    told_by_guard_ = *std::move(admitted);
  }
  tools_ = parts_.tools.Current();
  ComposeSystemPrompt();
  if (limits_.sum_up_first && round_ == 0) {
    Compaction wanted = context_.RequestedExtent(state_);
    if (wanted.end > wanted.first && (!state_.compaction || state_.compaction->end < wanted.end)) {
      return SumUp(std::move(wanted));
    }
  }
  if (context_.Fits(state_, tools_->specs())) return SendRequest();
  Compaction next = context_.NextExtent(state_, tools_->specs());
  const bool is_new = next.end > next.first && (!state_.compaction || state_.compaction->end != next.end);
  // No summary is worth asking for if what stays does not fit either.
  auto before = std::exchange(state_.compaction, next);
  const bool helps = is_new && context_.View(state_, tools_->specs());
  state_.compaction = std::move(before);
  helps ? SumUp(std::move(next)) : SendRequest();
}

void AgentLoop::ComposeSystemPrompt() {
  const std::string today = FormatTimestamp(Now()).substr(0, std::string_view("2026-11-21").size());
  system_ = ComposePrompt(parts_.prompt, tools_->specs(), {.date = today, .memory = memory_});
  if (!told_by_guard_.empty()) system_ += (system_.empty() ? "" : "\n\n") + told_by_guard_;
  context_.SetSystemPrompt(system_);
}

// What tools name in this run stands in the messages. So the model is told what was remembered before, and anew when
// messages are summed up: at any other time a change would cost the provider's cache of the whole conversation.
void AgentLoop::ShowMemory() { memory_ = DescribeMemory(state_.memory); }

void AgentLoop::SumUp(Compaction next) {
  summarizer_.emplace();
  const auto end_it = [stop = summarizer_->stop()] { stop->request_stop(); };
  on_stop_.emplace(stop_, end_it);
  if (parts_.delay) parts_.delay(kSummaryTimeout, end_it);
  const Summarizer::Task task{.state = state_,
                              .extent = next,
                              .max_bytes = context_.max_summary_bytes(),
                              .max_request_bytes = context_.max_material_bytes()};
  // Nothing after this call, as in SendRequest.
  summarizer_->Start(parts_.model, model_name_, task, [this, next](std::string text, TokenUsage usage) mutable {
    next.summary = std::move(text);
    Later([this, next = std::move(next), usage] { TakeSummary(next, usage); });
  });
}

void AgentLoop::TakeSummary(Compaction next, const TokenUsage& usage) {
  usage_ += usage;
  ShowUsage(usage);
  if (stop_.stop_requested()) return Finish(InteractionStatus::kCancelled);
  // A model that cannot is no reason to fail.
  if (next.summary.empty()) {
    next.summary = Outline(state_.messages, next.first, next.end, context_.max_summary_bytes());
  }
  event::Compacted told{.messages = static_cast<std::int64_t>(next.end - next.first),
                        .tokens_before = context_.Estimate(state_.messages, tools_->specs()),
                        .tokens_after = 0,
                        .budget = context_.budget(),
                        .summary = next.summary};
  state_.compaction = std::move(next);
  ShowMemory();
  ComposeSystemPrompt();
  const auto view = context_.View(state_, tools_->specs());
  if (!view) return Finish(InteractionStatus::kFailed, view.error());
  told.tokens_after = context_.Estimate(*view, tools_->specs());
  parts_.observer.StateGrew(state_);
  parts_.observer.Emit(round_, std::move(told));
  SendRequest();
}

void AgentLoop::SendRequest() {
  Result<std::vector<Message>> view = std::vector<Message>();
  const bool whole = context_.FitsWhole(state_, tools_->specs());
  if (!whole) view = context_.View(state_, tools_->specs());
  if (!view) return Finish(InteractionStatus::kFailed, view.error());
  const std::size_t may_say = MaySay();
  if (may_say == 0) return Finish(InteractionStatus::kFailed, TooMuchSaid(limits_.max_said));
  const std::vector<Message>& messages = whole ? state_.messages : *view;
  estimate_ = context_.Estimate(messages, tools_->specs());
  said_ = std::make_unique<StreamRelay>(parts_.observer, round_);
  // Nothing after this call: the response, and with it the end of the loop, may be there before it returns.
  parts_.model.Generate({model_name_, messages, tools_->specs(), system_, may_say}, *said_, stop_,
                        [this](Result<ModelResponse> response) {
                          Later([this, response = std::move(response)] { TakeResponse(response); });
                        });
}

// How long the next response may be.
std::size_t AgentLoop::MaySay() const {
  const std::size_t said = *parts_.said;
  return said >= limits_.max_said ? 0 : std::min(kMaxResponseBytes, limits_.max_said - said);
}

void AgentLoop::TakeResponse(const Result<ModelResponse>& response) {
  *parts_.said += said_->bytes() + (response ? SizeBesideText(*response) : 0);
  if (!response) {
    if (RetryLater(response.error())) return;
    RecordPartial();
    if (response.error().code == ErrorCode::kCancelled) return Finish(InteractionStatus::kCancelled);
    return Finish(InteractionStatus::kFailed, response.error());
  }
  retries_ = 0;
  if (parts_.guard) {
    if (const auto heard = parts_.guard->Heard(round_, model_name_, said_->text(), stop_); !heard) {
      return Unheard(response->usage, heard.error());
    }
  }
  usage_ += response->usage;
  if (!response->tool_calls.empty() && response->usage != TokenUsage{}) {
    parts_.observer.Spent(round_, response->usage);
  }
  RecordResponse(*response);
  RunCalls(response->tool_calls);
  context_.Calibrate(estimate_, response->usage.input_tokens);
  ShowUsage(response->usage);
  if (response->tool_calls.empty()) return Finish(InteractionStatus::kCompleted);
  NextRound();
}

// What was shown stays; what the model wanted to be done is not done.
void AgentLoop::Unheard(const TokenUsage& usage, const Error& why) {
  RecordPartial();
  usage_ += usage;
  ShowUsage(usage);
  FinishByGuard(why);
}

void AgentLoop::ShowUsage(const TokenUsage& usage) const {
  if (usage != TokenUsage{}) parts_.observer.Emit(round_, event::Usage{usage});
}

// True if the request is sent again after a pause. What a client has seen cannot be taken back, so a response that had
// begun to show is not asked for twice.
bool AgentLoop::RetryLater(const Error& error) {
  if (!parts_.delay || stop_.stop_requested() || !said_->silent()) return false;
  const auto pause = RetryDelay(limits_.retry, error, retries_, RandomFraction());
  if (!pause) return false;
  ++retries_;
  LogWarning("a model request failed and is sent again",
             {{"code", error.reason}, {"delay_ms", pause->count()}, {"detail", error.detail}});
  parts_.observer.Emit(
      round_,
      event::Retry{.attempt = retries_, .delay_ms = pause->count(), .code = error.reason, .message = error.message});
  // The loop goes on when the pause is over and this function has done its last: it may then be gone at any moment.
  const auto arrived = std::make_shared<std::atomic<int>>(0);
  const auto go_on = [this, arrived] {
    if (arrived->fetch_add(1) == 1) Later([this] { AskModel(); });
  };
  // The pause is over when its time is, or with a stop. The two may meet, and only one counts.
  const auto over = std::make_shared<std::atomic<bool>>(false);
  const auto end_pause = [over, go_on] {
    if (!over->exchange(true)) go_on();
  };
  on_stop_.emplace(stop_, end_pause);
  parts_.delay(*pause, end_pause);
  go_on();
  return true;
}

// What a client saw of a broken response stays: as events and in the history.
void AgentLoop::RecordPartial() {
  parts_.observer.FlushDeltas();
  if (std::string thinking = said_->TakeThinking(); !thinking.empty()) {
    parts_.observer.Emit(round_, event::Thinking{std::move(thinking)});
  }
  std::string text = said_->TakeText();
  if (text.empty()) return;
  Message message{.role = Role::kAssistant, .content = text};
  state_.messages.push_back(std::move(message));
  parts_.observer.StateGrew(state_);
  parts_.observer.Emit(round_, event::MessageText{std::move(text)});
}

void AgentLoop::RecordResponse(const ModelResponse& response) {
  if (std::string thinking = said_->TakeThinking(); !thinking.empty()) {
    parts_.observer.Emit(round_, event::Thinking{std::move(thinking)});
  }
  std::string text = said_->TakeText();
  const bool is_answer = response.tool_calls.empty();
  Message message{.role = Role::kAssistant, .content = text, .tool_calls = response.tool_calls};
  message.extras = response.extras;
  if (!is_answer && text.empty()) message.content = std::nullopt;
  state_.messages.push_back(std::move(message));
  parts_.observer.StateGrew(state_);
  if (is_answer) {
    parts_.observer.Emit(round_, event::Answer{std::move(text), response.truncated});
  } else if (!text.empty()) {
    parts_.observer.Emit(round_, event::MessageText{std::move(text)});
  }
}

std::string AgentLoop::OfferedTool::terms_digest() const {
  return tool == nullptr ? std::string() : TermsDigest(tool->traits());
}

AgentLoop::OfferedTool AgentLoop::Offered(const std::string& name) const { return {tools_, tools_->Find(name)}; }

// `before`, if there is no news.
AgentLoop::OfferedTool AgentLoop::OfferedNow(const OfferedTool& before, const std::string& name) const {
  if (before.tool != nullptr) before.tool->AwaitOffer(stop_);
  auto now = parts_.tools.Current();
  if (now == before.tools) return before;
  Tool* tool = now->Find(name);
  return {std::move(now), tool};
}

AgentLoop::PreparedCall AgentLoop::Prepare(const ToolCall& call, OfferedTool offered) const {
  PreparedCall prepared{.call = call, .offered = std::move(offered)};
  const auto& [tools, tool] = prepared.offered;
  if (tool == nullptr) {
    prepared.Refuse("unknown_tool", UnknownTool(call.name, *tools));
  } else if (auto valid = tools->Validate(*tool, call.arguments); !valid) {
    prepared.Refuse("invalid_arguments", "The arguments were not accepted: " + valid.error().message);
  } else if (limits_.check_confirmations) {
    if (auto why = FalseConfirmation(state_.messages, call)) prepared.Refuse("confirmation", *std::move(why));
  }
  return prepared;
}

// The model made the call to the tool as it was when the round began; what it is now decides who is asked, and runs.
void AgentLoop::Renew(PreparedCall& prepared) const {
  if (prepared.refusal || stop_.stop_requested() || goes_round_) return;
  OfferedTool now = OfferedNow(prepared.offered, prepared.call.name);
  if (now.tool == prepared.offered.tool) return;
  const bool is_same = now.tool != nullptr && now.terms_digest() == prepared.offered.terms_digest();
  if (is_same) {
    prepared.offered = std::move(now);
    return;
  }
  const bool reviewed = prepared.reviewed;
  prepared = Prepare(prepared.call, std::move(now));
  prepared.reviewed = reviewed;
}

// Before anybody is asked about the call, and after those before it have run: who reviews it may look at what they did.
void AgentLoop::Review(PreparedCall& prepared) const {
  Renew(prepared);
  if (prepared.reviewed || prepared.refusal || stop_.stop_requested() || goes_round_) return;
  prepared.reviewed = true;
  if (parts_.guard) {
    CallGuard::Verdict verdict = parts_.guard->Review(round_, prepared.call, stop_);
    if (verdict.refusal) return prepared.Refuse("hook", *std::move(verdict.refusal));
    if (verdict.arguments) {
      const auto valid = prepared.offered.tools->Validate(*prepared.offered.tool, *verdict.arguments);
      if (!valid) {
        return prepared.Refuse("hook", "A hook made the arguments into what is not accepted: " + valid.error().message);
      }
      prepared.call.arguments = *std::move(verdict.arguments);
    }
  }
  if (!parts_.guards.refuse_call) return;
  if (auto why = parts_.guards.refuse_call()) prepared.Refuse("rate", *std::move(why));
}

void AgentLoop::RunCalls(const std::vector<ToolCall>& calls) {
  usage_before_calls_ = usage_;
  std::vector<PreparedCall> prepared;
  for (const ToolCall& call : calls) prepared.push_back(Prepare(call, Offered(call.name)));
  for (std::size_t i = 0; i < prepared.size();) {
    // Those from this one on that fit together. What follows them is reviewed later; only a call that its review has
    // made into one that does not fit is reviewed already.
    const auto group = [&](std::size_t most, const auto& fits) {
      std::size_t end = i;
      while (end < prepared.size() && end - i < most) {
        const std::span<const PreparedCall> before = std::span(prepared).subspan(i, end - i);
        if (end > i && !fits(before, prepared[end])) break;
        Review(prepared[end]);
        if (!fits(before, prepared[end])) break;
        ++end;
      }
      return std::span<const PreparedCall>(prepared).subspan(i, end - i);
    };
    const auto together = group(
        kMaxTogether, [this](std::span<const PreparedCall>, const PreparedCall& each) { return RunsBeside(each); });
    if (together.size() > 1) {
      RunTogether(together);
      i += together.size();
      continue;
    }
    const auto asked = group(prepared.size(), [this](std::span<const PreparedCall> before, const PreparedCall& each) {
      return AsksFirst(each) && !HasEqual(before, each);
    });
    if (!asked.empty()) {
      AskAll(asked);
      i += asked.size();
      continue;
    }
    const PreparedCall& next = prepared[i];
    const ToolCall& made = calls[i++];
    // After a cancellation the remaining calls still get their result, without running.
    if (stop_.stop_requested()) {
      NoteRefusal(made, "cancelled");
      RecordResult(made, Failure(std::string(kCancelledResult)));
    } else if (goes_round_) {
      NoteRefusal(made, "loop");
      RecordResult(made, Failure(std::string(kEndedResult)));
    } else if (const auto circle = FindCallLoop(state_.messages, made.id)) {
      parts_.observer.Emit(round_, event::LoopDetected{made.name, circle->count});
      goes_round_ = circle->warned;
      NoteRefusal(made, "loop");
      RecordResult(made, Failure(GoesRound(made, circle->count)));
    } else {
      RecordResult(next.call, RunCall(next));
    }
  }
}

// Whether nothing but its tool decides what becomes of this call, and the tool does not mind others beside it.
bool AgentLoop::RunsBeside(const PreparedCall& prepared) const {
  const ToolCall& call = prepared.call;
  return !prepared.refusal && IsConcurrent(prepared.offered.tool->traits()) && !goes_round_ && !MustAsk(prepared) &&
         !FindCallLoop(state_.messages, call.id);
}

// Calls that run at the same time. Each is done by the thread that claims it; its result is recorded when those of the
// calls before it are.
struct AgentLoop::Batch {
  const std::span<const PreparedCall> calls;  // there as long as one is claimed
  std::mutex mutex;                           // also of the loop's state meanwhile
  std::condition_variable all_recorded;
  std::vector<std::optional<ToolOutcome>> outcomes;  // guarded by mutex
  std::size_t claimed = 0, recorded = 0;             // guarded by mutex
};

// First all are shown and then each result in its turn: the events come in the same order however long each call takes.
void AgentLoop::RunTogether(std::span<const PreparedCall> calls) {
  for (const PreparedCall& prepared : calls) {
    const ToolCall& call = prepared.call;
    if (stop_.stop_requested()) break;
    parts_.observer.Emit(round_, event::ToolCallStarted{call.id, call.name, call.arguments});
  }
  // Shared with threads that may come when all is done.
  const std::shared_ptr<Batch> batch(new Batch{.calls = calls,
                                               .mutex = {},
                                               .all_recorded = {},
                                               .outcomes = std::vector<std::optional<ToolOutcome>>(calls.size())});
  for (std::size_t i = 1; i < calls.size(); ++i) {
    parts_.executor([this, batch] { WorkOn(*this, *batch); });
  }
  WorkOn(*this, *batch);  // if nobody else can come, this thread does them all
  std::unique_lock lock(batch->mutex);
  batch->all_recorded.wait(lock, [&] { return batch->recorded == calls.size(); });
}

// `loop` is there as long as a call that was claimed is not recorded.
void AgentLoop::WorkOn(AgentLoop& loop, Batch& batch) {
  std::unique_lock lock(batch.mutex);
  while (batch.claimed < batch.calls.size()) {
    const std::size_t i = batch.claimed++;
    lock.unlock();
    const PreparedCall& next = batch.calls[i];
    ToolOutcome outcome = loop.RunTool(next.offered, next.call, next.call.arguments, /*approval_id=*/{});
    lock.lock();
    batch.outcomes[i] = std::move(outcome);
    for (std::size_t& turn = batch.recorded; turn < batch.calls.size() && batch.outcomes[turn]; ++turn) {
      loop.RecordResult(batch.calls[turn].call, *std::move(batch.outcomes[turn]));
    }
  }
  if (batch.recorded == batch.calls.size()) batch.all_recorded.notify_all();
}

void AgentLoop::RecordResult(const ToolCall& call, ToolOutcome outcome) {
  if (outcome.requires_confirmation) outcome.output += kConfirmationNote;
  Remember(state_.memory, call, outcome);
  const ToolCall* made = AsMade(state_.messages, call.id);
  const bool was_considered =
      outcome.output != kCancelledResult && outcome.output != kRefusedResult && outcome.output != kOutcomeUnknown;
  if (made && made->arguments != call.arguments && was_considered) {
    outcome.output.insert(0, ChangedByHook(call.arguments));
  }
  Message message{.role = Role::kTool, .content = outcome.output, .tool_calls = {}, .tool_call_id = call.id};
  message.name = call.name;
  message.is_error = outcome.is_error;
  usage_ += outcome.usage;
  state_.messages.push_back(std::move(message));
  parts_.observer.StateGrew(state_);
  parts_.observer.Emit(round_, event::ToolResult{call.id, call.name, std::move(outcome.output), outcome.is_error});
}

ToolOutcome AgentLoop::RunCall(const PreparedCall& prepared) {
  const ToolCall& call = prepared.call;
  if (prepared.refusal) {
    parts_.observer.Emit(round_, event::ToolCallStarted{call.id, call.name, call.arguments});
    NoteRefusal(call, prepared.refused_by);
    return Failure(*prepared.refusal);
  }
  // Calls that a person is asked about do not come here.
  if (!CanAsk() && MustAsk(prepared)) {
    NoteRefusal(call, "mode");
    return Failure(std::string(limits_.nobody_to_ask ? kNobodyToAskResult : kRefusedResult));
  }
  parts_.observer.Emit(round_, event::ToolCallStarted{call.id, call.name, call.arguments});
  return RunTool(prepared.offered, call, call.arguments, /*approval_id=*/{});
}

// An account that cannot be written is no reason to run what was refused.
void AgentLoop::NoteRefusal(const ToolCall& call, std::string_view by) const {
  AuditEntry entry = EntryOf(AuditEntry::Event::kRefused, call, call.arguments);
  entry.reason = by;
  static_cast<void>(Note(std::move(entry)));
}

Result<void> AgentLoop::Note(AuditEntry entry) const {
  if (parts_.guard == nullptr) return {};
  auto noted = parts_.guard->Note(std::move(entry));
  if (!noted) {
    LogError("the audit log could not be written", {{"code", noted.error().reason}, {"detail", noted.error().detail}});
  }
  return noted;
}

AgentLoop::Permission AgentLoop::PermissionFor(const OfferedTool& offered, const std::string& arguments) const {
  const ToolTraits& traits = offered.tool->traits();
  const auto sensitive = offered.tool->ReasonToAsk(arguments);
  const bool asks_by_default = sensitive || offered.tools->RequiresApproval(*offered.tool);
  bool asks = asks_by_default;
  if (limits_.approval_mode == ApprovalMode::kApproveAll) asks = false;
  if (limits_.approval_mode == ApprovalMode::kReadOnly) asks = sensitive || !traits.read_only;
  if (traits.needs_consent) return {limits_.approval_mode != ApprovalMode::kApproveAll, "mode"};
  if (!asks && !asks_by_default) return {false, "default"};
  const Grant call{traits.spec.name, ArgumentsDigest(arguments), TermsDigest(traits, sensitive)};
  const bool is_granted = std::find(state_.grants.begin(), state_.grants.end(), call) != state_.grants.end();
  if (is_granted && !call.terms_digest.empty()) return {false, "grant", true, sensitive.has_value()};
  if (parts_.approvals.IsGranted(call)) return {false, "standing_grant", true, sensitive.has_value()};
  return {asks, "mode"};
}

// Whether a person is asked about this call when its turn comes, whatever becomes of the calls beside it.
bool AgentLoop::AsksFirst(const PreparedCall& prepared) const {
  const ToolCall& call = prepared.call;
  return !prepared.refusal && !stop_.stop_requested() && !goes_round_ && CanAsk() && MustAsk(prepared) &&
         !FindCallLoop(state_.messages, call.id);
}

// A call equal to one that is asked about waits for that answer: it may be a grant.
bool AgentLoop::HasEqual(std::span<const PreparedCall> calls, const PreparedCall& prepared) {
  return std::any_of(calls.begin(), calls.end(), [&](const PreparedCall& each) {
    return each.call.name == prepared.call.name && each.call.arguments == prepared.call.arguments;
  });
}

event::ApprovalRequired AgentLoop::RequestFor(const PreparedCall& prepared) {
  const ToolCall& call = prepared.call;
  const ToolTraits& traits = prepared.offered.tool->traits();
  event::ApprovalRequired request;
  request.call_id = call.id;
  request.tool_name = call.name;
  request.tool_input = call.arguments;
  request.arguments_digest = ArgumentsDigest(call.arguments);
  const auto sensitive = prepared.offered.tool->ReasonToAsk(call.arguments);
  request.terms_digest = TermsDigest(traits, sensitive);
  request.reason = traits.approval_reason + (sensitive ? ": " + *sensitive : "");
  request.risk = RiskName(sensitive ? Risk::kHigh : traits.risk);
  request.allowed_decisions = {"approve", "approve_for_chat"};
  if (!traits.needs_consent) request.allowed_decisions.emplace_back("approve_always");
  request.allowed_decisions.insert(request.allowed_decisions.end(), {"edit", "reject"});
  return request;
}

// All are asked about before any of them runs, so that they can be answered together and in any order.
void AgentLoop::AskAll(std::span<const PreparedCall> calls) {
  std::vector<event::ApprovalRequired> requests;
  std::vector<AskedCall> asked;
  for (const PreparedCall& each : calls) {
    const event::ApprovalRequired& request = requests.emplace_back(RequestFor(each));
    asked.push_back({.open = {.call = each.call, .terms_digest = request.terms_digest}, .offered = each.offered});
  }
  std::vector<std::string> ids = parts_.approvals.Ask(round_, std::move(requests), /*withdrawn=*/{});
  for (std::size_t i = 0; i < calls.size(); ++i) asked[i].open.approval_id = std::move(ids[i]);
  RunAsked(std::move(asked));
}

// Each runs when it and those before it are answered.
void AgentLoop::RunAsked(std::vector<AskedCall> calls) {
  for (AskedCall& next : calls) {
    do {
      while (next.waits()) TakeAnswer(calls);
    } while (AsksAnew(next));
    ToolOutcome outcome = RunAnswered(next);
    // A stop may leave what waits, and with it this call, which has not run, to another process. That has to be known
    // before anything is said of it.
    const bool is_stopped = stop_.stop_requested() && outcome.output == kCancelledResult;
    while (is_stopped && std::any_of(calls.begin(), calls.end(), [](const AskedCall& each) { return each.waits(); })) {
      TakeAnswer(calls);
    }
    RecordResult(next.open.call, std::move(outcome));
  }
}

// Waits for an answer to one of those that have none, and shows it at once: what a person has said is kept however long
// the others take.
void AgentLoop::TakeAnswer(std::vector<AskedCall>& calls) {
  std::vector<std::string> ids;
  for (const AskedCall& each : calls) {
    if (each.waits()) ids.push_back(each.open.approval_id);
  }
  auto decision = parts_.approvals.AwaitAnswer(ids, stop_);
  for (AskedCall& asked : calls) {
    OpenCall& open = asked.open;
    if (std::find(ids.begin(), ids.end(), open.approval_id) == ids.end()) continue;
    if (!decision) {
      open.outcome = Failure(std::string(kCancelledResult));
    } else if (decision->approval_id == open.approval_id) {
      open.answer = std::move(decision->answer);
      if (!open.answer->superseded) return RecordAnswer(open);
      AsksAnew(asked);
      return;
    }
  }
}

// What was agreed to is what runs. If the tool, or where it would run, is not what was shown when the call's turn
// comes, the call is asked about again as it is now, whatever the answer was worth; true if it waits now.
bool AgentLoop::AsksAnew(AskedCall& asked) {
  OpenCall& open = asked.open;
  const bool is_answered = open.answer && (open.answer->approved || open.answer->superseded);
  if (!is_answered || open.has_asked || open.outcome || stop_.stop_requested()) return false;
  asked.offered = OfferedNow(asked.offered, open.call.name);
  if (stop_.stop_requested()) return false;
  if (!open.answer->superseded) {
    const Tool* const tool = asked.offered.tool;
    const auto sensitive = tool == nullptr ? std::nullopt : tool->ReasonToAsk(open.call.arguments);
    // Who has written other arguments knows where they lead.
    asked.knows_secrets = sensitive || open.answer->arguments;
    if (tool == nullptr || TermsDigest(tool->traits(), sensitive) == open.terms_digest) return false;
  }
  AuditEntry entry = EntryOf(AuditEntry::Event::kRejected, open.call, open.call.arguments);
  entry.approval_id = open.approval_id;
  entry.reason = "superseded";
  static_cast<void>(Note(std::move(entry)));
  event::Rejected withdrawn{open.approval_id, open.call.id, std::nullopt};
  withdrawn.superseded = true;
  const PreparedCall again = Prepare(open.call, asked.offered);
  open.answer.reset();
  if (again.refusal) {
    parts_.observer.Emit(round_, std::move(withdrawn));
    NoteRefusal(open.call, again.refused_by);
    open.outcome = Failure(std::string(kOutdatedResult));
    return false;
  }
  event::ApprovalRequired request = RequestFor(again);
  open.terms_digest = request.terms_digest;
  open.approval_id = parts_.approvals.Ask(round_, {std::move(request)}, std::move(withdrawn)).front();
  return true;
}

void AgentLoop::RecordAnswer(const OpenCall& asked) {
  const ApprovalAnswer& answer = *asked.answer;
  const ToolCall& call = asked.call;
  if (!answer.approved) {
    AuditEntry rejected = EntryOf(AuditEntry::Event::kRejected, call, call.arguments);
    rejected.approval_id = asked.approval_id;
    if (answer.expired) rejected.reason = "expired";
    static_cast<void>(Note(std::move(rejected)));
    parts_.observer.Emit(round_, event::Rejected{asked.approval_id, call.id, answer.feedback, answer.expired});
    return;
  }
  const std::string arguments = answer.arguments.value_or(call.arguments);
  std::string digest = ArgumentsDigest(arguments);
  AuditEntry approved = EntryOf(AuditEntry::Event::kApproved, call, arguments);
  approved.approval_id = asked.approval_id;
  approved.reason = ToString(answer.scope);
  static_cast<void>(Note(std::move(approved)));
  if (answer.scope == ApprovalScope::kChat) {
    state_.grants.push_back({call.name, digest, asked.terms_digest});
    parts_.observer.StateGrew(state_);
  }
  parts_.observer.Emit(round_, event::Approved{asked.approval_id, call.id, std::move(digest),
                                               std::string(ToString(answer.scope)), answer.arguments, answer.feedback});
}

ToolOutcome AgentLoop::RunAnswered(AskedCall& asked) {
  OpenCall& open = asked.open;
  const ToolCall& call = open.call;
  if (open.outcome) return *std::move(open.outcome);
  const std::optional<ApprovalAnswer>& answer = open.answer;
  if (answer && answer->superseded) return Failure(std::string(kOutdatedResult));
  if (answer && !answer->approved) {
    std::string text = answer->expired ? "Nobody approved this call in time. It was not run."
                                       : "The user rejected this call. It was not run.";
    if (answer->feedback) text += " Their words: " + *answer->feedback;
    return Failure(std::move(text));
  }
  // An answer and a cancellation may meet: what is not wanted any more does not run.
  if ((stop_.stop_requested() || !answer) && !open.has_asked) return Failure(std::string(kCancelledResult));
  if (asked.offered.tool == nullptr) {
    NoteRefusal(call, "unknown_tool");
    return Failure(UnknownTool(call.name, *asked.offered.tools));
  }
  if (!answer) return RunTool(asked.offered, call, call.arguments, /*approval_id=*/{}, false, open.has_asked);
  const std::string arguments = answer->arguments.value_or(call.arguments);
  if (!open.has_asked) parts_.observer.Emit(round_, event::ToolCallStarted{call.id, call.name, arguments});
  ToolOutcome outcome = RunTool(asked.offered, call, arguments, open.approval_id, asked.knows_secrets, open.has_asked);
  if (answer->arguments) outcome.output.insert(0, "(The user changed the arguments to " + arguments + ")\n");
  if (answer->feedback) outcome.output += "\n(The user adds: " + *answer->feedback + ")";
  return outcome;
}

ToolOutcome AgentLoop::RunTool(const OfferedTool& offered, const ToolCall& call, const std::string& arguments,
                               const std::string& approval_id, bool knows_secrets, bool goes_on) {
  if (!goes_on && stop_.stop_requested()) return Failure(std::string(kCancelledResult));
  AuditEntry entry = EntryOf(AuditEntry::Event::kStarted, call, arguments);
  entry.approval_id = approval_id;
  const Permission permission =
      approval_id.empty() ? PermissionFor(offered, arguments) : Permission{false, "approval", true, knows_secrets};
  entry.reason = permission.reason;
  // What could not be put on account is not done.
  if (!goes_on && !Note(entry)) return Failure("Not run: the audit log could not be written.");
  const auto began = std::chrono::steady_clock::now();
  std::size_t shown = 0;
  ToolContext context{.stop = stop_,
                      .timeout = limits_.tool_timeout,
                      .on_output = {},
                      .approved = permission.agreed,
                      .knows_secrets = permission.knows_secrets,
                      .ask = {}};
  const auto live_filter = parts_.guard ? parts_.guard->LiveFilter() : nullptr;
  context.ask = [&](const ToolQuestion& question, const std::stop_token& over) {
    return AskPerson(call, question, over);
  };
  context.files = parts_.files;
  context.change_agenda = [&](const std::function<void(Agenda&)>& change) { ChangeAgenda(call, change); };
  context.on_output = [&](std::string_view bytes) {
    if (shown > kMaxLiveOutput) return;
    std::string may_be_shown;
    if (live_filter) bytes = may_be_shown = live_filter(bytes);
    if (bytes.empty()) return;
    shown += bytes.size();
    std::string text = ToValidUtf8(bytes);
    if (shown > kMaxLiveOutput) text += kNoMoreLiveOutput;
    parts_.observer.Emit(round_, event::ToolOutputDelta{call.id, call.name, std::move(text)});
  };
  context.research = [&](const std::string& question) {
    const SubAgentTask task{
        .call_id = call.id, .round_index = round_, .question = question, .used_before = usage_before_calls_};
    return RunSubAgent(parts_, limits_, task, model_name_, stop_);
  };
  ToolOutcome outcome;
  try {
    outcome = RunWithRetries(*offered.tool, arguments, context);
  } catch (const std::exception& error) {
    // A tool must not throw; one that does must not take the run, whose state would be lost, with it.
    LogError("a tool threw", {{"tool", call.name}, {"what", error.what()}});
    outcome = Failure("The tool failed for an internal reason.");
  }
  entry.event = AuditEntry::Event::kEnded;
  entry.reason.clear();
  entry.is_error = outcome.is_error;
  entry.exit_status = outcome.exit_status;
  entry.duration_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began).count();
  static_cast<void>(Note(std::move(entry)));
  if (parts_.guard) outcome = parts_.guard->Passed(round_, {call.id, call.name, arguments}, std::move(outcome), stop_);
  if (stop_.stop_requested() && outcome.output.empty()) outcome.output = kCancelledResult, outcome.is_error = true;
  return outcome;
}

void AgentLoop::ChangeAgenda(const ToolCall& call, const std::function<void(Agenda&)>& change) {
  const Agenda before = state_.agenda;
  change(state_.agenda);
  if (state_.agenda == before) return;
  parts_.observer.StateGrew(state_);
  const Agenda& now = state_.agenda;
  if (now.tasks != before.tasks) parts_.observer.Emit(round_, event::TaskUpdated{call.id, now.tasks});
  if (now.plan != before.plan) parts_.observer.Emit(round_, event::PlanUpdated{call.id, now.plan});
}

ToolAnswer AgentLoop::AskPerson(const ToolCall& call, const ToolQuestion& question, const std::stop_token& over) {
  const auto seen = [this](const std::string& text) { return parts_.guard ? parts_.guard->Redacted(text) : text; };
  event::InputRequired request;
  request.call_id = call.id;
  request.question = seen(question.text);
  for (const std::string& option : question.options) request.options.push_back(seen(option));
  if (!question.schema.empty()) request.schema = seen(question.schema);
  if (request.schema && !ParseJson(*request.schema)) request.schema = "{}";  // a pattern has cut through it
  if (!question.url.empty()) request.url = seen(question.url);
  auto reply = parts_.approvals.AskInput(round_, std::move(request), over);
  if (!reply) return {.action = ToolAnswer::Action::kCancel};
  std::optional<std::string>& response = reply->answer.response;
  parts_.observer.Emit(round_, event::InputReceived{reply->request_id, call.id, response});
  if (!response) return {.action = ToolAnswer::Action::kDecline};
  return {.action = ToolAnswer::Action::kAccept, .content = *std::move(response)};
}

void AgentLoop::Finish(InteractionStatus status, std::optional<Error> error) {
  CompleteToolCalls(state_.messages, kCancelledResult);
  // The caller may let go of the loop in `done`.
  const auto done = std::exchange(done_, nullptr);
  done({.status = status, .state = std::move(state_), .usage = usage_, .error = std::move(error)});
}

}  // namespace reprise
