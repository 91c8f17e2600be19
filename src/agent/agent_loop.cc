#include "agent/agent_loop.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "agent/deferred_tools.h"
#include "agent/prompt.h"
#include "agent/sub_agent.h"
#include "base/interned.h"
#include "base/logging.h"
#include "base/system.h"
#include "base/text.h"
#include "base/wav.h"

namespace reprise {
namespace {

AgentParts WithShared(AgentParts parts) {
  if (!parts.said) parts.said = std::make_shared<std::atomic<std::size_t>>(0);
  if (!parts.alone) parts.alone = std::make_shared<Mutex>();
  return parts;
}

ApprovalPolicy PolicyOf(const AgentLimits& limits, ApprovalGate& approvals, const RunRecorder* recorder,
                        std::stop_token stop) {
  ApprovalPolicy policy{.mode = [&approvals](const ToolCall& call) { return approvals.ModeFor(call.id); },
                        .also = limits.also_mode,
                        .nobody_to_ask = limits.nobody_to_ask,
                        .check_confirmations = limits.check_confirmations,
                        .standing_grants = [&approvals](const Grant& call) { return approvals.StandingGrants(call); },
                        .rules = limits.rules,
                        .added_rules = limits.added_rules};
  if (recorder != nullptr) {
    policy.can_undo = [recorder, stop = std::move(stop)](const ToolTraits& traits, std::string_view arguments) {
      return recorder->CanRecord(traits, arguments, stop);
    };
  }
  return policy;
}

std::size_t SizeBesideText(const ModelResponse& response) {
  std::size_t bytes = response.extras.size();
  for (const ToolCall& call : response.tool_calls) bytes += call.id.size() + call.name.size() + call.arguments.size();
  return bytes;
}

// The ids of calls since the last user message, because clients identify an interaction's calls by their ids.
std::vector<std::string> UsedCallIds(const Messages& messages) {
  std::vector<std::string> ids;
  for (auto message = messages.rbegin(); message != messages.rend() && !IsOfPerson(*message); ++message) {
    for (const ToolCall& call : message->tool_calls) ids.push_back(call.id);
  }
  return ids;
}

// An answer that the provider pauses more often is shown as cut off.
constexpr int kMostPauses = 16;

constexpr std::string_view kSpokenFile = "spoken.wav";

// A search leaves the machine only to the provider, which gets the whole conversation anyway, and changes nothing.
bool MaySearch(ApprovalGate& approvals, const AgentLimits& limits, const ToolSet& tools) {
  return approvals.ModeFor({}) != ApprovalMode::kDenyAll && limits.also_mode != ApprovalMode::kDenyAll &&
         tools.AllowsWebSearch();
}

Error Stopped() { return MakeError(ErrorCode::kCancelled, "the interaction was cancelled"); }

Error TooMuchSaid(std::size_t limit) {
  return Refused(Reason::kResponseTooLarge, "the model's answers in this interaction are longer than " +
                                                std::to_string(limit >> 20) + " MiB together");
}

// An exception of a model, a tool, a guard or the server itself fails only its run.
constexpr std::string_view kInternalFailure = "the run failed for an internal reason; the server's log says more";

Error NoMemory() { return Refused(Reason::kOverloaded, "the system has no memory left for this interaction"); }

}  // namespace

// Passes on the model's deltas and keeps the only copy of the text, complete or not.
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
  void OnSound(std::string_view samples) override {
    bytes_ += samples.size();
    sound_ += samples;
    std::string content;
    AppendBase64(content, samples);
    observer_.Emit(round_, event::SoundDelta{std::move(content)});
  }
  void OnBatchEnd() override { observer_.FlushDeltas(); }
  bool silent() const { return thinking_.empty() && text_.empty() && sound_.empty(); }
  std::size_t bytes() const { return bytes_; }
  const std::string& text() const { return text_; }
  std::string TakeThinking() { return std::move(thinking_); }
  std::string TakeText() { return std::move(text_); }
  std::string TakeSound() { return std::exchange(sound_, {}); }

 private:
  AgentObserver& observer_;
  const std::uint32_t round_;
  std::size_t bytes_ = 0;
  std::string thinking_, text_, sound_;
};

AgentLoop::AgentLoop(AgentParts parts, AgentLimits limits, std::string model_name, AgentState state,
                     std::stop_token stop)
    : parts_(WithShared(std::move(parts))),
      limits_(limits),
      model_name_(std::move(model_name)),
      turn_{.parts = parts_,
            .limits = limits_,
            .model_name = model_name_,
            .stop = stop,
            .policy = PolicyOf(limits_, parts_.approvals, parts_.recorder, std::move(stop)),
            .state = std::move(state),
            .tools = parts_.tools.Current()},
      calls_(turn_),
      context_(limits_.context_window),
      message_parts_(parts_.files, parts_.documents, {limits_.abilities, limits_.parts, limits_.context_window}) {
  if (parts_.instructions) sub_agents_ = DescribeSubAgents(parts_.instructions->Agents());
  ShowMemory();
}

AgentLoop::~AgentLoop() = default;

void AgentLoop::Start(std::function<void(AgentOutcome)> done, Interrupted where) {
  Run(std::move(where), std::move(done));
}

// The whole run, including its failures. `done` may destroy this object.
Detached AgentLoop::Run(Interrupted where, std::function<void(AgentOutcome)> done) {
  Result<Nothing> ended = Nothing{};
  try {
    ended = co_await TakeTurn(std::move(where));
  } catch (const std::bad_alloc&) {
    ended = Fail(NoMemory());
  } catch (const std::exception& error) {
    ended = Fail(MakeError(ErrorCode::kInternal, std::string(kInternalFailure), error.what()));
  } catch (...) {
    ended = Fail(MakeError(ErrorCode::kInternal, std::string(kInternalFailure), "no std::exception"));
  }
  AgentOutcome outcome{.status = InteractionStatus::kCompleted,
                       .state = std::move(turn_.state),
                       .usage = turn_.usage,
                       .error = std::nullopt};
  CompleteToolCalls(outcome.state.messages, kCancelledResult);
  if (!ended) FailSpan(turn_.span, ended.error(), turn_.parts.guard);
  turn_.span.End();
  if (!ended && ended.error().code == ErrorCode::kCancelled) {
    outcome.status = InteractionStatus::kCancelled;
  } else if (!ended) {
    outcome.status = InteractionStatus::kFailed;
    outcome.error = std::move(ended.error());
  }
  done(std::move(outcome));
}

// Takes a turn, from the user's message to the answer.
Async<Result<Nothing>> AgentLoop::TakeTurn(Interrupted where) {
  const bool takes_time = (parts_.guard && parts_.guard->reviews_requests()) || !where.calls.empty();
  if (takes_time) {  // must not block the calling thread
    FromCallback<Nothing> on_own_thread(parts_.executor, [](std::function<void(Nothing)> go_on) { go_on({}); });
    co_await on_own_thread;
  }
  if (parts_.guard) {
    if (auto admitted = Admitted(parts_.guard->Begin(turn_.stop)); !admitted) co_return Fail(admitted.error());
  }
  turn_.round = where.round_index;
  if (!where.calls.empty()) {
    BeginRound();
    co_await calls_.Finish(std::move(where.calls));
    ShowUsage(where.usage, /*of_conversation=*/true);
    turn_.span.End();
    ++turn_.round;
  }
  if (limits_.only_sum_up) co_return co_await OnlySumUp();
  while (!turn_.goes_round && !turn_.stands_still) {
    Result<ModelResponse> response = co_await AskModel();
    if (!response) co_return Fail(response.error());
    response->pauses = response->pauses && ++times_paused_ <= kMostPauses;
    const auto sent_back = SentBack(*response);
    if (!sent_back) co_return Fail(sent_back.error());
    RecordResponse(*response, *sent_back);
    co_await calls_.Run(response->tool_calls);
    context_.Calibrate(estimate_, response->usage.input_tokens);
    ShowUsage(response->usage, /*of_conversation=*/true);
    turn_.span.End();
    if (response->tool_calls.empty() && !*sent_back && !response->pauses) co_return Nothing{};
    ++turn_.round;
  }
  co_return Fail(Reason::kLoopDetected,
                 turn_.goes_round ? "the agent kept making the same tool calls" : "the agent's tool calls led nowhere");
}

void AgentLoop::BeginRound() {
  turn_.span = parts_.span ? parts_.span->Child("round") : Span();
  turn_.span.Set("reprise.round.index", static_cast<std::int64_t>(turn_.round));
}

// Returns the round's response: the first that is complete. Text of a broken response that clients have seen is kept.
Async<Result<ModelResponse>> AgentLoop::AskModel() {
  for (int retries = 0;; ++retries) {
    if (auto may_ask = MayAsk(); !may_ask) co_return Fail(may_ask.error());
    if (retries == 0) BeginRound();
    turn_.tools = parts_.tools.Current();
    is_planning_ = parts_.approvals.ModeFor({}) == ApprovalMode::kPlan;
    ComposeSystemPrompt();
    co_await ShowParts();
    if (auto fits = co_await FitContext(); !fits) co_return Fail(fits.error());
    Result<ModelResponse> response = co_await SendRequest();
    if (response) {
      const auto heard =
          parts_.guard ? parts_.guard->Heard(turn_.round, model_name_, said_->text(), turn_.stop) : Result<void>();
      turn_.usage += response->usage;
      if (heard) co_return response;
      // The shown text is kept; the calls do not run.
      RecordPartial();
      ShowUsage(response->usage);
      co_return Fail(Admitted(heard).error());
    }
    const bool again = SendsNoParts(response.error(), retries) || co_await PauseToRetry(response.error(), retries);
    if (again) continue;
    RecordPartial();
    response.error().message += WordsOfLongPause(limits_.retry, response.error(), Now());
    co_return response;
  }
}

// Text of an answer whose check is interrupted is kept.
Result<std::optional<std::string>> AgentLoop::SentBack(const ModelResponse& response) {
  const bool may_go_on =
      times_sent_back_ < limits_.max_sent_back && turn_.round + 1 < static_cast<std::uint32_t>(limits_.max_rounds);
  const bool is_answer = response.tool_calls.empty() && !response.pauses;
  if (!is_answer || parts_.guard == nullptr || !may_go_on) return std::optional<std::string>();
  auto why = parts_.guard->CheckAnswer(turn_.round, times_sent_back_, said_->text(), turn_.stop);
  if (!turn_.stop.stop_requested()) return why;
  RecordPartial();
  ShowUsage(response.usage);
  return Fail(Stopped());
}

// A turn that only makes a summary.
Async<Result<Nothing>> AgentLoop::OnlySumUp() {
  if (auto may_ask = MayAsk(); !may_ask) co_return Fail(may_ask.error());
  BeginRound();
  ComposeSystemPrompt();
  co_await ShowParts();
  auto due = CompactionDue();
  if (!due) co_return Fail(Reason::kNothingToCompact, "nothing was said before the last message that is not summed up");
  co_return co_await SumUp(*std::move(due));
}

// Checks before a request. A failure ends the run.
Result<void> AgentLoop::MayAsk() {
  if (turn_.stop.stop_requested()) return Fail(Stopped());
  if (turn_.round == static_cast<std::uint32_t>(limits_.max_rounds)) {
    return Fail(Reason::kMaxRounds,
                "the agent did not finish within " + std::to_string(limits_.max_rounds) + " rounds");
  }
  if (const auto& over_budget = parts_.guards.over_budget) {
    if (auto why = over_budget(turn_.usage)) return Fail(Reason::kBudgetExceeded, *std::move(why));
  }
  if (parts_.guard == nullptr) return {};
  auto told = parts_.guard->Admit(turn_.round, model_name_, turn_.stop);
  if (!told) return Admitted(Fail(std::move(told.error())));
  told_by_guard_ = *std::move(told);
  return {};
}

// The guard's error, or the cancellation if the run was stopped.
Result<void> AgentLoop::Admitted(Result<void> admitted) const {
  if (!admitted && turn_.stop.stop_requested()) return Fail(Stopped());
  return admitted;
}

void AgentLoop::ComposeSystemPrompt() {
  const std::string today = FormatTimestamp(Now()).substr(0, std::string_view("2026-11-21").size());
  const PromptValues values{.date = today, .memory = memory_, .max_plain_bytes = context_.max_plain_bytes()};
  std::vector<PromptModule> modules = ComposedModules(parts_.prompt, ToldSpecs(), values);
  if (!told_by_guard_.empty()) modules.push_back({.name = std::string(kHookPart), .text = told_by_guard_});
  system_ = JoinModules(modules);
  sources_.modules.clear();
  for (PromptModule& module : modules) sources_.modules.push_back({std::move(module.name), module.text.size()});
  context_.SetSystemPrompt(system_);
}

// The prompt lists only entities from messages that were summed up, because the other messages still name theirs. It
// changes only with a summary: any other change would cost the provider's cache of the whole conversation.
void AgentLoop::ShowMemory() {
  const auto& compaction = turn_.state.compaction;
  memory_ = compaction ? DescribeMemory(NamedBefore(turn_.state.messages, compaction->end)) : std::string();
}

// A model with little room gets short descriptions of its tools, because full ones would fill the request.
const std::vector<ToolSpec>& AgentLoop::ToldSpecs() {
  ToldTools::Of of{.tools = turn_.tools,
                   .format = limits_.edit_format,
                   .is_planning = is_planning_,
                   .found = FoundTools(*turn_.tools, turn_.state.messages),
                   .sub_agents = sub_agents_};
  if (of != told_of_) {
    const bool was_short = told_shortly_.has_value();
    told_of_ = std::move(of);
    told_ = ToldOf(told_of_);
    told_shortly_ = ShortToolsWithin(told_->specs, context_.budget());
    if (told_shortly_ && !was_short) {
      LogInfo("the model has little room: it is told of its tools in short",
              {{"model", model_name_},
               {"context_window", limits_.context_window},
               {"tools", told_shortly_->specs.size()},
               {"left_out", Joined(told_shortly_->left_out, " ")}});
    }
  }
  return told_shortly_ ? told_shortly_->specs : told_->specs;
}

// --- what fits -------------------------------------------------------------------------------------------------------

// Reading files and documents takes time and must not block the calling thread.
Async<Nothing> AgentLoop::ShowParts() {
  ShowCleared();
  const Messages& messages = Sent().messages;
  if (!MessageParts::HasAny(messages)) co_return Nothing{};
  FromCallback<Nothing> on_own_thread(parts_.executor, [](std::function<void(Nothing)> go_on) { go_on({}); });
  co_await on_own_thread;
  Messages shown = message_parts_.Shown(messages, turn_.stop);
  shown_ = turn_.state;
  shown_->messages = std::move(shown);
  co_return Nothing{};
}

void AgentLoop::ShowCleared() {
  shown_.reset();
  if (turn_.state.cleared == 0) return;
  shown_ = turn_.state;
  shown_->messages = WithoutResults(turn_.state.messages, turn_.state.cleared);
}

// Old results are cleared before anything is summed up, because that costs no request and loses less.
Async<Result<Nothing>> AgentLoop::FitContext() {
  if (!limits_.fits_context) co_return Nothing{};
  const bool is_summary_wanted = limits_.sum_up_first && turn_.round == 0;
  if (!is_summary_wanted && ClearResults()) co_await ShowParts();
  if (auto due = CompactionDue()) co_return co_await SumUp(*std::move(due));
  co_return Nothing{};
}

// Whether results were cleared.
bool AgentLoop::ClearResults() {
  AgentState& state = turn_.state;
  const std::vector<ToolSpec>& tools = ToldSpecs();
  if (context_.Fits(Sent(), tools)) return false;
  const auto cleared = context_.ResultsToClear(Sent(), tools);
  if (!cleared || *cleared <= state.cleared) return false;
  event::Compacted told{.tokens_before = context_.Estimate(Sent().messages, tools),
                        .budget = context_.budget(),
                        .results = CountLongResults(state.messages, state.cleared, *cleared)};
  state.cleared = *cleared;
  shown_ = Sent();
  shown_->cleared = *cleared;
  shown_->messages = WithoutResults(Sent().messages, *cleared);
  const auto view = context_.View(*shown_, tools);
  told.tokens_after = context_.Estimate(view ? *view : shown_->messages, tools);
  parts_.observer.StateGrew(state);
  parts_.observer.Emit(turn_.round, std::move(told));
  return true;
}

// The extent of the summary that this request needs, without its text; nullopt if it needs none.
std::optional<Compaction> AgentLoop::CompactionDue() {
  const AgentState& state = Sent();
  const std::vector<ToolSpec>& tools = ToldSpecs();
  if (limits_.sum_up_first && turn_.round == 0) {
    Compaction wanted = context_.RequestedExtent(state);
    if (wanted.end > wanted.first && (!state.compaction || state.compaction->end < wanted.end)) return wanted;
  }
  if (context_.Fits(state, tools)) return std::nullopt;
  Compaction next = context_.NextExtent(state, tools);
  const bool is_new = next.end > next.first && (!state.compaction || state.compaction->end != next.end);
  if (!is_new) return std::nullopt;
  // A summary is useless if the remaining messages do not fit either.
  AgentState summed_up = state;
  summed_up.compaction = next;
  if (!context_.View(summed_up, tools)) return std::nullopt;
  return next;
}

Async<Result<Nothing>> AgentLoop::SumUp(Compaction next) {
  AgentState& state = turn_.state;
  const SummaryTask task{.state = state,
                         .extent = next,
                         .max_bytes = context_.max_summary_bytes(),
                         .max_request_bytes = context_.max_material_bytes()};
  Span span = turn_.span.Child("compact");
  Summary summary = co_await Summarize(parts_, model_name_, task, turn_.stop, span, turn_.round);
  turn_.usage += summary.usage;
  ShowUsage(summary.usage);
  if (turn_.stop.stop_requested()) co_return Fail(Stopped());
  next.summary = std::move(summary.text);
  // If the model fails to make a summary, an outline replaces it.
  if (next.summary.empty()) {
    next.summary = Outline(state.messages, next.first, next.end, context_.max_summary_bytes());
  }
  const std::vector<ToolSpec>& tools = ToldSpecs();
  event::Compacted told{.messages = static_cast<std::int64_t>(next.end - next.first),
                        .tokens_before = context_.Estimate(Sent().messages, tools),
                        .tokens_after = 0,
                        .budget = context_.budget(),
                        .summary = next.summary};
  state.compaction = std::move(next);
  if (shown_) shown_->compaction = state.compaction;
  ShowMemory();
  ComposeSystemPrompt();
  const auto view = context_.View(Sent(), tools);
  if (!view) co_return Fail(view.error());
  told.tokens_after = context_.Estimate(*view, tools);
  span.Set("reprise.compaction.messages", told.messages);
  span.Set("reprise.compaction.tokens_before", told.tokens_before);
  span.Set("reprise.compaction.tokens_after", told.tokens_after);
  parts_.observer.StateGrew(state);
  parts_.observer.Emit(turn_.round, std::move(told));
  co_return Nothing{};
}

// --- one request -----------------------------------------------------------------------------------------------------

Async<Result<ModelResponse>> AgentLoop::SendRequest() {
  said_ = std::make_unique<StreamRelay>(parts_.observer, turn_.round);
  const std::vector<ToolSpec>& tools = ToldSpecs();
  Result<Messages> view = Messages();
  const AgentState& sent = Sent();
  const bool whole = context_.FitsWhole(sent, tools);
  if (!whole) view = context_.View(sent, tools);
  if (!view) co_return Fail(view.error());
  const std::size_t said = *parts_.said;
  if (said >= limits_.max_said) co_return Fail(TooMuchSaid(limits_.max_said));
  sources_.tools = told_->origins;
  if (told_shortly_) {
    std::erase_if(sources_.tools,
                  [&](const ToldTool& tool) { return std::ranges::count(told_shortly_->left_out, tool.name) > 0; });
  }
  const Messages& messages = whole ? sent.messages : *view;
  estimate_ = context_.Estimate(messages, tools);
  ModelRequest request{.model = model_name_,
                       .messages = messages,
                       .tools = tools,
                       .system = system_,
                       .max_response_bytes = std::min(kMaxResponseBytes, limits_.max_said - said),
                       .files = parts_.files,
                       .effort = limits_.effort,
                       .used_call_ids = UsedCallIds(turn_.state.messages),
                       .may_search = MaySearch(parts_.approvals, limits_, *turn_.tools)};
  Result<ModelResponse> response = co_await AskModelClient(parts_, std::move(request), *said_, turn_.stop, turn_.span,
                                                           {.round_index = turn_.round, .sources = &sources_});
  *parts_.said += said_->bytes() + (response ? SizeBesideText(*response) : 0);
  co_return response;
}

// Shown text cannot be taken back, so a request is not repeated once its response has begun to show.
// A provider rejects a whole request because of one file that it cannot read, and would reject all later ones in the
// chat, so the model gets the files as text instead.
bool AgentLoop::SendsNoParts(const Error& failure, int retries) {
  if (!failure.Is(Reason::kProviderBadRequest) || !said_->silent() || turn_.stop.stop_requested()) return false;
  if (!shown_ || !MessageParts::HasAny(shown_->messages)) return false;
  LogWarning("a request with files was refused and is sent again without them", {{"detail", failure.message}});
  message_parts_.SendNone("the model provider refused the request that had it");
  parts_.observer.Emit(turn_.round,
                       event::Retry{.attempt = retries + 1,
                                    .delay_ms = 0,
                                    .code = failure.reason,
                                    .message = failure.message + " (it is asked again without the files)"});
  return true;
}

Async<bool> AgentLoop::PauseToRetry(Error failure, int retries) {
  if (!parts_.delay || turn_.stop.stop_requested() || !said_->silent()) co_return false;
  const auto pause = RetryDelay(limits_.retry, failure, retries, RandomFraction());
  if (!pause) co_return false;
  LogWarning("a model request failed and is sent again",
             {{"code", failure.reason}, {"delay_ms", pause->count()}, {"detail", failure.detail}});
  parts_.observer.Emit(
      turn_.round,
      event::Retry{
          .attempt = retries + 1, .delay_ms = pause->count(), .code = failure.reason, .message = failure.message});
  co_await Pause(parts_.executor, parts_.delay, *pause, turn_.stop);
  co_return true;
}

// --- recording -------------------------------------------------------------------------------------------------------

void AgentLoop::RecordThinking() {
  std::string thinking = said_->TakeThinking();
  if (!thinking.empty()) parts_.observer.Emit(turn_.round, event::Thinking{std::move(thinking)});
}

// What was spoken becomes a file of the chat.
void AgentLoop::RecordSound() {
  const std::string samples = said_->TakeSound();
  if (samples.empty() || parts_.files == nullptr) return;
  const auto file = parts_.files->Add(kSpokenFile, "audio/wav", MakeWav(samples));
  if (!file) {
    LogWarning("what the model spoke could not be kept", {{"code", file.error().reason}});
    return;
  }
  parts_.observer.Emit(turn_.round, event::Sound{{{.id = file->id,
                                                   .filename = file->filename,
                                                   .mime_type = file->mime_type,
                                                   .size_bytes = file->size_bytes}}});
}

// Keeps the shown part of a broken response, as events and in the history.
void AgentLoop::RecordPartial() {
  parts_.observer.FlushDeltas();
  RecordThinking();
  RecordSound();
  std::string text = said_->TakeText();
  if (text.empty()) return;
  turn_.state.messages.push_back(Message{.role = Role::kAssistant, .content = text});
  parts_.observer.StateGrew(turn_.state);
  parts_.observer.Emit(turn_.round, event::MessageText{std::move(text)});
}

void AgentLoop::RecordResponse(const ModelResponse& response, const std::optional<std::string>& sent_back) {
  const bool is_answer = response.tool_calls.empty() && !sent_back && !response.pauses;
  if (!is_answer && response.usage != TokenUsage{}) parts_.observer.Spent(turn_.round, response.usage);
  RecordThinking();
  RecordSound();
  std::string text = said_->TakeText();
  Message message{.role = Role::kAssistant, .content = text, .tool_calls = response.tool_calls};
  message.extras = response.extras;
  if (!response.tool_calls.empty() && text.empty()) message.content = std::nullopt;
  turn_.state.messages.push_back(std::move(message));
  if (sent_back) {
    turn_.state.messages.push_back({.role = Role::kUser, .content = std::string(kSentBackIntro) + *sent_back});
  }
  parts_.observer.StateGrew(turn_.state);
  if (is_answer) {
    parts_.observer.Emit(turn_.round, event::Answer{std::move(text), response.truncated, response.citations});
  } else if (!text.empty()) {
    parts_.observer.Emit(turn_.round, event::MessageText{std::move(text), response.citations});
  }
  for (const event::WebSearch& search : response.searches) parts_.observer.Emit(turn_.round, search);
  if (sent_back) parts_.observer.Emit(turn_.round, event::SentBack{*sent_back, ++times_sent_back_});
}

void AgentLoop::ShowUsage(const TokenUsage& usage, bool of_conversation) {
  if (usage == TokenUsage{}) return;
  event::Usage told{usage};
  if (of_conversation && limits_.context_window > 0) {
    told.context_tokens = usage.input_tokens + usage.output_tokens;
    told.context_window = limits_.context_window;
    told.context_limit = context_.budget();
  }
  parts_.observer.Emit(turn_.round, told);
}

}  // namespace reprise
