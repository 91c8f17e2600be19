#include "reprise/engine.h"

#include <algorithm>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "approval/decision.h"
#include "approval/requests.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/memory_reserve.h"
#include "base/random.h"
#include "base/utf8.h"
#include "domain/codec.h"
#include "engine/attachments.h"
#include "engine/branches.h"
#include "engine/call_rate.h"
#include "engine/checkpoint_saver.h"
#include "engine/elastic_pool.h"
#include "engine/guardrails.h"
#include "engine/live_comparison.h"
#include "engine/message_queue.h"
#include "engine/paced_events.h"
#include "engine/recorded_events.h"
#include "engine/recorded_replay.h"
#include "engine/recovery.h"
#include "engine/run.h"
#include "engine/run_journal.h"
#include "engine/timer.h"
#include "engine/usage_limits.h"

namespace reprise {
namespace {

Error Busy(const std::shared_ptr<Run>& run) {
  Error error{.code = ErrorCode::kConflict,
              .reason = "busy",
              .message = "an interaction is running in this chat",
              .detail = {},
              .retryable = true};
  if (run) error.details_json = R"({"interaction_id":")" + run->id().str() + R"("})";
  return error;
}

Error NoThreads(const char* detail) {
  return Error{.code = ErrorCode::kUnavailable,
               .reason = "overloaded",
               .message = "the system has no thread left for this interaction",
               .detail = detail,
               .retryable = true};
}

Error NoMemory() {
  return Error{.code = ErrorCode::kUnavailable,
               .reason = "overloaded",
               .message = "the system has no memory left for this interaction",
               .detail = {},
               .retryable = true};
}

Error Stopping() {
  return Error{.code = ErrorCode::kUnavailable,
               .reason = "stopping",
               .message = "the server is stopping",
               .detail = {},
               .retryable = true};
}

// What a client is told when its interaction is not where it should be.
Error NotSaved(Error error) {
  if (error.code == ErrorCode::kStorageFull || error.reason == "save_timeout") return error;
  error.reason = "save_failed";
  error.message = "the interaction could not be saved in its chat's folder";
  return error;
}

// How many interactions that could not be saved are kept in memory as well, for whoever asks before the next start.
constexpr std::size_t kMaxRescued = 100;

// How long whoever answers waits for the answer to be on record. It is written to the page cache, in well under a
// millisecond unless the disk is dead.
constexpr std::chrono::seconds kRecordLimit{2};

// Of an approval whose terms have changed since it was shown.
const ApprovalAnswer kSuperseded{.approved = false, .superseded = true};

bool IsJsonObject(const std::string& text) {
  const auto json = ParseJson(text);
  return json && json->is_object();
}

// What was answered to this question before the process ended; null: nothing.
template <typename Answer>
const Answer* GivenTo(const InterruptedRun& run, const std::string& id) {
  const auto given = run.answers.find(id);
  return given == run.answers.end() ? nullptr : std::get_if<Answer>(&given->second);
}

// Gives ids to the tasks that have none.
Result<void> NameTasks(std::vector<Task>& tasks) {
  std::set<std::string> ids;
  for (const Task& task : tasks) {
    if (task.id.empty() || ids.insert(task.id).second) continue;
    return Fail(Error{.code = ErrorCode::kInvalidArgument,
                      .reason = "invalid_member",
                      .message = "two tasks have the id \"" + task.id + "\""});
  }
  for (Task& task : tasks) {
    if (task.id.empty()) task.id = NextTaskId(tasks);
  }
  return {};
}

Error NoSuchGrant() { return MakeError(ErrorCode::kNotFound, "there is no such grant"); }

bool IsNotFound(const Error& error) { return error.code == ErrorCode::kNotFound; }

// Where a new interaction hangs in the chat's tree.
struct Place {
  std::optional<InteractionId> parent, edited_from;
  AgentState state;                                        // what it starts from
  std::optional<Interrupted> interrupted = std::nullopt;   // set if that is in the middle of a turn
  std::optional<ResumedFrom> resumed_from = std::nullopt;  // set likewise
  Attached attached{};                                     // to the message
};

}  // namespace

class Engine::Impl {
 public:
  Impl(Parts parts, EngineOptions options)
      : parts_(std::move(parts)),
        options_(std::move(options)),
        approvals_(delay()),
        inputs_(delay()),
        usage_limits_(parts_.store, options_.budget, options_.prices),
        call_rate_(options_.max_tool_calls_per_minute),
        queues_(parts_.store),
        saver_(parts_.store, parts_.fallback_stores, pool_, timer_, options_.save_timeout) {}

  using FindPlace = std::function<Result<Place>(StartRequest&)>;
  Result<EventSubscription> Launch(const ChatId& chat, StartRequest request, const FindPlace& find_place);

  Result<Place> PlaceAtHead(const ChatId& chat);
  // What follows the head and only a fallback could take, oldest first; without what can be saved now.
  std::vector<Interaction> RescuedAfter(const ChatId& chat, std::optional<InteractionId> head);
  struct Edited {
    Interaction interaction;
    AgentState before;  // the state that it began with
  };
  Result<Edited> LoadEdited(const ChatId& chat, InteractionId id);
  // REQUIRES: the chat is idle.
  Result<Agenda> ChangeAgenda(const ChatId& chat, AgendaChange change);
  // REQUIRES: the chat is idle.
  Result<void> RevokeGrant(const ChatId& chat, std::string_view id);
  // An answer for always: the grant is kept before the answer counts.
  Result<void> GrantAndGive(const ApprovalRequests::Found& found, ApprovalAnswer answer);
  // What an answer is told that did not count.
  Error WhyNotGiven(const Error& error) const;
  // A tool that needs consent is not what was granted for always, if anything was: consent does not bring that back.
  Result<void> DropOutdatedGrants(const std::string& tool_name);
  // Begins what waits in `chat`, if that is free.
  void StartNext(const ChatId& chat);
  // kNotFound unless there is such a chat.
  Result<void> CheckChat(const ChatId& chat) const;
  // Before a run is cancelled for it: what an edit is about has to be there.
  Result<void> CheckTarget(const ChatId& chat, InteractionId id, const StartRequest& request) const;
  Result<void> CheckAttachments(const ChatId& chat, const StartRequest& request) const;
  // The same with other files, if `attachments` says which.
  Result<Place> PlaceBeside(Edited edited, const std::optional<std::vector<FileId>>& attachments);
  // Where an interaction that did not come to its end goes on, as a sibling.
  Result<Place> PlaceToResume(Interaction ended);

  Result<Recovered> Recover();

  // The run of a chat, or null.
  std::shared_ptr<Run> ActiveRun(const ChatId& chat) const;
  std::shared_ptr<Run> ActiveRun(const ChatId& chat, InteractionId id) const;
  std::vector<std::shared_ptr<Run>> ActiveRuns() const;
  // An interaction, running or finished.
  Result<Interaction> Find(const ChatId& chat, InteractionId id) const;
  // A finished interaction, also one that only the fallback could take.
  Result<Interaction> LoadFinished(const ChatId& chat, InteractionId id) const;
  // The same, to be replayed.
  Result<Interaction> FindReplayable(const ChatId& chat, InteractionId id) const;
  // `when_idle` is called with the chat kept from starting a run; "busy" if it has one.
  template <typename Function>
  auto WhileIdle(const ChatId& chat, Function when_idle) -> decltype(when_idle());
  // The same, but ends whatever runs in the chat, also what begins meanwhile, and waits for its end.
  template <typename Function>
  auto WhenStopped(const ChatId& chat, std::string_view reason, Function when_idle) -> decltype(when_idle());
  // Why a question of `within` is not in its book: it was processed before the server was started again, or never was.
  template <typename Kind>
  Error WhyNotWaiting(std::string_view id, const InteractionRef& within) const;
  // The answer that a question of `run` was given is on record when this returns ok. The run goes on meanwhile. Null:
  // it has ended, and its checkpoint has the answer.
  Result<void> KeepAnswer(const std::shared_ptr<Run>& run, const std::string& id, GivenAnswer answer);
  // Also what of it waits in a fallback folder, or it would be back at the next start. REQUIRES: it is idle.
  Result<void> Delete(const ChatId& chat);
  // Those that `to` lacks, as far as they can be read: what was said of the others is in the messages.
  Result<void> CopyFiles(const ChatId& from, const ChatId& to) const;
  // Those of a chat that came in which are not there yet.
  Result<void> PutFiles(const IncomingChat& chat) const;
  void Stop();
  // The replays that are under way. None starts after stopping_ is set.
  std::vector<std::shared_ptr<PacedEvents>> TakePaced();

  Delay delay() {
    return
        [this](std::chrono::milliseconds pause, std::function<void()> call) { timer_.After(pause, std::move(call)); };
  }
  RunGuard::Parts guard_parts() const { return {parts_.audit, parts_.hooks, redactor_, guardrails_}; }

  const Parts parts_;
  const Redactor redactor_{parts_.secrets};
  const Guardrails guardrails_{parts_.guardrails};
  const EngineOptions options_;
  ApprovalRequests approvals_;  // synchronises itself
  InputRequests inputs_;        // synchronises itself
  UsageLimits usage_limits_;    // synchronises itself
  CallRate call_rate_;          // synchronises itself
  MessageQueues queues_;        // synchronises itself

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  // The chats that are busy; a null run is one that is about to start, or a chat that is being rearranged.
  std::unordered_map<ChatId, std::shared_ptr<Run>> active_;          // guarded by mutex_
  std::map<std::pair<ChatId, InteractionId>, Interaction> rescued_;  // guarded by mutex_
  bool stopping_ = false;                                            // guarded by mutex_
  std::size_t unfinished_ = 0;  // guarded by mutex_; runs whose thread is not done, and what is about to begin
  Counters counters_{};         // guarded by mutex_; the totals only
  std::vector<std::weak_ptr<PacedEvents>> paced_;  // guarded by mutex_; some are over

  ElasticPool control_;  // what must not wait for a thread that runs hold
  ElasticPool pool_;     // the runs' threads: after what they use
  Timer timer_;          // its calls use the pool
  CheckpointSaver saver_;

 private:
  enum class RecoveredAs { kNothing, kWaiting, kFailed };
  // `may_wait`: a run that waited for an answer may go on waiting.
  Result<RecoveredAs> RecoverOne(const InteractionRef& ref, bool may_wait);
  // It is in a fallback folder, from where it is brought home at another start.
  bool IsRescued(const InteractionRef& ref);
  Result<void> SaveInterrupted(const Interaction& ended);
  Result<void> AskAgain(InterruptedRun interrupted, AgentState state, const ModelDirectory::Resolved& model,
                        OpenQuestions questions, const JournalContent& content);
  Result<void> Occupy(const ChatId& chat);
  // What a run will need is there, as far as can be told before. `has_thread`: it is made on one of the pool.
  Result<void> CheckResources(bool has_thread);
  void Release(const ChatId& chat);
  // Saves a change by hand as an interaction of its own, which becomes the head. REQUIRES: the chat is idle.
  Result<Interaction> SaveChange(const ChatId& chat, Place changed, std::vector<EventPayload> events);
  Result<AgentGuards> GuardsFor(const ChatId& chat, const std::string& model, const TokenUsage& used_before);
  SystemPrompt LoadPrompt() const { return parts_.prompt ? parts_.prompt() : SystemPrompt{}; }
  // What a run that waited has besides.
  struct Waited {
    std::string queue_id;
    std::shared_ptr<EventLog> log;
  };
  Result<std::shared_ptr<Run>> MakeRun(const ChatId& chat, StartRequest request, const FindPlace& find_place,
                                       Waited waited = {});
  // The request waits for the chat's run to end.
  Result<EventSubscription> Wait(const ChatId& chat, StartRequest request, const FindPlace& find_place);
  Result<void> Interrupt(const std::shared_ptr<QueuedRun>& waiting);
  void ClientLeft(const std::shared_ptr<QueuedRun>& waiting);
  // REQUIRES: `chat` is occupied for it.
  void LaunchNext(const ChatId& chat);
  std::shared_ptr<Run> Begin(QueuedRun& waiting);
  // The run is there for everybody.
  void Admit(const std::shared_ptr<Run>& run);
  void Execute(const std::shared_ptr<Run>& run);
  void Leave(Run& run);
  void Save(const std::shared_ptr<Run>& run);
  void Rescue(const std::shared_ptr<Run>& run, Interaction finished, const Error& error);
  void Complete(const std::shared_ptr<Run>& run, InteractionStatus status);
  void Close(Run& run, InteractionStatus status);
};

// --- starting and ending a run ---------------------------------------------------------------------------------------

// Takes the chat for one run or one change.
Result<void> Engine::Impl::Occupy(const ChatId& chat) {
  std::unique_lock lock(mutex_);
  // One that is just about to start has its id in a moment, and the answer should name it.
  idle_.wait(lock, [&] {
    const auto found = active_.find(chat);
    return stopping_ || found == active_.end() || found->second != nullptr;
  });
  if (stopping_) return Fail(Stopping());
  if (const auto found = active_.find(chat); found != active_.end()) return Fail(Busy(found->second));
  if (active_.size() >= options_.max_active_runs) {
    return Fail(Error{.code = ErrorCode::kUnavailable,
                      .reason = "overloaded",
                      .message = "too many interactions are running",
                      .detail = {},
                      .retryable = true});
  }
  active_.emplace(chat, nullptr);
  return {};
}

// The chat is free, or that of what has waited for it: nothing comes between.
void Engine::Impl::Release(const ChatId& chat) {
  bool next;
  {
    const std::lock_guard lock(mutex_);
    next = !stopping_ && queues_.HasNext(chat);
    if (next) {
      active_[chat] = nullptr;
      ++unfinished_;
    } else {
      active_.erase(chat);
    }
  }
  idle_.notify_all();
  if (next) pool_.Submit([this, chat] { LaunchNext(chat); });
}

Result<EventSubscription> Engine::Impl::Launch(const ChatId& chat, StartRequest request, const FindPlace& find_place) {
  if (auto occupied = Occupy(chat); !occupied) {
    const bool waits = request.if_running != IfRunning::kReject && occupied.error().reason == "busy";
    return waits ? Wait(chat, std::move(request), find_place) : Fail(occupied.error());
  }
  std::shared_ptr<Run> run;
  try {
    auto made = MakeRun(chat, std::move(request), find_place);
    if (!made) {
      Release(chat);
      return Fail(std::move(made.error()));
    }
    run = *std::move(made);
  } catch (...) {
    Release(chat);
    throw;
  }
  EventSubscription subscription(chat, run->id(), run->log(), run->AddListener());
  Admit(run);
  Execute(run);
  return subscription;
}

Result<std::shared_ptr<Run>> Engine::Impl::MakeRun(const ChatId& chat, StartRequest request,
                                                   const FindPlace& find_place, Waited waited) {
  auto place = find_place(request);
  if (!place) return Fail(place.error());
  for (const std::string* text : {&request.user_message, &place->attached.text}) {
    if (auto admitted = guardrails_.Admit(*text); !admitted) return Fail(std::move(admitted.error()));
  }
  const auto model = parts_.models.Resolve(request.model);
  if (!model) return Fail(model.error());
  if (auto room = CheckResources(waited.log != nullptr); !room) return Fail(std::move(room.error()));
  auto guards = GuardsFor(chat, model->full_name, {});
  if (!guards) return Fail(guards.error());
  const auto id = parts_.store.ReserveInteraction(chat);
  if (!id) return Fail(id.error());

  Interaction interaction{.id = *id, .chat_id = chat};
  interaction.parent_id = place->parent;
  interaction.edited_from = place->edited_from;
  interaction.user_message = std::move(request.user_message);
  interaction.attachments = std::move(place->attached.files);
  interaction.model = model->full_name;
  interaction.created_at = Now();
  auto kept = parts_.store.BeginJournal(chat, *id, {});
  if (!kept) return Fail(std::move(kept.error()));
  RunJournal journal(*std::move(kept), place->state.messages.size() + (place->interrupted ? 0 : 1));
  journal.AddBegin(interaction, request.on_disconnect, place->resumed_from, waited.queue_id, place->attached.text);
  // A queued message is taken from the queue next: from then on the journal alone has it.
  const auto reach = waited.queue_id.empty() ? Journal::Reach::kProcess : Journal::Reach::kPowerLoss;
  if (auto begun = journal.Append(reach); !begun) {
    static_cast<void>(parts_.store.DropJournal(chat, *id));
    return Fail(begun.error());
  }
  return std::make_shared<Run>(
      Run::Plan{.interaction = std::move(interaction),
                .state = std::move(place->state),
                .client = model->client,
                .client_model = model->model,
                .context_window = model->context_window,
                .on_disconnect = request.on_disconnect,
                .journal = std::move(journal),
                .prompt = LoadPrompt(),
                .guards = *std::move(guards),
                .interrupted = place->interrupted,
                .compact = request.compact,
                .log = std::move(waited.log),
                .attached_text = std::move(place->attached.text)},
      Run::Services{parts_.tools, approvals_, inputs_, parts_.grants, timer_, options_, guard_parts(), parts_.files});
}

// A run that waits for a thread says nothing, so it is refused. One that cannot be had later, because others were
// faster, means waiting.
Result<void> Engine::Impl::CheckResources(bool has_thread) {
  if (!MemoryReserve::HasRoom()) return Fail(NoMemory());
  try {
    control_.StartFirstThread();
    pool_.StartFirstThread();
  } catch (const std::system_error& error) {
    return Fail(NoThreads(error.what()));
  }
  if (!has_thread && !pool_.HasThreadToSpare()) return Fail(NoThreads("all threads work or wait"));
  return {};
}

Result<AgentGuards> Engine::Impl::GuardsFor(const ChatId& chat, const std::string& model,
                                            const TokenUsage& used_before) {
  auto over_budget = usage_limits_.ForRun(chat, model, used_before);
  if (!over_budget) return Fail(over_budget.error());
  AgentGuards guards{.over_budget = *std::move(over_budget)};
  if (options_.max_tool_calls_per_minute == 0) return guards;
  guards.refuse_call = [this, chat]() -> std::optional<std::string> {
    const auto wait = call_rate_.Take(chat);
    if (!wait) return std::nullopt;
    return "Not run: there may be " + std::to_string(options_.max_tool_calls_per_minute) +
           " tool calls in a minute. Wait " + std::to_string(wait->count()) +
           " seconds before the next one; go on with what you have, or answer and say what is missing.";
  };
  return guards;
}

void Engine::Impl::Admit(const std::shared_ptr<Run>& run) {
  {
    const std::lock_guard lock(mutex_);
    active_[run->chat_id()] = run;
    ++unfinished_;
    ++counters_.started;
    if (stopping_) run->RequestStopWithServer();
  }
  idle_.notify_all();
}

void Engine::Impl::Execute(const std::shared_ptr<Run>& run) {
  // What the agent does and what waits for it keep the run alive.
  const auto executor = [this, weak = std::weak_ptr(run)](std::function<void()> job) {
    pool_.Submit([run = weak.lock(), job = std::move(job)] { job(); });
  };
  run->Start(executor, [this, run] {
    if (run->is_left()) return Leave(*run);
    try {
      Save(run);
    } catch (const std::bad_alloc&) {  // its journal stays, and the next start takes it up
      LogError("no memory to save an interaction", {{"chat", run->chat_id().str()}, {"interaction", run->id().str()}});
      Complete(run, InteractionStatus::kFailed);
    }
  });
}

// Its chat stays taken as long as this process lives.
void Engine::Impl::Leave(Run& run) {
  run.Leave();
  {
    const std::lock_guard lock(mutex_);
    --unfinished_;
  }
  idle_.notify_all();
}

void Engine::Impl::Save(const std::shared_ptr<Run>& run) {
  auto finished = std::make_shared<Interaction>(run->TakeFinished());
  usage_limits_.Add(*finished);
  saver_.Save(finished, [this, run, finished](const Result<void>& saved) {
    saved ? Complete(run, finished->status) : Rescue(run, *finished, saved.error());
  });
}

void Engine::Impl::Rescue(const std::shared_ptr<Run>& run, Interaction finished, const Error& error) {
  LogError("a checkpoint could not be saved", {{"chat", run->chat_id().str()},
                                               {"interaction", run->id().str()},
                                               {"code", error.reason},
                                               {"detail", error.detail}});
  run->FailToSave(finished, NotSaved(error));
  {
    const std::lock_guard lock(mutex_);
    rescued_.insert_or_assign({run->chat_id(), run->id()}, finished);
    if (rescued_.size() > kMaxRescued) rescued_.erase(rescued_.begin());
  }
  saver_.SaveToFallback(std::make_shared<Interaction>(std::move(finished)), [this, run](const Result<void>& rescued) {
    if (!rescued) {
      LogError("no fallback could take the checkpoint",
               {{"chat", run->chat_id().str()}, {"interaction", run->id().str()}, {"detail", rescued.error().detail}});
    }
    Complete(run, InteractionStatus::kFailed);
  });
}

void Engine::Impl::Complete(const std::shared_ptr<Run>& run, InteractionStatus status) {
  if (!run->end_is_heard()) return Close(*run, status);
  pool_.Submit([this, run, status] {  // this may be a thread that must not wait
    run->TellEnd(status);
    Close(*run, status);
  });
}

void Engine::Impl::Close(Run& run, InteractionStatus status) {
  // Whoever sees interaction_complete may start the next one at once, so the chat is free before that.
  Release(run.chat_id());
  {
    const std::lock_guard lock(mutex_);
    if (status == InteractionStatus::kCompleted) ++counters_.completed;
    if (status == InteractionStatus::kFailed) ++counters_.failed;
    if (status == InteractionStatus::kCancelled) ++counters_.cancelled;
  }
  run.Complete();
  {
    const std::lock_guard lock(mutex_);
    --unfinished_;
  }
  idle_.notify_all();
}

// --- what waits ------------------------------------------------------------------------------------------------------

Result<EventSubscription> Engine::Impl::Wait(const ChatId& chat, StartRequest request, const FindPlace& find_place) {
  if (const auto model = parts_.models.Resolve(request.model); !model) return Fail(model.error());
  if (auto admitted = guardrails_.Admit(request.user_message); !admitted) return Fail(std::move(admitted.error()));
  const bool cancel = request.if_running == IfRunning::kCancel;
  QueuedMessage message{.id = "queued_" + RandomHex(16),
                        .user_message = request.user_message,
                        .model = request.model,
                        .on_disconnect = request.on_disconnect,
                        .created_at = Now()};
  QueuedRun::MakeRun make;
  if (cancel) {
    make = [this, request, find_place](QueuedRun& run) {
      return MakeRun(run.chat_id, request, find_place, {.queue_id = {}, .log = run.log});
    };
  }
  const auto waiting = std::make_shared<QueuedRun>(chat, std::move(message), std::move(make));
  waiting->ClientCame();
  auto added = cancel ? Interrupt(waiting) : queues_.Add(waiting);
  if (!added) return Fail(std::move(added.error()));
  EventSubscription subscription(chat, std::nullopt, waiting->log,
                                 std::shared_ptr<void>(nullptr, [this, waiting](void*) { ClientLeft(waiting); }));
  subscription.waiting = waiting;
  StartNext(chat);  // the run may have ended meanwhile
  return subscription;
}

// Puts it before all that wait, and stops the run.
Result<void> Engine::Impl::Interrupt(const std::shared_ptr<QueuedRun>& waiting) {
  std::shared_ptr<Run> run;
  {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] {
      const auto found = active_.find(waiting->chat_id);
      return stopping_ || found == active_.end() || found->second != nullptr;
    });
    if (stopping_) return Fail(Stopping());
    if (const auto found = active_.find(waiting->chat_id); found != active_.end()) run = found->second;
    queues_.AddFirst(waiting);
  }
  if (run) run->RequestStop("replaced");
  return {};
}

void Engine::Impl::ClientLeft(const std::shared_ptr<QueuedRun>& waiting) {
  const auto left = waiting->ClientLeft();
  if (!left.waits || queues_.message(*waiting).on_disconnect == OnDisconnect::kContinue) return;
  if (!queues_.Erase(*waiting) || !waiting->durable()) return;
  // Not on this thread, which serves connections.
  pool_.Submit([this, chat = waiting->chat_id] {
    if (auto saved = queues_.Save(chat); !saved) {
      LogError("a message whose client has gone could not be taken from the queue's file",
               {{"chat", chat.str()}, {"code", saved.error().reason}, {"detail", saved.error().detail}});
    }
  });
}

void Engine::Impl::StartNext(const ChatId& chat) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || active_.contains(chat) || !queues_.HasNext(chat)) return;
    active_.emplace(chat, nullptr);
    ++unfinished_;
  }
  pool_.Submit([this, chat] { LaunchNext(chat); });
}

void Engine::Impl::LaunchNext(const ChatId& chat) {
  const auto waiting = queues_.TakeNext(chat);
  const auto run = waiting ? Begin(*waiting) : nullptr;
  if (run) {
    auto hold = waiting->had_client() ? waiting->Began(run->id(), run->AddListener()) : nullptr;
    Admit(run);
    waiting->log->Publish();  // not before: who sees it may ask for it, or cancel it
    hold = nullptr;           // its client has gone
    Execute(run);
  } else {
    Release(chat);
  }
  {
    const std::lock_guard lock(mutex_);
    --unfinished_;
  }
  idle_.notify_all();
}

// Null: it could not begin, and its client knows why; or it stays in the queue.
std::shared_ptr<Run> Engine::Impl::Begin(QueuedRun& waiting) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return queues_.PutBack(waiting), nullptr;
  }
  const auto make = [&]() -> Result<std::shared_ptr<Run>> {
    if (waiting.make) return waiting.make(waiting);
    const QueuedMessage message = queues_.message(waiting);
    return MakeRun(
        waiting.chat_id,
        {.user_message = message.user_message, .model = message.model, .on_disconnect = message.on_disconnect},
        [&](StartRequest&) { return PlaceAtHead(waiting.chat_id); }, {.queue_id = message.id, .log = waiting.log});
  };
  auto run = make();
  if (run) {
    queues_.Begun(waiting);
    return *std::move(run);
  }
  LogWarning("what waited could not begin",
             {{"chat", waiting.chat_id.str()}, {"code", run.error().reason}, {"detail", run.error().detail}});
  if (waiting.End(run.error()) || !waiting.durable()) {
    queues_.Begun(waiting);
  } else {
    queues_.Stuck(waiting, std::move(run.error()));
  }
  return nullptr;
}

Result<void> Engine::Impl::CheckChat(const ChatId& chat) const {
  if (ActiveRun(chat)) return {};
  return parts_.store.LoadSummary(chat).map([](const ChatSummary&) {});
}

Result<void> Engine::Impl::CheckTarget(const ChatId& chat, InteractionId id, const StartRequest& request) const {
  if (request.if_running != IfRunning::kCancel) return {};
  return Find(chat, id).and_then([&](const Interaction&) { return CheckAttachments(chat, request); });
}

Result<void> Engine::Impl::CheckAttachments(const ChatId& chat, const StartRequest& request) const {
  const bool has_attachments = request.attachments && !request.attachments->empty();
  if (request.if_running == IfRunning::kQueue && (has_attachments || request.compact)) {
    return Fail(Error{.code = ErrorCode::kInvalidArgument,
                      .reason = "invalid_member",
                      .message = std::string(has_attachments ? "\"attachments\" do" : "\"compact\" does") +
                                 " not go with \"if_running\": \"queue\""});
  }
  if (!has_attachments || request.if_running == IfRunning::kReject) return {};
  return AttachFiles(parts_.files, chat, *request.attachments).map([](const Attached&) {});
}

// --- after a crash ---------------------------------------------------------------------------------------------------

Result<Engine::Recovered> Engine::Impl::Recover() {
  const auto unfinished = parts_.store.ListUnfinished();
  if (!unfinished) return Fail(unfinished.error());
  // A chat may have several if an earlier start had to leave some. It can have one run: that of the newest.
  std::map<ChatId, InteractionId> newest;
  for (const InteractionRef& ref : *unfinished) {
    const auto known = newest.try_emplace(ref.chat_id, ref.interaction_id).first;
    known->second = std::max(known->second, ref.interaction_id);
  }
  Recovered recovered;
  for (const InteractionRef& ref : *unfinished) {
    const auto outcome = RecoverOne(ref, newest.at(ref.chat_id) == ref.interaction_id);
    if (!outcome) {
      ++recovered.left;
      LogError("an interrupted interaction could not be recovered; its journal is left as it is",
               {{"chat", ref.chat_id.str()},
                {"interaction", ref.interaction_id.str()},
                {"code", outcome.error().reason},
                {"detail", outcome.error().message}});
    } else if (*outcome == RecoveredAs::kWaiting) {
      ++recovered.waiting;
    } else if (*outcome == RecoveredAs::kFailed) {
      ++recovered.failed;
    }
  }
  // Every chat's folder is looked at: nobody need wait for that.
  pool_.Submit([this] {
    const auto chats = queues_.LoadAll();
    if (!chats) return LogError("the queues could not be looked for", {{"detail", chats.error().detail}});
    for (const ChatId& chat : *chats) StartNext(chat);
  });
  return recovered;
}

bool Engine::Impl::IsRescued(const InteractionRef& ref) {
  for (InteractionStore* fallback : parts_.fallback_stores) {
    auto rescued = fallback->LoadInteraction(ref.chat_id, ref.interaction_id);
    if (!rescued) continue;
    const std::lock_guard lock(mutex_);
    rescued_.insert_or_assign({ref.chat_id, ref.interaction_id}, *std::move(rescued));
    return true;
  }
  return false;
}

// One that was left at an earlier start must not take the head from what was built since.
Result<void> Engine::Impl::SaveInterrupted(const Interaction& ended) {
  const auto before = parts_.store.LoadSummary(ended.chat_id);
  if (auto saved = parts_.store.SaveInteraction(ended); !saved) return saved;
  if (!before || !before->head || *before->head < ended.id) return {};
  return parts_.store.MoveHead(ended.chat_id, *before->head).map([](const ChatSummary&) {});
}

Result<Engine::Impl::RecoveredAs> Engine::Impl::RecoverOne(const InteractionRef& ref, bool may_wait) {
  const auto drop = [&]() -> Result<RecoveredAs> {
    if (auto dropped = parts_.store.DropJournal(ref.chat_id, ref.interaction_id); !dropped) {
      return Fail(dropped.error());
    }
    return RecoveredAs::kNothing;
  };
  // Killed between its checkpoint and the end of its journal. Saved again, so that it is durable before the journal
  // goes.
  const auto saved = parts_.store.LoadInteraction(ref.chat_id, ref.interaction_id);
  if (saved) return parts_.store.SaveInteraction(*saved).and_then(drop);
  // One that is there and cannot be read has come to its end as well: what it asked must not be asked again.
  if (!IsNotFound(saved.error())) return Fail(saved.error());
  if (IsRescued(ref)) return RecoveredAs::kNothing;
  const auto content = parts_.store.ReadJournal(ref.chat_id, ref.interaction_id);
  if (!content && IsNotFound(content.error())) return drop();
  if (!content) return Fail(content.error());
  auto run = ReadRun(ref, *content);
  if (!run) return Fail(run.error());
  if (!*run) return drop();  // nobody has seen anything of it
  if (!(*run)->queue_id.empty()) queues_.Forget((*run)->queue_id);
  AgentState state;
  const auto& resumed_from = (*run)->resumed_from;
  const auto before = resumed_from ? resumed_from->interaction : (*run)->interaction.parent_id;
  if (before) {
    auto stored = parts_.store.LoadInteraction(ref.chat_id, *before);
    if (!stored) return Fail(stored.error());
    state = std::move(stored->final_agent_state).value_or(AgentState{});
  }
  RestoreState(**run, state);
  if (auto questions = FindOpenQuestions(**run, state, *parts_.tools.Current()); questions && may_wait) {
    if (const auto model = parts_.models.Resolve((*run)->interaction.model)) {
      return AskAgain(**std::move(run), std::move(state), *model, *std::move(questions), *content).map([] {
        return RecoveredAs::kWaiting;
      });
    }
  }
  return SaveInterrupted(EndInterrupted(**std::move(run), std::move(state))).map([] { return RecoveredAs::kFailed; });
}

// What was pending is pending again, under its id; the run goes on when it is answered. If it was, just before the
// process ended, that is at once.
Result<void> Engine::Impl::AskAgain(InterruptedRun interrupted, AgentState state, const ModelDirectory::Resolved& model,
                                    OpenQuestions questions, const JournalContent& content) {
  const ChatId chat = interrupted.interaction.chat_id;
  auto guards = GuardsFor(chat, model.full_name, interrupted.interaction.usage);
  if (!guards) return Fail(guards.error());
  auto kept = parts_.store.BeginJournal(chat, interrupted.interaction.id, content.records);
  if (!kept) return Fail(kept.error());
  const InteractionId id = interrupted.interaction.id;
  const auto tools = parts_.tools.Current();
  for (const auto& approval : questions.approvals) {
    const auto reopened = approvals_.Reopen({chat, id, approval});
    const auto* given = GivenTo<ApprovalAnswer>(interrupted, approval.approval_id);
    const bool is_outdated = IsOutdated(approval, *tools) && (given == nullptr || given->approved);
    if (is_outdated || given != nullptr) {
      static_cast<void>(approvals_.Give(reopened, is_outdated ? kSuperseded : *given));
    }
  }
  std::optional<std::string> request_id;
  if (questions.input) {
    const auto reopened = inputs_.Reopen({chat, id, *questions.input});
    request_id = questions.input->request_id;
    if (const auto* given = GivenTo<InputAnswer>(interrupted, *request_id)) {
      static_cast<void>(inputs_.Give(reopened, *given));
    }
  }
  RunJournal journal(*std::move(kept), state.messages.size());
  auto run = std::make_shared<Run>(
      Run::Plan{.interaction = std::move(interrupted.interaction),
                .state = std::move(state),
                .client = model.client,
                .client_model = model.model,
                .context_window = model.context_window,
                .on_disconnect = interrupted.on_disconnect,
                .journal = std::move(journal),
                .prompt = LoadPrompt(),
                .guards = *std::move(guards),
                .interrupted = std::move(questions.where),
                .shown = Run::Plan::Shown{.log = std::move(interrupted.log), .request_id = std::move(request_id)}},
      Run::Services{parts_.tools, approvals_, inputs_, parts_.grants, timer_, options_, guard_parts(), parts_.files});
  Admit(run);
  Execute(run);
  return {};
}

// --- where an interaction hangs --------------------------------------------------------------------------------------

std::vector<Interaction> Engine::Impl::RescuedAfter(const ChatId& chat, std::optional<InteractionId> head) {
  std::vector<Interaction> rescued;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [place, interaction] : rescued_) {
      if (place.first != chat || interaction.parent_id != head) continue;
      head = place.second;
      rescued.push_back(interaction);
    }
  }
  // The disk may work again.
  while (!rescued.empty() && parts_.store.SaveInteraction(rescued.front())) {
    const std::lock_guard lock(mutex_);
    rescued_.erase({chat, rescued.front().id});
    rescued.erase(rescued.begin());
  }
  return rescued;
}

Result<Place> Engine::Impl::PlaceAtHead(const ChatId& chat) {
  auto summary = parts_.store.LoadSummary(chat);
  if (!summary && !IsNotFound(summary.error())) return Fail(summary.error());
  auto rescued = RescuedAfter(chat, summary ? summary->head : std::nullopt);
  if (!rescued.empty()) {
    auto& state = rescued.back().final_agent_state;
    return Place{.parent = rescued.back().id, .edited_from = {}, .state = std::move(state).value_or(AgentState{})};
  }
  summary = parts_.store.LoadSummary(chat);  // what was saved just now has become the head
  if (!summary && IsNotFound(summary.error())) return Place{};
  if (!summary) return Fail(summary.error());
  if (!summary->head) return Place{};
  auto state = parts_.store.LoadFinalState(chat, *summary->head);
  if (!state) return Fail(std::move(state.error()));
  return Place{.parent = summary->head, .edited_from = {}, .state = (*std::move(state)).value_or(AgentState{})};
}

Result<Engine::Impl::Edited> Engine::Impl::LoadEdited(const ChatId& chat, InteractionId id) {
  // Its state continues the one before it, which is put together once in this order.
  auto before = parts_.store.LoadPreviousState(chat, id);
  if (!before) return Fail(std::move(before.error()));
  auto edited = parts_.store.LoadInteraction(chat, id);
  if (!edited) return Fail(std::move(edited.error()));
  return Edited{.interaction = *std::move(edited), .before = (*std::move(before)).value_or(AgentState{})};
}

Result<Place> Engine::Impl::PlaceBeside(Edited edited, const std::optional<std::vector<FileId>>& attachments) {
  const Interaction& beside = edited.interaction;
  auto attached = attachments ? AttachFiles(parts_.files, beside.chat_id, *attachments) : AttachedTo(beside);
  if (!attached) return Fail(std::move(attached.error()));
  Place place{.parent = beside.parent_id, .edited_from = beside.id, .state = std::move(edited.before)};
  place.attached = *std::move(attached);
  return place;
}

Result<Place> Engine::Impl::PlaceToResume(Interaction ended) {
  if (ended.status == InteractionStatus::kCompleted || !ended.final_agent_state) {
    return Fail(Error{.code = ErrorCode::kConflict,
                      .reason = "not_resumable",
                      .message = "the interaction came to its end; there is nothing to resume"});
  }
  Attached attached = AttachedTo(ended);
  Place place{.parent = ended.parent_id, .edited_from = ended.id, .state = *std::move(ended.final_agent_state)};
  place.attached = std::move(attached);
  place.interrupted = WhereToResume(place.state, *parts_.tools.Current());
  place.resumed_from = ResumedFrom{.interaction = ended.id};
  for (const auto& open : place.interrupted->calls) place.resumed_from->call_ids.push_back(open.call.id);
  PrepareToResume(place.state, place.resumed_from->call_ids);
  return place;
}

Result<Agenda> Engine::Impl::ChangeAgenda(const ChatId& chat, AgendaChange change) {
  if (auto summary = parts_.store.LoadSummary(chat); !summary) return Fail(summary.error());
  auto place = PlaceAtHead(chat);
  if (!place) return Fail(place.error());
  const Agenda before = place->state.agenda;
  Agenda& agenda = place->state.agenda;
  if (change.tasks) agenda.tasks = *std::move(change.tasks);
  if (change.plan) agenda.plan = *std::move(change.plan);
  if (auto named = NameTasks(agenda.tasks); !named) return Fail(named.error());
  if (agenda == before) return agenda;
  std::vector<EventPayload> events;
  if (agenda.tasks != before.tasks) events.emplace_back(event::TaskUpdated{std::nullopt, agenda.tasks});
  if (agenda.plan != before.plan) events.emplace_back(event::PlanUpdated{std::nullopt, agenda.plan});
  auto changed = SaveChange(chat, *std::move(place), std::move(events));
  if (!changed) return Fail(changed.error());
  return std::move(changed->final_agent_state->agenda);
}

Result<void> Engine::Impl::RevokeGrant(const ChatId& chat, std::string_view id) {
  if (auto summary = parts_.store.LoadSummary(chat); !summary) return Fail(summary.error());
  auto place = PlaceAtHead(chat);
  if (!place) return Fail(place.error());
  if (std::erase_if(place->state.grants, [&](const Grant& grant) { return GrantId(grant) == id; }) == 0) {
    return Fail(NoSuchGrant());
  }
  event::GrantsUpdated updated{place->state.grants};
  return SaveChange(chat, *std::move(place), {std::move(updated)}).map([](const Interaction&) {});
}

Result<Interaction> Engine::Impl::SaveChange(const ChatId& chat, Place place, std::vector<EventPayload> events) {
  const auto id = parts_.store.ReserveInteraction(chat);
  if (!id) return Fail(id.error());
  Interaction changed{.id = *id, .chat_id = chat};
  changed.parent_id = place.parent;
  changed.status = InteractionStatus::kCompleted;
  changed.created_at = changed.completed_at.emplace(Now());
  for (EventPayload& payload : events) {
    const std::uint64_t seq = changed.events.size() + 2;  // interaction_started is 1
    changed.events.push_back({.seq = seq, .at = changed.created_at, .payload = std::move(payload)});
  }
  changed.final_agent_state = std::move(place.state);
  if (auto saved = parts_.store.SaveInteraction(changed); !saved) return Fail(saved.error());
  return changed;
}

Result<void> Engine::Impl::DropOutdatedGrants(const std::string& tool_name) {
  const auto tools = parts_.tools.Current();
  const Tool* tool = tools->Find(tool_name);
  if (parts_.grants == nullptr || tool == nullptr || !tool->traits().needs_consent) return {};
  const auto grants = parts_.grants->List();
  if (!grants && grants.error().code == ErrorCode::kCorruption) return {};  // nothing is granted then
  if (!grants) return Fail(grants.error());
  for (const StandingGrant& each : *grants) {
    if (each.grant.tool_name != tool_name) continue;
    auto removed = parts_.grants->Remove(GrantId(each.grant));
    if (!removed && !IsNotFound(removed.error())) return removed;
  }
  return {};
}

// Nobody need have answered what does not wait any more when the engine stops; the next one may ask again.
Error Engine::Impl::WhyNotGiven(const Error& error) const {
  const std::lock_guard lock(mutex_);
  return stopping_ && error.reason == "already_processed" ? Stopping() : error;
}

Result<void> Engine::Impl::GrantAndGive(const ApprovalRequests::Found& found, ApprovalAnswer answer) {
  if (parts_.grants == nullptr) {
    return Fail(Error{.code = ErrorCode::kInvalidArgument,
                      .reason = "invalid_member",
                      .message = "\"scope\" cannot be \"always\": this server keeps no grants"});
  }
  const auto grant = StandingGrantFor(approvals_.PendingOf(*found).request, answer, *parts_.tools.Current());
  if (!grant) return Fail(grant.error());
  if (auto claimed = approvals_.Claim(found); !claimed) return claimed;
  const auto added = parts_.grants->Add(*grant);
  if (!added) {
    static_cast<void>(approvals_.Settle(found, std::nullopt));
    return Fail(added.error());
  }
  auto given = approvals_.Settle(found, std::move(answer));
  // Its run was stopped meanwhile; then nobody has said this.
  if (!given && *added) static_cast<void>(parts_.grants->Remove(GrantId(grant->grant)));
  return given;
}

std::shared_ptr<Run> Engine::Impl::ActiveRun(const ChatId& chat) const {
  const std::lock_guard lock(mutex_);
  const auto found = active_.find(chat);
  return found == active_.end() ? nullptr : found->second;
}

std::shared_ptr<Run> Engine::Impl::ActiveRun(const ChatId& chat, InteractionId id) const {
  auto run = ActiveRun(chat);
  return run && run->id() == id ? run : nullptr;
}

std::vector<std::shared_ptr<Run>> Engine::Impl::ActiveRuns() const {
  std::vector<std::shared_ptr<Run>> runs;
  const std::lock_guard lock(mutex_);
  for (const auto& [chat, run] : active_) {
    if (run) runs.push_back(run);
  }
  return runs;
}

template <typename Function>
auto Engine::Impl::WhileIdle(const ChatId& chat, Function when_idle) -> decltype(when_idle()) {
  if (auto occupied = Occupy(chat); !occupied) return Fail(std::move(occupied.error()));
  // Also when it throws.
  const std::shared_ptr<void> release(nullptr, [&](void*) { Release(chat); });
  return when_idle();
}

template <typename Function>
auto Engine::Impl::WhenStopped(const ChatId& chat, std::string_view reason, Function when_idle)
    -> decltype(when_idle()) {
  for (;;) {
    auto result = WhileIdle(chat, when_idle);
    if (result || result.error().reason != "busy") return result;
    // One that was about to start when it was asked for is there now; another may follow it.
    const auto run = ActiveRun(chat);
    if (!run) continue;
    run->RequestStop(reason);
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] {
      const auto found = active_.find(chat);
      return stopping_ || found == active_.end() || found->second != run;
    });
  }
}

Result<Interaction> Engine::Impl::Find(const ChatId& chat, InteractionId id) const {
  if (const auto run = ActiveRun(chat, id)) return run->Snapshot();
  return LoadFinished(chat, id);
}

Result<Interaction> Engine::Impl::FindReplayable(const ChatId& chat, InteractionId id) const {
  if (!ActiveRun(chat, id)) return LoadFinished(chat, id);
  return Fail(Error{.code = ErrorCode::kConflict,
                    .reason = "not_replayable",
                    .message = "the interaction has not come to its end yet"});
}

Result<Interaction> Engine::Impl::LoadFinished(const ChatId& chat, InteractionId id) const {
  auto stored = parts_.store.LoadInteraction(chat, id);
  if (stored) return stored;
  const std::lock_guard lock(mutex_);
  const auto rescued = rescued_.find({chat, id});
  if (rescued == rescued_.end()) return stored;
  return rescued->second;
}

template <typename Kind>
Error Engine::Impl::WhyNotWaiting(std::string_view id, const InteractionRef& within) const {
  const auto stored = Find(within.chat_id, within.interaction_id);
  const auto asked_it = [&](const AgentEvent& each) {
    const auto* request = std::get_if<decltype(Kind::Pending::request)>(&each.payload);
    return request != nullptr && request->*Kind::kId == id;
  };
  if (stored && std::any_of(stored->events.begin(), stored->events.end(), asked_it)) return AlreadyProcessed<Kind>();
  return NeverAsked<Kind>();
}

// On a thread of its own: a dead disk must not take the caller's, nor runs that wait keep it from going on record.
Result<void> Engine::Impl::KeepAnswer(const std::shared_ptr<Run>& run, const std::string& id, GivenAnswer answer) {
  if (!run) return {};
  const auto kept = std::make_shared<std::promise<Result<void>>>();
  auto outcome = kept->get_future();
  try {
    control_.Submit([run, id, answer = std::move(answer), kept] { kept->set_value(run->KeepAnswer(id, answer)); });
  } catch (const std::system_error& error) {
    return Fail(NoThreads(error.what()));
  }
  if (outcome.wait_for(kRecordLimit) == std::future_status::ready) return outcome.get();
  return Fail(Error{.code = ErrorCode::kUnavailable,
                    .reason = "not_on_record",
                    .message = "the answer was taken, but the disk does not respond"});
}

Result<void> Engine::Impl::Delete(const ChatId& chat) {
  if (auto cleared = queues_.Clear(chat); !cleared) return cleared;
  for (InteractionStore* fallback : parts_.fallback_stores) {
    auto deleted = fallback->DeleteChat(chat);
    if (!deleted && !IsNotFound(deleted.error())) return deleted;
  }
  auto deleted = parts_.store.DeleteChat(chat);
  if (!deleted) return deleted;
  usage_limits_.Forget(chat);
  if (parts_.files) parts_.files->ForgetChat(chat);
  const std::lock_guard lock(mutex_);
  std::erase_if(rescued_, [&](const auto& each) { return each.first.first == chat; });
  return {};
}

Result<void> Engine::Impl::CopyFiles(const ChatId& from, const ChatId& to) const {
  const auto wanted = parts_.files->List(from), there = parts_.files->List(to);
  if (!wanted) return Fail(wanted.error());
  if (!there) return Fail(there.error());
  for (const FileInfo& each : wanted->files) {
    const auto is_it = [&](const FileInfo& other) { return other.id == each.id; };
    if (std::any_of(there->files.begin(), there->files.end(), is_it)) continue;
    const auto file = parts_.files->Get(from, each.id);
    if (!file && IsNotFound(file.error())) continue;  // deleted meanwhile
    if (!file) return Fail(file.error());
    if (auto copied = parts_.files->Put(to, *file); !copied) return copied;
  }
  if (!wanted->damaged.empty()) {
    LogWarning("damaged files of a chat were not copied", {{"from", from.str()}, {"to", to.str()}});
  }
  return {};
}

Result<void> Engine::Impl::PutFiles(const IncomingChat& chat) const {
  const auto there = parts_.files->List(chat.summary.id);
  if (!there) return Fail(there.error());
  for (const FileId& id : chat.files) {
    const auto is_it = [&](const FileInfo& other) { return other.id == id; };
    if (std::any_of(there->files.begin(), there->files.end(), is_it)) continue;
    auto put =
        chat.load_file(id).and_then([&](const StoredFile& file) { return parts_.files->Put(chat.summary.id, file); });
    if (!put) return put;
  }
  return {};
}

std::vector<std::shared_ptr<PacedEvents>> Engine::Impl::TakePaced() {
  std::vector<std::shared_ptr<PacedEvents>> paced;
  const std::lock_guard lock(mutex_);
  for (const auto& each : std::exchange(paced_, {})) {
    if (auto still = each.lock()) paced.push_back(std::move(still));
  }
  return paced;
}

void Engine::Impl::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  idle_.notify_all();
  for (const auto& run : ActiveRuns()) run->RequestStopWithServer();
  for (const auto& paced : TakePaced()) paced->Finish();
  queues_.TellStopping();
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return unfinished_ == 0; });
}

// --- the public face -------------------------------------------------------------------------------------------------

Engine::Engine(Parts parts, EngineOptions options)
    : impl_(std::make_unique<Impl>(std::move(parts), std::move(options))) {}
Engine::~Engine() { Stop(); }

Result<EventSubscription> Engine::Start(const ChatId& chat, StartRequest request) {
  if (auto there = impl_->CheckAttachments(chat, request); !there) return Fail(std::move(there.error()));
  const auto find_place = [impl = impl_.get(), chat](StartRequest& started) -> Result<Place> {
    auto attached = AttachFiles(impl->parts_.files, chat, started.attachments.value_or(std::vector<FileId>()));
    if (!attached) return Fail(std::move(attached.error()));
    auto place = impl->PlaceAtHead(chat);
    if (place) place->attached = *std::move(attached);
    return place;
  };
  return impl_->Launch(chat, std::move(request), find_place);
}

Result<EventSubscription> Engine::Resume(const ChatId& chat, InteractionId interaction, StartRequest request) {
  if (auto there = impl_->CheckTarget(chat, interaction, request); !there) return Fail(std::move(there.error()));
  const auto find_place = [impl = impl_.get(), chat, interaction](StartRequest& again) -> Result<Place> {
    auto ended = impl->parts_.store.LoadInteraction(chat, interaction);
    if (!ended) return Fail(ended.error());
    if (again.model.empty()) again.model = ended->model;
    again.user_message = ended->user_message;
    return impl->PlaceToResume(*std::move(ended));
  };
  return impl_->Launch(chat, std::move(request), find_place);
}

Result<Engine::Recovered> Engine::Recover() { return impl_->Recover(); }

Result<EventSubscription> Engine::Edit(const ChatId& chat, InteractionId interaction, StartRequest request) {
  if (auto there = impl_->CheckTarget(chat, interaction, request); !there) return Fail(std::move(there.error()));
  const auto find_place = [impl = impl_.get(), chat, interaction](StartRequest& edit) -> Result<Place> {
    auto edited = impl->LoadEdited(chat, interaction);
    if (!edited) return Fail(std::move(edited.error()));
    if (edit.model.empty()) edit.model = edited->interaction.model;
    return impl->PlaceBeside(*std::move(edited), edit.attachments);
  };
  return impl_->Launch(chat, std::move(request), find_place);
}

Result<EventSubscription> Engine::Regenerate(const ChatId& chat, InteractionId interaction, StartRequest request) {
  if (auto there = impl_->CheckTarget(chat, interaction, request); !there) return Fail(std::move(there.error()));
  const auto find_place = [impl = impl_.get(), chat, interaction](StartRequest& again) -> Result<Place> {
    auto edited = impl->LoadEdited(chat, interaction);
    if (!edited) return Fail(std::move(edited.error()));
    const Interaction& asked = edited->interaction;
    if (asked.user_message.empty()) {
      return Fail(Error{.code = ErrorCode::kConflict,
                        .reason = "no_message",
                        .message = "the interaction has no message that could be sent again"});
    }
    if (again.model.empty()) again.model = asked.model;
    again.user_message = asked.user_message;
    return impl->PlaceBeside(*std::move(edited), again.attachments);
  };
  return impl_->Launch(chat, std::move(request), find_place);
}

Result<EventSubscription> Engine::ReplayEvents(const ChatId& chat, InteractionId interaction, double speed) {
  const auto stored = impl_->FindReplayable(chat, interaction);
  if (!stored) return Fail(stored.error());
  if (speed <= 0) return EventSubscription(chat, interaction, RecordedLog(*stored), nullptr);
  auto paced = std::make_shared<PacedEvents>(*stored, speed, impl_->timer_);
  {
    const std::lock_guard lock(impl_->mutex_);
    if (impl_->stopping_) return Fail(Stopping());
    std::erase_if(impl_->paced_, [](const auto& each) { return each.expired(); });
    impl_->paced_.push_back(paced);
  }
  paced->Start();
  auto log = paced->log();
  return EventSubscription(chat, interaction, std::move(log), std::move(paced));
}

Result<ReplayReport> Engine::ReplayRecorded(const ChatId& chat, InteractionId interaction) {
  const auto stored = impl_->FindReplayable(chat, interaction);
  if (!stored) return Fail(stored.error());
  try {
    impl_->pool_.StartFirstThread();
  } catch (const std::system_error& error) {
    return Fail(NoThreads(error.what()));
  }
  return reprise::ReplayRecorded(*stored, [this](std::function<void()> job) { impl_->pool_.Submit(std::move(job)); });
}

Result<ReplayReport> Engine::CompareReplay(const ChatId& chat, InteractionId recorded, InteractionId again) {
  const auto first = impl_->FindReplayable(chat, recorded);
  if (!first) return Fail(first.error());
  const auto second = impl_->FindReplayable(chat, again);
  if (!second) return Fail(second.error());
  return CompareRuns(*first, *second);
}

Result<EditPreview> Engine::PreviewEdit(const ChatId& chat, InteractionId interaction) {
  if (const auto run = impl_->ActiveRun(chat, interaction)) return Fail(Busy(run));
  const auto edited = impl_->parts_.store.LoadInteraction(chat, interaction);
  if (!edited) return Fail(edited.error());
  const auto all = impl_->parts_.store.LoadChat(chat);
  if (!all) return Fail(all.error());
  return PreviewOf(*all, *edited, *impl_->parts_.tools.Current());
}

Result<CancelOutcome> Engine::Cancel(const ChatId& chat, InteractionId interaction) {
  if (const auto run = impl_->ActiveRun(chat, interaction)) {
    run->RequestStop("requested");
    return CancelOutcome{.was_running = true, .status = InteractionStatus::kRunning};
  }
  const auto stored = impl_->LoadFinished(chat, interaction);
  if (!stored) return Fail(stored.error());
  return CancelOutcome{.was_running = false, .status = stored->status};
}

Result<AttachedEvents> Engine::Attach(const ChatId& chat, InteractionId interaction, std::uint64_t after_seq) {
  const auto run = impl_->ActiveRun(chat, interaction);
  std::shared_ptr<EventLog> log;
  InteractionStatus status;
  if (run) {
    log = run->log();
    status = run->status();
  } else {
    const auto stored = impl_->LoadFinished(chat, interaction);
    if (!stored) return Fail(stored.error());
    log = RecordedLog(*stored);
    status = stored->status;
  }
  const auto last = log->end();
  const auto offset = log->OffsetAfter(after_seq);
  if (!offset) return Fail(offset.error());
  const auto elsewhere = [&](const auto& each) { return each.chat_id != chat || each.interaction_id != interaction; };
  std::vector<PendingApproval> approvals = impl_->approvals_.Waiting();
  std::erase_if(approvals, elsewhere);
  std::vector<PendingInput> inputs = impl_->inputs_.Waiting();
  std::erase_if(inputs, elsewhere);
  return AttachedEvents{.subscription = EventSubscription(chat, interaction, std::move(log), nullptr),
                        .offset = *offset,
                        .status = status,
                        .first_seq = after_seq + 1,
                        .last_seq = last.last_seq,
                        .pending_approvals = std::move(approvals),
                        .pending_inputs = std::move(inputs)};
}

void Engine::Listen(EventSubscription& subscription) {
  if (!subscription.interaction_id) return;  // it listens already
  const auto run = impl_->ActiveRun(subscription.chat_id, *subscription.interaction_id);
  if (run && !subscription.hold_) subscription.hold_ = run->AddListener();
}

Result<std::vector<QueueEntry>> Engine::GetQueue(const ChatId& chat) {
  return impl_->CheckChat(chat).and_then([&] { return impl_->queues_.List(chat); });
}

Result<QueueEntry> Engine::ChangeQueued(const ChatId& chat, std::string_view id, const std::string& user_message) {
  auto changed = impl_->CheckChat(chat).and_then([&] { return impl_->guardrails_.Admit(user_message); }).and_then([&] {
    return impl_->queues_.Change(chat, id, user_message);
  });
  if (changed) impl_->StartNext(chat);
  return changed;
}

Result<void> Engine::RemoveQueued(const ChatId& chat, std::string_view id) {
  return impl_->CheckChat(chat).and_then([&] { return impl_->queues_.Remove(chat, id); });
}

Result<PendingApproval> Engine::AnswerApproval(std::string_view approval_id, ApprovalAnswer answer,
                                               std::optional<InteractionRef> within) {
  const auto found = impl_->approvals_.Find(approval_id, within);
  if (!found && within && IsNotFound(found.error()))
    return Fail(impl_->WhyNotWaiting<ApprovalKind>(approval_id, *within));
  if (!found) return Fail(impl_->WhyNotGiven(found.error()));
  const PendingApproval& pending = impl_->approvals_.PendingOf(**found);
  const event::ApprovalRequired& request = pending.request;
  if (answer.arguments_digest && *answer.arguments_digest != request.arguments_digest) {
    return Fail(Error{.code = ErrorCode::kConflict,
                      .reason = "digest_mismatch",
                      .message = "arguments_digest is not the digest of the arguments that wait for approval"});
  }
  const auto tools = impl_->parts_.tools.Current();
  if (answer.approved && IsOutdated(request, *tools)) {
    if (auto withdrawn = impl_->approvals_.Give(*found, kSuperseded); !withdrawn) {
      return Fail(impl_->WhyNotGiven(withdrawn.error()));
    }
    return Fail(Error{.code = ErrorCode::kConflict,
                      .reason = "stale",
                      .message = "the tool, or where it would run, is not what was shown any more; the call was not "
                                 "approved and is asked about again"});
  }
  if (answer.approved && answer.arguments) {
    const Tool* tool = tools->Find(request.tool_name);
    if (tool == nullptr) return Fail(ErrorCode::kNotFound, "the tool is not there any more");
    if (auto valid = tools->Validate(*tool, *answer.arguments); !valid) return Fail(valid.error());
  }
  if (answer.approved) {
    if (auto dropped = impl_->DropOutdatedGrants(request.tool_name); !dropped) return Fail(dropped.error());
  }
  const auto run = impl_->ActiveRun(pending.chat_id, pending.interaction_id);  // before it can end
  const bool for_always = answer.approved && answer.scope == ApprovalScope::kAlways;
  const auto given = for_always ? impl_->GrantAndGive(*found, answer) : impl_->approvals_.Give(*found, answer);
  if (!given) return Fail(impl_->WhyNotGiven(given.error()));
  return impl_->KeepAnswer(run, request.approval_id, std::move(answer)).map([&] { return pending; });
}

Result<std::vector<StandingGrant>> Engine::StandingGrants() {
  if (impl_->parts_.grants == nullptr) return std::vector<StandingGrant>();
  return impl_->parts_.grants->List();
}

Result<void> Engine::RevokeStandingGrant(std::string_view id) {
  if (impl_->parts_.grants == nullptr) return Fail(NoSuchGrant());
  return impl_->parts_.grants->Remove(id);
}

Result<std::vector<Grant>> Engine::GetGrants(const ChatId& chat) {
  if (const auto run = impl_->ActiveRun(chat)) return run->grants();
  if (auto summary = impl_->parts_.store.LoadSummary(chat); !summary) return Fail(summary.error());
  return impl_->PlaceAtHead(chat).map([](const Place& head) { return head.state.grants; });
}

Result<void> Engine::RevokeGrant(const ChatId& chat, std::string_view id) {
  return impl_->WhileIdle(chat, [&] { return impl_->RevokeGrant(chat, id); });
}

Result<PendingApproval> Engine::FindApproval(std::string_view approval_id) const {
  return impl_->approvals_.Find(approval_id, std::nullopt).map([](const auto& found) {
    return ApprovalRequests::PendingOf(*found);
  });
}

std::vector<PendingApproval> Engine::PendingApprovals() const { return impl_->approvals_.Waiting(); }

Result<FileChange> Engine::PreviewChange(std::string_view approval_id) const {
  const auto found = impl_->approvals_.Find(approval_id, std::nullopt);
  if (!found) return Fail(ErrorCode::kNotFound, "no such approval waits");
  const event::ApprovalRequired& request = impl_->approvals_.PendingOf(**found).request;
  const auto tools = impl_->parts_.tools.Current();
  const Tool* tool = tools->Find(request.tool_name);
  if (tool == nullptr) return Fail(NoChangeToShow("the tool is not there any more"));
  // In another workspace, say, since the server was started anew: what is there is not what the question is about.
  if (IsOutdated(request, *tools)) {
    return Fail(NoChangeToShow("the tool, or where it would run, is not what was shown any more"));
  }
  return tool->PreviewChange(request.tool_input);
}

Result<PendingInput> Engine::AnswerInput(std::string_view request_id, InputAnswer answer,
                                         std::optional<InteractionRef> within) {
  const auto found = impl_->inputs_.Find(request_id, within);
  if (!found && within && IsNotFound(found.error())) {
    return Fail(impl_->WhyNotWaiting<InputKind>(request_id, *within));
  }
  if (!found) return Fail(impl_->WhyNotGiven(found.error()));
  const PendingInput& pending = impl_->inputs_.PendingOf(**found);
  const std::optional<std::string>& schema = pending.request.schema;
  if (schema && answer.response && !IsJsonObject(*answer.response)) {
    return Fail(Error{.code = ErrorCode::kInvalidArgument,
                      .reason = "invalid_member",
                      .message = "\"response\" must be a JSON object, as the question's schema says"});
  }
  if (schema && answer.response && impl_->parts_.check_form) {
    if (auto checked = impl_->parts_.check_form(*schema, *answer.response); !checked) return Fail(checked.error());
  }
  const auto run = impl_->ActiveRun(pending.chat_id, pending.interaction_id);  // before it can end
  if (auto given = impl_->inputs_.Give(*found, answer); !given) return Fail(impl_->WhyNotGiven(given.error()));
  return impl_->KeepAnswer(run, pending.request.request_id, std::move(answer)).map([&] { return pending; });
}

std::vector<PendingInput> Engine::PendingInputs() const { return impl_->inputs_.Waiting(); }

Result<Interaction> Engine::GetInteraction(const ChatId& chat, InteractionId interaction) {
  return impl_->Find(chat, interaction);
}

Result<History> Engine::GetHistory(const ChatId& chat, bool all_branches) {
  // The run first: one that ends in between is then found in the store as well, and shown once.
  const auto run = impl_->ActiveRun(chat);
  auto stored = impl_->parts_.store.LoadChat(chat);
  if (!stored && !(run && IsNotFound(stored.error()))) return Fail(stored.error());
  Chat all = stored ? *std::move(stored) : Chat{ChatSummary{.id = chat}, {}, {}};
  std::optional<InteractionId> leaf = all.summary.head;
  const auto has_it = [&](const Interaction& each) { return run && each.id == run->id(); };
  if (run && std::none_of(all.interactions.begin(), all.interactions.end(), has_it)) {
    leaf = run->id();
    all.interactions.push_back(run->Snapshot());
    FillFromBegun(all.summary, all.interactions.back());
  }
  const auto branch = BranchOf(all.interactions, all.damaged, leaf);
  History history{.summary = std::move(all.summary), .entries = {}, .damaged = std::move(all.damaged)};
  for (Interaction& interaction : all.interactions) {
    const bool superseded = !branch.contains(interaction.id);
    if (all_branches || !superseded) history.entries.push_back({std::move(interaction), superseded});
  }
  return history;
}

Result<ChatUsage> Engine::GetUsage(const ChatId& chat) { return GetHistory(chat, /*all_branches=*/true).map(UsageOf); }

Result<std::vector<ChatListEntry>> Engine::ListChats() {
  auto summaries = impl_->parts_.store.ListChats();
  if (!summaries) return Fail(std::move(summaries.error()));
  std::vector<ChatListEntry> entries;
  entries.reserve(summaries->size());
  for (ChatSummary& summary : *summaries) {
    const auto run = impl_->ActiveRun(summary.id);
    std::optional<InteractionStatus> status = summary.head_status;
    if (run) {
      status = run->status();
      if (!summary.head) FillFromBegun(summary, run->Snapshot());
    }
    entries.push_back({std::move(summary), status});
  }
  return entries;
}

Result<std::vector<UnreadableChat>> Engine::ListUnreadableChats() { return impl_->parts_.store.ListUnreadableChats(); }

Result<ChatSummary> Engine::CreateChat(const ChatId& chat, const std::string& title) {
  return impl_->WhileIdle(chat, [&] { return impl_->parts_.store.CreateChat(chat, title); });
}

Result<ChatSummary> Engine::RenameChat(const ChatId& chat, const std::string& title) {
  return impl_->parts_.store.RenameChat(chat, title);
}

Result<void> Engine::DeleteChat(const ChatId& chat) {
  if (auto cleared = impl_->queues_.Clear(chat); !cleared) return cleared;
  return impl_->WhenStopped(chat, "chat_deleted", [&] { return impl_->Delete(chat); });
}

Result<std::vector<TrashEntry>> Engine::ListTrash() { return impl_->parts_.store.ListTrash(); }

Result<ChatSummary> Engine::RestoreChat(std::string_view entry) {
  const auto chat = ChatId::Parse(entry.substr(0, entry.find('.')));
  if (!chat) return Fail(ErrorCode::kNotFound, "there is no such chat in the trash");
  auto restored = impl_->WhileIdle(*chat, [&] {
    impl_->usage_limits_.Forget(*chat);
    if (impl_->parts_.files) impl_->parts_.files->ForgetChat(*chat);
    return impl_->parts_.store.RestoreChat(*chat, std::string(entry));
  });
  if (restored || restored.error().reason != "busy") return restored;
  return Fail(
      Error{.code = ErrorCode::kConflict, .reason = "chat_exists", .message = "there is a chat of this name already"});
}

Result<Agenda> Engine::GetAgenda(const ChatId& chat) {
  if (const auto run = impl_->ActiveRun(chat)) return run->agenda();
  if (auto summary = impl_->parts_.store.LoadSummary(chat); !summary) return Fail(summary.error());
  return impl_->PlaceAtHead(chat).map([](const Place& head) { return head.state.agenda; });
}

Result<Agenda> Engine::ChangeAgenda(const ChatId& chat, AgendaChange change) {
  return impl_->WhileIdle(chat, [&] { return impl_->ChangeAgenda(chat, std::move(change)); });
}

Result<ChatSummary> Engine::MoveHead(const ChatId& chat, InteractionId interaction) {
  return impl_->WhileIdle(chat, [&] { return impl_->parts_.store.MoveHead(chat, interaction); });
}

Result<ChatSummary> Engine::Undo(const ChatId& chat) {
  return impl_->WhileIdle(chat, [&]() -> Result<ChatSummary> {
    const auto summary = impl_->parts_.store.LoadSummary(chat);
    if (!summary) return summary;
    std::optional<InteractionId> parent;
    if (summary->head) {
      const auto head = impl_->parts_.store.LoadInteraction(chat, *summary->head);
      if (!head) return Fail(head.error());
      parent = head->parent_id;
    }
    if (parent) return impl_->parts_.store.MoveHead(chat, *parent);
    return Fail(Error{.code = ErrorCode::kConflict,
                      .reason = "nothing_to_undo",
                      .message = "there is no interaction before the chat's head"});
  });
}

Result<ChatListEntry> Engine::ForkChat(const ChatId& source, InteractionId interaction, const ChatId& chat,
                                       const std::optional<std::string>& title) {
  if (impl_->ActiveRun(source, interaction)) {
    return Fail(Error{.code = ErrorCode::kConflict,
                      .reason = "not_finished",
                      .message = "the interaction has not come to its end yet",
                      .retryable = true});
  }
  auto copy = impl_->WhileIdle(chat, [&] {
    impl_->usage_limits_.Forget(chat);
    auto forked = impl_->parts_.store.ForkChat(source, interaction, chat, title);
    if (!forked || impl_->parts_.files == nullptr) return forked;
    // A store that keeps files with their chats has copied them.
    if (auto copied = impl_->CopyFiles(source, chat); !copied) {
      static_cast<void>(impl_->Delete(chat));
      forked = Fail(std::move(copied.error()));
    }
    return forked;
  });
  if (copy) return ChatListEntry{*copy, copy->head_status};
  if (copy.error().reason != "busy") return Fail(std::move(copy.error()));
  return Fail(
      Error{.code = ErrorCode::kConflict, .reason = "chat_exists", .message = "there is a chat of this name already"});
}

Result<ChatListEntry> Engine::ImportChat(const IncomingChat& chat) {
  const ChatId& id = chat.summary.id;
  auto imported = impl_->WhileIdle(id, [&] {
    impl_->usage_limits_.Forget(id);
    auto taken = impl_->parts_.store.ImportChat(chat);
    if (!taken || impl_->parts_.files == nullptr) return taken;
    // A store that keeps files with their chats has taken them.
    if (auto put = impl_->PutFiles(chat); !put) {
      static_cast<void>(impl_->Delete(id));
      taken = Fail(std::move(put.error()));
    }
    return taken;
  });
  if (imported) return ChatListEntry{*imported, imported->head_status};
  if (imported.error().reason != "busy") return Fail(std::move(imported.error()));
  return Fail(
      Error{.code = ErrorCode::kConflict, .reason = "chat_exists", .message = "there is a chat of this name already"});
}

namespace {

Error NoFiles() { return MakeError(ErrorCode::kNotFound, "this server keeps no files"); }

}  // namespace

Result<void> Engine::AddFile(const ChatId& chat, const StoredFile& file) {
  if (impl_->parts_.files == nullptr) return Fail(NoFiles());
  if (const auto known = impl_->parts_.store.LoadSummary(chat); !known) {
    if (!IsNotFound(known.error())) return Fail(known.error());
    auto created = CreateChat(chat, "");
    // Somebody else was faster; or its first interaction is about to begin, and makes it.
    if (!created && created.error().code != ErrorCode::kConflict) return Fail(std::move(created.error()));
  }
  return impl_->parts_.files->Put(chat, file);
}

Result<FileListing> Engine::ListFiles(const ChatId& chat) {
  if (impl_->parts_.files == nullptr) return Fail(NoFiles());
  if (const auto known = impl_->parts_.store.LoadSummary(chat); !known) return Fail(known.error());
  return impl_->parts_.files->List(chat);
}

Result<StoredFile> Engine::GetFile(const ChatId& chat, const FileId& file) {
  if (impl_->parts_.files == nullptr) return Fail(NoFiles());
  return impl_->parts_.files->Get(chat, file);
}

Result<void> Engine::DeleteFile(const ChatId& chat, const FileId& file) {
  if (impl_->parts_.files == nullptr) return Fail(NoFiles());
  return impl_->parts_.files->Delete(chat, file);
}

const ModelDirectory& Engine::models() const { return impl_->parts_.models; }
const ToolRegistry& Engine::tools() const { return impl_->parts_.tools; }
const EngineOptions& Engine::options() const { return impl_->options_; }
const AuditLog* Engine::audit() const { return impl_->parts_.audit; }

Engine::Counters Engine::counters() const {
  const std::size_t waiting = impl_->approvals_.waiting_count();
  std::vector<std::shared_ptr<Run>> runs;
  Counters counters;
  {
    const std::lock_guard lock(impl_->mutex_);
    counters = impl_->counters_;
    counters.active_runs = impl_->active_.size();
    for (const auto& [chat, run] : impl_->active_) {
      if (run) runs.push_back(run);
    }
  }
  counters.waiting_approvals = waiting;
  counters.waiting_runs = static_cast<std::size_t>(std::count_if(
      runs.begin(), runs.end(), [](const auto& run) { return run->status() != InteractionStatus::kRunning; }));
  return counters;
}

void Engine::Stop() { impl_->Stop(); }

}  // namespace reprise
