#include "engine/run.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/agent.h"
#include "base/logging.h"
#include "base/queues.h"
#include "base/text.h"
#include "domain/codec.h"
#include "engine/recording.h"
#include "engine/request_body.h"

namespace reprise {
namespace {

// How long an answering client waits for a waiting agent to show the answer.
constexpr std::chrono::seconds kSoonShown{1};
constexpr std::chrono::milliseconds kUntilNextLook{200};  // while a store is unavailable
constexpr std::size_t kMaxModelInLog = 200;  // characters; clients may ask a provider for a model of any name

InteractionError ToInteractionError(const Error& error) {
  return {.code = error.reason, .message = error.message, .retryable = error.retryable};
}

// Events on which a client acts, and effects of tools, must survive a power loss.
Journal::Reach ReachOf(const EventPayload& payload) {
  const bool to_disk = std::holds_alternative<event::ApprovalRequired>(payload) ||
                       std::holds_alternative<event::InputRequired>(payload) ||
                       std::holds_alternative<event::ToolCallStarted>(payload) ||
                       std::holds_alternative<event::ToolResult>(payload);
  return to_disk ? Journal::Reach::kPowerLoss : Journal::Reach::kProcess;
}

// The id of the approval or question that this event answers.
std::optional<std::string> AnsweredQuestion(const EventPayload& payload) {
  if (const auto* approved = std::get_if<event::Approved>(&payload)) return approved->approval_id;
  if (const auto* rejected = std::get_if<event::Rejected>(&payload)) return rejected->approval_id;
  if (const auto* received = std::get_if<event::InputReceived>(&payload)) return received->request_id;
  return std::nullopt;
}

}  // namespace

AgentLimits LimitsOf(const EngineOptions& options, const ModelDirectory::Resolved& model) {
  return {.max_rounds = options.max_rounds,
          .tool_timeout = options.tool_timeout,
          .retry = {.max_retries = options.max_retries},
          .context_window = model.context_window,
          .abilities = model.abilities,
          .edit_format = model.edit_format,
          .parts = options.parts,
          .told_bytes = options.output.told_kb << 10,
          .kept_bytes = options.output.kept_mb << 20,
          .max_sent_back = options.max_end_checks,
          .rules = options.rules};
}

Run::Run(Plan plan, Services services)
    : chat_id_(plan.interaction.chat_id),
      id_(plan.interaction.id),
      parent_id_(plan.interaction.parent_id),
      request_(plan.journal.record().request),
      chat_version_(plan.chat_version),
      on_disconnect_(plan.on_disconnect),
      services_(services),
      log_(plan.shown ? std::move(plan.shown->log)
           : plan.log ? plan.log
                      : std::make_shared<EventLog>()),
      hold_(plan.journal.hold()),
      initial_state_(std::move(plan.state)),
      compact_(plan.compact),
      only_compact_(plan.only_compact),
      model_(std::move(plan.model)),
      prompt_(std::move(plan.prompt)),
      effort_(plan.effort),
      guards_(std::move(plan.guards)),
      span_(std::move(plan.span)),
      ended_jobs_(std::move(plan.ended_jobs)),
      guard_(services_.guard, chat_id_.str(), id_.str(), plan.interaction.user_message, plan.shown.has_value()),
      interrupted_(std::move(plan.interrupted)),
      request_id_(plan.shown ? plan.shown->request_id : std::nullopt),
      journal_(std::move(plan.journal)),
      interaction_(std::move(plan.interaction)),
      agenda_(initial_state_.agenda),
      grants_(initial_state_.grants) {
  DescribeAgent(span_, "reprise", *model_.client, model_.model);
  span_.Set("gen_ai.conversation.id", chat_id_.str());
  span_.Set("reprise.interaction.id", id_.str());
  const bool waited = plan.log != nullptr;
  if (plan.shown) {
    last_round_ = interrupted_->round_index;
    waiting_.inputs = request_id_ ? 1 : 0;
    waiting_.approvals = static_cast<std::size_t>(
        std::count_if(interrupted_->calls.begin(), interrupted_->calls.end(),
                      [](const OpenCall& call) { return !call.approval_id.empty() && !call.answer; }));
    UpdateStatus();
    log_->Publish();
    return;
  }
  log_->AppendRecorded(StartOf(interaction_));
  if (!waited) log_->Publish();
}

void Run::Start(Executor executor, std::function<void()> ended) {
  if (services_.files) files_.emplace(*services_.files, chat_id_);
  if (services_.jobs) jobs_ = services_.jobs->Of(chat_id_);
  for (event::JobEnded& job : ended_jobs_) Emit(0, std::move(job));
  if (services_.editors) editor_ = services_.editors->FilesOf(chat_id_);
  if (services_.editors) chat_tools_ = services_.editors->ToolsOf(chat_id_, services_.workspace->tools);
  if (auto* const history = services_.workspace->history) recorder_ = history->Record(chat_id_, guard_.hears_calls());
  AgentLimits limits = LimitsOf(services_.options, model_);
  limits.sum_up_first = compact_;
  limits.only_sum_up = only_compact_;
  limits.effort = effort_;
  limits.added_rules = services_.added_rules;
  const auto delay = [&timer = services_.timer](std::chrono::milliseconds pause, std::function<void()> call) {
    timer.After(pause, std::move(call));
  };
  agent_.emplace(
      AgentParts{.model = *model_.client,
                 .tools = tools_.emplace(all_tools(), model_.context_window),
                 .observer = *this,
                 .approvals = *this,
                 .executor = std::move(executor),
                 .delay = delay,
                 .prompt = std::move(prompt_),
                 .guards = std::move(guards_),
                 .recall = [this](const std::string& query,
                                  bool everywhere) { return services_.recall(query, everywhere, stop_.get_token()); },
                 .files = files_ ? &*files_ : nullptr,
                 .jobs = jobs_.get(),
                 .documents = services_.documents,
                 .editor = editor_.get(),
                 .recorder = recorder_.get(),
                 .guard = &guard_,
                 .instructions = services_.workspace->instructions,
                 .models = &services_.models,
                 .span = span_ ? &span_ : nullptr,
                 .conversation = chat_id_.str()},
      limits, model_.model, std::move(initial_state_), stop_.get_token());
  const auto done = [this, ended = std::move(ended)](AgentOutcome outcome) {
    if (!Guarded("the end of a run", [&] { AgentEnded(outcome); })) EndBadly(std::move(outcome));
    ended();
  };
  agent_->Start(done, interrupted_.value_or(Interrupted{}));
}

void Run::FailToStart(const Error& error) {
  EndBadly({.status = InteractionStatus::kFailed, .state = std::move(initial_state_), .usage = {}, .error = error});
}

// Some events could not be shown: the run has failed, and its checkpoint says so.
void Run::EndBadly(AgentOutcome outcome) {
  const Error error = outcome.error.value_or(
      MakeError(ErrorCode::kInternal, "the run could not be ended in order; the server's log says more"));
  Guarded("the error of a run", [&] {
    Emit(last_round(), event::Failed{error.reason, error.message, error.retryable});
  });
  const MutexLock lock(mutex_);
  interaction_.status = InteractionStatus::kFailed;
  if (!interaction_.final_agent_state) interaction_.final_agent_state = std::move(outcome.state);
  interaction_.error = ToInteractionError(error);
  if (!interaction_.completed_at) interaction_.completed_at = Now();
}

bool Run::is_left() const {
  const MutexLock lock(show_mutex_);
  return left_;
}

void Run::AgentEnded(AgentOutcome& outcome) {
  if (is_left()) return;
  if (recorder_) {
    for (auto& changed : InEvents(std::nullopt, recorder_->End())) Emit(last_round(), std::move(changed));
  }
  std::uint32_t round;
  std::string stop_reason;
  {
    const MutexLock lock(mutex_);
    round = last_round_;
    stop_reason = stop_reason_;
  }
  {
    const MutexLock lock(show_mutex_);
    ended_ = true;
  }
  if (auto error = journal_error()) {
    outcome.status = InteractionStatus::kFailed;
    outcome.error = std::move(error);
  }
  if (outcome.status == InteractionStatus::kCancelled) {
    Emit(round, event::Cancelled{stop_reason});
  } else if (outcome.error) {
    LogWarning("interaction failed", {{"chat", chat_id_.str()},
                                      {"interaction", id_.str()},
                                      {"code", outcome.error->reason},
                                      {"detail", outcome.error->detail}});
    Emit(round, event::Failed{outcome.error->reason, outcome.error->message, outcome.error->retryable});
  }
  DescribeOutcome(span_, outcome, &guard_);
  const MutexLock lock(mutex_);
  interaction_.status = outcome.status;
  interaction_.final_agent_state = std::move(outcome.state);
  interaction_.usage += outcome.usage;  // adds to the usage of an earlier process
  if (outcome.error) interaction_.error = ToInteractionError(*outcome.error);
  interaction_.completed_at = Now();
}

Interaction Run::TakeFinished() {
  const MutexLock show_lock(show_mutex_);
  const MutexLock lock(mutex_);
  // Moved, not copied: the state may be large, and nothing else reads it before it is saved.
  std::optional<AgentState> state = std::exchange(interaction_.final_agent_state, std::nullopt);
  Interaction finished = interaction_;
  finished.final_agent_state = std::move(state);
  finished.record = journal_.record();
  if (finished.final_agent_state) finished.final_agent_state->request = journal_.marks();
  return finished;
}

void Run::FailToSave(Interaction& finished, const Error& error) {
  std::uint32_t round;
  bool is_told;  // as why the run has failed
  {
    const MutexLock lock(mutex_);
    interaction_.status = finished.status = InteractionStatus::kFailed;
    interaction_.error = finished.error = ToInteractionError(error);
    round = last_round_;
    const auto* const last =
        interaction_.events.empty() ? nullptr : std::get_if<event::Failed>(&interaction_.events.back().payload);
    is_told = last != nullptr && last->code == error.reason;
  }
  span_.Set("reprise.interaction.status", std::string(ToString(InteractionStatus::kFailed)));
  FailSpan(span_, error, &guard_);
  if (!is_told) Emit(round, event::Failed{error.reason, error.message, error.retryable});
  const MutexLock lock(mutex_);
  finished.events = interaction_.events;
}

void Run::TellEnd(InteractionStatus status) {
  log_->Publish();  // the answer is durable, so clients need not wait for hooks
  Guarded("a hook", [&] { guard_.Ended(status, stop_.get_token()); });
}

void Run::Leave() {
  span_.Set("reprise.interaction.status", std::string(ToString(status())));
  span_.End();
  log_->Close();
}

void Run::CutOff() {
  span_.Fail("fenced");
  span_.End();
  log_->CutOff();
}

void Run::Complete() {
  span_.End();
  if (IsLogged(LogLevel::kInfo)) LogEnd();  // before the chat's next run can start, so that its lines come later
  std::uint32_t round;
  InteractionStatus status;
  std::optional<Timestamp> completed_at;
  {
    const MutexLock lock(mutex_);
    round = last_round_;
    status = interaction_.status;
    completed_at = interaction_.completed_at;
  }
  log_->Append(round, event::InteractionComplete{id_.str(), status}, completed_at.value_or(Now()));
  log_->Close();
}

void Run::LogEnd() const {
  const MutexLock lock(mutex_);
  // Wall-clock time, because the run may have begun in another process.
  const auto taken = interaction_.completed_at.value_or(Now()) - interaction_.created_at;
  LogInfo("run ended", {{"chat", chat_id_.str()},
                        {"interaction", id_.str()},
                        {"status", ToString(interaction_.status)},
                        {"rounds", last_round_ + 1},
                        {"input_tokens", interaction_.usage.input_tokens},
                        {"output_tokens", interaction_.usage.output_tokens},
                        {"ms", taken.count()},
                        {"model", Utf8Prefix(interaction_.model, kMaxModelInLog)}});
}

void Run::RequestStop(std::string_view reason) {
  {
    const MutexLock lock(mutex_);
    if (stop_reason_.empty()) stop_reason_ = reason;
    server_stops_ = false;  // somebody wants it to end
  }
  stop_.request_stop();
}

void Run::RequestStopWithServer() {
  {
    const MutexLock lock(mutex_);
    if (stop_reason_.empty()) {
      stop_reason_ = "server_stopping";
      server_stops_ = true;
    }
  }
  stop_.request_stop();
}

bool Run::LeavesNow() {
  const MutexLock show_lock(show_mutex_);
  if (!journal_.is_kept() || holding_ || journal_error()) return false;
  const MutexLock lock(mutex_);
  if (!server_stops_) return false;
  left_ = true;
  guard_.Mute();
  return true;
}

bool Run::CanBeAskedAgain(const std::string& call_id) const {
  const MutexLock lock(mutex_);
  std::set<std::string_view> ended;
  bool only_asks = false;
  for (auto event = interaction_.events.rbegin(); event != interaction_.events.rend(); ++event) {
    if (event->round_index != last_round_) break;
    if (const auto* result = std::get_if<event::ToolResult>(&event->payload)) ended.insert(result->id);
    const auto* started = std::get_if<event::ToolCallStarted>(&event->payload);
    if (!started || ended.contains(started->id)) continue;
    if (started->id != call_id) return false;
    const auto offered = all_tools().Current();
    const Tool* tool = offered->Find(started->tool_name);
    only_asks = tool && tool->traits().only_asks;
  }
  return only_asks;
}

Interaction Run::Snapshot() const {
  const MutexLock lock(mutex_);
  Interaction snapshot = interaction_;
  const std::uint64_t shown = log_->end().last_seq;
  std::erase_if(snapshot.events, [shown](const AgentEvent& event) { return event.seq > shown; });
  // Finished but not saved yet, so it is still running for others.
  if (IsFinished(snapshot.status)) {
    snapshot.status = InteractionStatus::kRunning;
    snapshot.final_agent_state.reset();
    snapshot.completed_at.reset();
  }
  return snapshot;
}

InteractionStatus Run::status() const {
  const MutexLock lock(mutex_);
  return IsFinished(interaction_.status) ? InteractionStatus::kRunning : interaction_.status;
}

bool Run::is_being_saved() const {
  const MutexLock lock(mutex_);
  return IsFinished(interaction_.status);
}

std::uint32_t Run::last_round() const {
  const MutexLock lock(mutex_);
  return last_round_;
}

std::string Run::model() const {
  const MutexLock lock(mutex_);
  return interaction_.model;
}

Agenda Run::agenda() const {
  const MutexLock lock(mutex_);
  return agenda_;
}

std::vector<Grant> Run::grants() const {
  const MutexLock lock(mutex_);
  return grants_;
}

// The status shows open approvals even while an answered call runs.
void Run::UpdateStatus() {
  interaction_.status = waiting_.Status();
  if (interaction_.status != InteractionStatus::kRunning) ++grace_;
}

void Run::Emit(std::uint32_t round_index, EventPayload payload) {
  const Journal::Reach reach = ReachOf(payload);
  const bool starts_tool = std::holds_alternative<event::ToolCallStarted>(payload);
  {
    const MutexLock show_lock(show_mutex_);
    if (left_) return;
    std::optional<std::string> answered = AnsweredQuestion(payload);
    if (std::holds_alternative<event::Answer>(payload)) holding_ = true;
    Record(round_index, std::move(payload));
    Show(reach);
    if (answered) {
      answered_.insert(*std::move(answered));
      answer_shown_.notify_all();
    }
  }
  if (reach != Journal::Reach::kPowerLoss) return;
  AwaitKept();  // before anybody acts on it
  if (starts_tool && !hold_->IsStillHeld()) stop_.request_stop();
}

void Run::Record(std::uint32_t round_index, EventPayload payload) {
  const MutexLock lock(mutex_);
  last_round_ = round_index;
  AgentEvent event = log_->Append(round_index, std::move(payload));
  journal_.AddEvent(event);
  if (!IsDelta(event.payload) && !IsFrame(event.payload)) interaction_.events.push_back(std::move(event));
}

void Run::AddTextDelta(std::uint32_t round_index, std::string_view text) {
  const MutexLock lock(show_mutex_);
  log_->AppendTextDelta(round_index, text);
  journal_.AddTextDelta(round_index, text);
}

void Run::AddThinkingDelta(std::uint32_t round_index, std::string_view text) {
  const MutexLock lock(show_mutex_);
  log_->AppendThinkingDelta(round_index, text);
  journal_.AddThinkingDelta(round_index, text);
}

void Run::FlushDeltas() {
  const MutexLock lock(show_mutex_);
  Show(Journal::Reach::kProcess);
}

void Run::StateGrew(const AgentState& state) {
  const MutexLock lock(show_mutex_);
  if (left_) return;
  journal_.AddState(state);
  const MutexLock state_lock(mutex_);
  if (agenda_ != state.agenda) agenda_ = state.agenda;
  if (grants_ != state.grants) grants_ = state.grants;
}

std::optional<std::size_t> Run::Requested(const Sent& sent) {
  std::optional<RequestMarks> before;
  Messages messages;
  {
    const MutexLock lock(show_mutex_);
    before = journal_.RequestBefore(sent);
    messages = journal_.messages();
  }
  const RequestMarks* const marks = before ? &*before : nullptr;
  ShortBody body = ShortenBody(sent.body, marks, messages, files_ ? &*files_ : nullptr);
  const MutexLock lock(show_mutex_);
  if (left_) return std::nullopt;
  const auto place = journal_.AddRequest(id_, sent, std::move(body), marks);
  Show(Journal::Reach::kProcess);  // the answer may be long in coming
  return place;
}

// Stored with the events that follow from it.
void Run::Responded(std::size_t request, SentResponse response) {
  const MutexLock lock(show_mutex_);
  if (!left_) journal_.AddResponse(request, std::move(response));
}

void Run::Spent(std::uint32_t round_index, const TokenUsage& usage) {
  const MutexLock lock(show_mutex_);
  if (left_) return;
  journal_.AddUsage(round_index, usage);
  log_->SetPendingUsage(usage);
}

void Run::Show(Journal::Reach reach) {
  if (holding_ || !journal_.has_something()) return;
  {
    const MutexLock lock(kept_mutex_);
    if (journal_error_) return;
    showing_.push_back(log_->appended());
    ++records_;
  }
  journal_.Append(reach, [this](Result<void> kept) { Kept(std::move(kept)); });
}

void Run::Kept(Result<void> kept) {
  std::optional<EventLog::Position> shown;
  bool first_failure = false;
  if (!kept) stop_.request_stop();  // before any waiting thread continues
  {
    const MutexLock lock(kept_mutex_);
    if (kept && !journal_error_) shown = showing_.front();
    showing_.erase(showing_.begin());
    first_failure = !kept && !journal_error_;
    if (first_failure) journal_error_ = kept.error();
  }
  if (shown) log_->PublishUpTo(*shown);
  {
    const MutexLock lock(kept_mutex_);
    ++kept_;
  }
  kept_changed_.notify_all();
  if (!first_failure) return;
  LogError("a run's journal could not be written", {{"chat", chat_id_.str()},
                                                    {"interaction", id_.str()},
                                                    {"code", kept.error().reason},
                                                    {"detail", kept.error().detail}});
}

void Run::AwaitKept() {
  MutexLock lock(kept_mutex_);
  kept_changed_.wait(lock, [this, all = records_]() REQUIRES(kept_mutex_) { return kept_ >= all || journal_error_; });
}

std::optional<Error> Run::journal_error() const {
  const MutexLock lock(kept_mutex_);
  return journal_error_;
}

// A waiting agent is about to show the answer, in the journal too. An agent that runs another call shows it after that
// call, so until then the journal holds the answer by itself.
Result<void> Run::KeepAnswer(const std::string& id, const GivenAnswer& answer) {
  {
    MutexLock lock(show_mutex_);
    const auto is_kept = [&]() REQUIRES(show_mutex_) {
      return answered_.contains(id) || holding_ || ended_ || journal_error();
    };
    if (IsTaken(id)) answer_shown_.wait_for(lock, kSoonShown, is_kept);
    if (!is_kept()) {
      journal_.AddAnswer(id, answer);
      Show(Journal::Reach::kProcess);
    }
  }
  AwaitKept();
  if (auto error = journal_error()) {
    error->message =
        "the answer could not be stored, so its call did not run and the run has failed; make room on the "
        "disk, and send the message again";
    error->retryable = false;  // the question is no longer open
    return Fail(*std::move(error));
  }
  return {};
}

// A question can be answered before it is shown, because a client may answer as soon as it sees it.
std::vector<std::string> Run::Ask(std::uint32_t round_index, std::vector<event::ApprovalRequired> requests,
                                  std::optional<event::Rejected> withdrawn) {
  std::vector<std::string> ids;
  std::vector<PendingQuestion> questions;
  for (event::ApprovalRequired& request : requests) {
    request.created_at = Now();
    if (services_.options.approval_expiry.count() > 0) {
      request.expires_at = request.created_at + services_.options.approval_expiry;
    }
    PendingApproval pending{chat_id_, id_, std::move(request)};
    ApprovalRequests::Name(pending);
    questions.emplace_back(pending);
    request = std::move(pending.request);
    ids.push_back(request.approval_id);
  }
  TellOthers(questions);  // first, so that any server that hears of it finds it
  for (const PendingQuestion& question : questions) services_.approvals.Reopen(std::get<PendingApproval>(question));
  {
    const MutexLock lock(mutex_);
    waiting_.approvals += requests.size();
    for (const event::ApprovalRequired& request : requests) {
      if (!request.agent.empty()) of_sub_agents_.insert(request.approval_id);
    }
    UpdateStatus();
  }
  {
    const MutexLock show_lock(show_mutex_);
    if (withdrawn) {
      answered_.insert(withdrawn->approval_id);
      Record(round_index, *std::move(withdrawn));
    }
    for (event::ApprovalRequired& request : requests) Record(round_index, std::move(request));
    Show(Journal::Reach::kPowerLoss);
  }
  AwaitKept();
  return ids;
}

void Run::TellOthers(const std::vector<PendingQuestion>& questions) const {
  if (!services_.questions) return;
  if (const auto opened = services_.questions->Open(questions); !opened) {
    LogError("a question cannot be answered at other servers",
             {{"chat", chat_id_.str()}, {"detail", opened.error().detail}});
  }
}

Async<Result<ApprovalGate::Answered>> Run::AwaitAnswer(std::vector<std::string> approval_ids, std::stop_token stop,
                                                       const Executor& executor) {
  FromCallback<ApprovalRequests::Answered> awaited(executor, [&](std::function<void(ApprovalRequests::Answered)> done) {
    services_.approvals.Await(approval_ids, std::move(stop), Taking(std::move(done)));
  });
  auto answered = co_await awaited;
  if (!answered && !IsOfSubAgent(approval_ids) && LeavesNow()) co_return Fail(answered.error());
  {
    const MutexLock lock(mutex_);
    waiting_.approvals -= answered ? 1 : approval_ids.size();
    UpdateStatus();
  }
  if (!answered) co_return Fail(answered.error());
  co_return Answered{std::move(answered->first), std::move(answered->second)};
}

template <typename Given>
std::function<void(Given)> Run::Taking(std::function<void(Given)> done) {
  return [this, done = std::move(done)](Given answered) {
    if (answered) {
      const MutexLock lock(mutex_);
      taken_.insert(answered->first);
    }
    done(std::move(answered));
  };
}

// No other process could ask for a sub-agent again, because nothing keeps its state.
bool Run::IsOfSubAgent(const std::vector<std::string>& approval_ids) const {
  const MutexLock lock(mutex_);
  return std::any_of(approval_ids.begin(), approval_ids.end(),
                     [this](const std::string& id) REQUIRES(mutex_) { return of_sub_agents_.contains(id); });
}

bool Run::IsTaken(const std::string& id) const {
  const MutexLock lock(mutex_);
  return taken_.contains(id);
}

// Waits for an unavailable store, because without one the run would ask in vain.
ApprovalMode Run::ModeFor(const std::string&) {
  do {
    if (const auto mode = services_.mode(chat_id_)) return *mode;
  } while (Pause(kUntilNextLook, stop_.get_token()));
  return ApprovalMode::kAsk;
}

std::vector<Grant> Run::StandingGrants(const Grant& call) {
  return services_.grants == nullptr ? std::vector<Grant>() : services_.grants->For(call);
}

void Run::NoteUse(const std::vector<std::string>& grant_ids) {
  if (services_.grants != nullptr) services_.grants->NoteUse(grant_ids);
}

Async<Result<ApprovalGate::Reply>> Run::AskInput(std::uint32_t round_index, event::InputRequired request,
                                                 std::stop_token stop, const Executor& executor) {
  const std::string call_id = request.call_id;
  std::string id;
  if (request_id_) {
    id = *std::exchange(request_id_, std::nullopt);
  } else {
    PendingInput pending{chat_id_, id_, std::move(request)};
    InputRequests::Name(pending);
    id = pending.request.request_id;
    TellOthers({pending});
    services_.inputs.Reopen(pending);
    {
      const MutexLock lock(mutex_);
      ++waiting_.inputs;
      UpdateStatus();
    }
    Emit(round_index, std::move(pending.request));
  }
  FromCallback<InputRequests::Answered> awaited(executor, [&](std::function<void(InputRequests::Answered)> done) {
    services_.inputs.Await({id}, std::move(stop), Taking(std::move(done)));
  });
  auto answered = co_await awaited;
  if (!answered && CanBeAskedAgain(call_id) && LeavesNow()) co_return Fail(answered.error());
  {
    const MutexLock lock(mutex_);
    --waiting_.inputs;
    UpdateStatus();
  }
  if (!answered) co_return Fail(answered.error());
  co_return Reply{std::move(answered->first), std::move(answered->second)};
}

std::shared_ptr<void> Run::AddListener() {
  {
    const MutexLock lock(mutex_);
    ++listeners_;
  }
  return std::shared_ptr<void>(nullptr, [self = shared_from_this()](void*) { self->ListenerGone(); });
}

void Run::ListenerGone() {
  std::uint64_t grace;
  {
    const MutexLock lock(mutex_);
    if (--listeners_ > 0 || on_disconnect_ == OnDisconnect::kContinue) return;
    if (interaction_.status != InteractionStatus::kRunning) return;
    grace = grace_;
  }
  CancelLater(grace);
}

// On a thread that may wait, because listeners at other processes are in the store.
void Run::CancelLater(std::uint64_t grace) {
  services_.timer.After(services_.options.disconnect_grace, [weak = weak_from_this(), grace] {
    const auto self = weak.lock();
    if (!self || !self->IsAbandoned(grace)) return;
    self->services_.submit([self, grace] { self->CancelIfAbandoned(grace); });
  });
}

// Open approvals and questions stay open, because somebody may still answer them from elsewhere. An answer shows that
// the run is wanted, so it is not checked again.
bool Run::IsAbandoned(std::uint64_t grace) const {
  const MutexLock lock(mutex_);
  return grace == grace_ && listeners_ == 0 && interaction_.status == InteractionStatus::kRunning;
}

void Run::CancelIfAbandoned(std::uint64_t grace) {
  if (services_.is_followed_elsewhere({chat_id_, id_})) return CancelLater(grace);  // they leave unreported
  if (IsAbandoned(grace)) RequestStop("client_disconnected");
}

}  // namespace reprise
