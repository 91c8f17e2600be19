#include "reprise/engine.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/json.h"
#include "base/logging.h"
#include "domain/codec.h"
#include "engine/answer_book.h"
#include "engine/branches.h"
#include "engine/checkpoint_saver.h"
#include "engine/elastic_pool.h"
#include "engine/guardrails.h"
#include "engine/live_comparison.h"
#include "engine/paced_events.h"
#include "engine/recorded_events.h"
#include "engine/recorded_replay.h"
#include "engine/recovery.h"
#include "engine/run.h"
#include "engine/run_journal.h"
#include "engine/timer.h"

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

bool IsJsonObject(const std::string& text) {
  const auto json = ParseJson(text);
  return json && json->is_object();
}

bool CanAskAgain(const Question& question, const ToolSet& tools) {
  const Tool* tool = tools.Find(question.calls.front().name);
  if (tool == nullptr) return false;
  return std::holds_alternative<event::ApprovalRequired>(question.request) || tool->traits().only_asks;
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

bool IsNotFound(const Error& error) { return error.code == ErrorCode::kNotFound; }

// Where a new interaction hangs in the chat's tree.
struct Place {
  std::optional<InteractionId> parent, edited_from;
  AgentState state;                                                  // what it starts from
  std::optional<AgentLoop::Interrupted> interrupted = std::nullopt;  // set if that is in the middle of a turn
};

}  // namespace

class Engine::Impl {
 public:
  Impl(Parts parts, EngineOptions options)
      : parts_(std::move(parts)),
        options_(options),
        saver_(parts_.store, parts_.fallback_stores, pool_, timer_, options_.save_timeout) {}

  using FindPlace = std::function<Result<Place>(StartRequest&)>;
  Result<EventSubscription> Launch(const ChatId& chat, StartRequest request, const FindPlace& find_place);

  Result<Place> PlaceAtHead(const ChatId& chat);
  Result<Place> PlaceBeside(const Interaction& edited);
  // REQUIRES: the chat is idle.
  Result<Agenda> ChangeAgenda(const ChatId& chat, AgendaChange change);
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
  // Blocks until `chat` has no run. `when_idle` is then called with the chat still kept from starting one.
  template <typename Function>
  auto WhileIdle(const ChatId& chat, bool wait, Function when_idle) -> decltype(when_idle());
  // Why a question of `within` is not in its book: it was processed before the server was started again, or never was.
  template <typename Kind>
  Error WhyNotWaiting(std::string_view id, const InteractionRef& within) const;
  // Also what of it waits in a fallback folder, or it would be back at the next start. REQUIRES: it is idle.
  Result<void> Delete(const ChatId& chat);
  void Stop();
  // The replays that are under way. None starts after stopping_ is set.
  std::vector<std::shared_ptr<PacedEvents>> TakePaced();

  RunGuard::Parts guard_parts() const { return {parts_.audit, parts_.hooks, redactor_, guardrails_}; }

  const Parts parts_;
  const Redactor redactor_{parts_.secrets};
  const Guardrails guardrails_{parts_.guardrails};
  const EngineOptions options_;
  ApprovalBook approvals_;  // synchronises itself
  InputBook inputs_;        // synchronises itself

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  // The chats that are busy; a null run is one that is about to start, or a chat that is being rearranged.
  std::unordered_map<ChatId, std::shared_ptr<Run>> active_;          // guarded by mutex_
  std::map<std::pair<ChatId, InteractionId>, Interaction> rescued_;  // guarded by mutex_
  bool stopping_ = false;                                            // guarded by mutex_
  std::size_t unfinished_ = 0;                                       // guarded by mutex_; runs whose thread is not done
  Counters counters_{};                                              // guarded by mutex_; the totals only
  std::vector<std::weak_ptr<PacedEvents>> paced_;                    // guarded by mutex_; some are over

  ElasticPool pool_;  // the runs' threads: after what they use
  Timer timer_;       // its calls use the pool
  CheckpointSaver saver_;

 private:
  enum class RecoveredAs { kNothing, kWaiting, kFailed };
  // `may_wait`: a run that waited for an answer may go on waiting.
  Result<RecoveredAs> RecoverOne(const InteractionRef& ref, bool may_wait);
  // It is in a fallback folder, from where it is brought home at another start.
  bool IsRescued(const InteractionRef& ref);
  Result<void> SaveInterrupted(const Interaction& ended);
  Result<void> AskAgain(InterruptedRun interrupted, AgentState state, const ModelDirectory::Resolved& model,
                        Question question, const JournalContent& content);
  Result<void> Occupy(const ChatId& chat);
  void Release(const ChatId& chat);
  Result<std::shared_ptr<Run>> MakeRun(const ChatId& chat, StartRequest request, const FindPlace& find_place);
  // The run is there for everybody.
  void Admit(const std::shared_ptr<Run>& run);
  void Execute(const std::shared_ptr<Run>& run);
  void Save(const std::shared_ptr<Run>& run);
  void Rescue(const std::shared_ptr<Run>& run, Interaction finished, const Error& error);
  void Complete(Run& run, InteractionStatus status);
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

void Engine::Impl::Release(const ChatId& chat) {
  {
    const std::lock_guard lock(mutex_);
    active_.erase(chat);
  }
  idle_.notify_all();
}

Result<EventSubscription> Engine::Impl::Launch(const ChatId& chat, StartRequest request, const FindPlace& find_place) {
  if (auto occupied = Occupy(chat); !occupied) return Fail(occupied.error());
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
  // Tools are not for the caller's thread.
  run->starts_with_tools() ? pool_.Submit([this, run] { Execute(run); }) : Execute(run);
  return subscription;
}

Result<std::shared_ptr<Run>> Engine::Impl::MakeRun(const ChatId& chat, StartRequest request,
                                                   const FindPlace& find_place) {
  auto place = find_place(request);
  if (!place) return Fail(place.error());
  if (auto admitted = guardrails_.Admit(request.user_message); !admitted) return Fail(std::move(admitted.error()));
  const auto model = parts_.models.Resolve(request.model);
  if (!model) return Fail(model.error());
  try {
    pool_.StartFirstThread();  // its later failures then mean waiting, which a run can afford
  } catch (const std::system_error& error) {
    return Fail(NoThreads(error.what()));
  }
  const auto id = parts_.store.ReserveInteraction(chat);
  if (!id) return Fail(id.error());

  Interaction interaction{.id = *id, .chat_id = chat};
  interaction.parent_id = place->parent;
  interaction.edited_from = place->edited_from;
  interaction.user_message = std::move(request.user_message);
  interaction.model = model->full_name;
  interaction.created_at = Now();
  auto kept = parts_.store.BeginJournal(chat, *id, {});
  if (!kept) return Fail(kept.error());
  RunJournal journal(*std::move(kept), place->state.messages.size() + (place->interrupted ? 0 : 1));
  journal.AddBegin(interaction, request.on_disconnect);
  if (auto begun = journal.Append(Journal::Reach::kProcess); !begun) {
    static_cast<void>(parts_.store.DropJournal(chat, *id));
    return Fail(begun.error());
  }
  return std::make_shared<Run>(Run::Plan{.interaction = std::move(interaction),
                                         .state = std::move(place->state),
                                         .client = model->client,
                                         .client_model = model->model,
                                         .context_window = model->context_window,
                                         .on_disconnect = request.on_disconnect,
                                         .journal = std::move(journal),
                                         .interrupted = place->interrupted},
                               Run::Services{parts_.tools, approvals_, inputs_, timer_, options_, guard_parts()});
}

void Engine::Impl::Admit(const std::shared_ptr<Run>& run) {
  {
    const std::lock_guard lock(mutex_);
    active_[run->chat_id()] = run;
    ++unfinished_;
    ++counters_.started;
    if (stopping_) run->RequestStop("server_stopping");
  }
  idle_.notify_all();
}

void Engine::Impl::Execute(const std::shared_ptr<Run>& run) {
  // What the agent does and what waits for it keep the run alive.
  const auto executor = [this, weak = std::weak_ptr(run)](std::function<void()> job) {
    pool_.Submit([run = weak.lock(), job = std::move(job)] { job(); });
  };
  run->Start(executor, [this, run] { Save(run); });
}

void Engine::Impl::Save(const std::shared_ptr<Run>& run) {
  auto finished = std::make_shared<Interaction>(run->TakeFinished());
  saver_.Save(finished, [this, run, finished](const Result<void>& saved) {
    saved ? Complete(*run, finished->status) : Rescue(run, *finished, saved.error());
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
    Complete(*run, InteractionStatus::kFailed);
  });
}

void Engine::Impl::Complete(Run& run, InteractionStatus status) {
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
  AgentState state;
  if (const auto parent = (*run)->interaction.parent_id) {
    auto stored = parts_.store.LoadInteraction(ref.chat_id, *parent);
    if (!stored) return Fail(stored.error());
    state = std::move(stored->final_agent_state).value_or(AgentState{});
  }
  RestoreState(**run, state);
  if (auto question = OpenQuestion(**run, state); question && may_wait) {
    const auto model = parts_.models.Resolve((*run)->interaction.model);
    if (model && CanAskAgain(*question, *parts_.tools.Current())) {
      return AskAgain(**std::move(run), std::move(state), *model, *std::move(question), *content).map([] {
        return RecoveredAs::kWaiting;
      });
    }
  }
  return SaveInterrupted(EndInterrupted(**std::move(run), std::move(state))).map([] { return RecoveredAs::kFailed; });
}

// What was pending is pending again, under its id; the run goes on when it is answered.
Result<void> Engine::Impl::AskAgain(InterruptedRun interrupted, AgentState state, const ModelDirectory::Resolved& model,
                                    Question question, const JournalContent& content) {
  const ChatId chat = interrupted.interaction.chat_id;
  auto kept = parts_.store.BeginJournal(chat, interrupted.interaction.id, content.records);
  if (!kept) return Fail(kept.error());
  using Asked = AgentLoop::Interrupted::Asked;
  Asked asked = Asked::kApproval;
  std::string asked_id;
  if (const auto* input = std::get_if<event::InputRequired>(&question.request)) {
    inputs_.Reopen({chat, interrupted.interaction.id, *input});
    asked = Asked::kInput;
    asked_id = input->request_id;
  } else {
    const auto& approval = std::get<event::ApprovalRequired>(question.request);
    approvals_.Reopen({chat, interrupted.interaction.id, approval});
    asked_id = approval.approval_id;
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
                .interrupted =
                    AgentLoop::Interrupted{
                        .round_index = interrupted.last_round, .calls = std::move(question.calls), .asked = asked},
                .shown = Run::Plan::Shown{.log = std::move(interrupted.log), .asked_id = std::move(asked_id)}},
      Run::Services{parts_.tools, approvals_, inputs_, timer_, options_, guard_parts()});
  Admit(run);
  pool_.Submit([this, run] { Execute(run); });
  return {};
}

// --- where an interaction hangs --------------------------------------------------------------------------------------

Result<Place> Engine::Impl::PlaceAtHead(const ChatId& chat) {
  const auto summary = parts_.store.LoadSummary(chat);
  if (!summary && IsNotFound(summary.error())) return Place{};
  if (!summary) return Fail(summary.error());
  if (!summary->head) return Place{};
  auto head = parts_.store.LoadInteraction(chat, *summary->head);
  if (!head) return Fail(head.error());
  return Place{
      .parent = summary->head, .edited_from = {}, .state = std::move(head->final_agent_state).value_or(AgentState{})};
}

Result<Place> Engine::Impl::PlaceBeside(const Interaction& edited) {
  auto state = parts_.store.LoadPreviousState(edited.chat_id, edited.id);
  if (!state) return Fail(state.error());
  return Place{
      .parent = edited.parent_id, .edited_from = edited.id, .state = (*std::move(state)).value_or(AgentState{})};
}

Result<Place> Engine::Impl::PlaceToResume(Interaction ended) {
  if (ended.status == InteractionStatus::kCompleted || !ended.final_agent_state) {
    return Fail(Error{.code = ErrorCode::kConflict,
                      .reason = "not_resumable",
                      .message = "the interaction came to its end; there is nothing to resume"});
  }
  Place place{.parent = ended.parent_id, .edited_from = ended.id, .state = *std::move(ended.final_agent_state)};
  place.interrupted = WhereToResume(place.state, *parts_.tools.Current());
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
  const auto id = parts_.store.ReserveInteraction(chat);
  if (!id) return Fail(id.error());

  Interaction changed{.id = *id, .chat_id = chat};
  changed.parent_id = place->parent;
  changed.status = InteractionStatus::kCompleted;
  changed.created_at = changed.completed_at.emplace(Now());
  const auto add = [&](EventPayload payload) {
    const std::uint64_t seq = changed.events.size() + 2;  // interaction_started is 1
    changed.events.push_back({.seq = seq, .at = changed.created_at, .payload = std::move(payload)});
  };
  if (agenda.tasks != before.tasks) add(event::TaskUpdated{std::nullopt, agenda.tasks});
  if (agenda.plan != before.plan) add(event::PlanUpdated{std::nullopt, agenda.plan});
  changed.final_agent_state = std::move(place->state);
  if (auto saved = parts_.store.SaveInteraction(changed); !saved) return Fail(saved.error());
  return std::move(changed.final_agent_state->agenda);
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
auto Engine::Impl::WhileIdle(const ChatId& chat, bool wait, Function when_idle) -> decltype(when_idle()) {
  for (;;) {
    auto occupied = Occupy(chat);
    if (occupied) break;
    if (!wait || occupied.error().reason != "busy") return Fail(occupied.error());
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return stopping_ || !active_.contains(chat); });
  }
  auto result = when_idle();
  Release(chat);
  return result;
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

Result<void> Engine::Impl::Delete(const ChatId& chat) {
  for (InteractionStore* fallback : parts_.fallback_stores) {
    auto deleted = fallback->DeleteChat(chat);
    if (!deleted && !IsNotFound(deleted.error())) return deleted;
  }
  auto deleted = parts_.store.DeleteChat(chat);
  if (!deleted) return deleted;
  const std::lock_guard lock(mutex_);
  std::erase_if(rescued_, [&](const auto& each) { return each.first.first == chat; });
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
  for (const auto& run : ActiveRuns()) run->RequestStop("server_stopping");
  for (const auto& paced : TakePaced()) paced->Finish();
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return unfinished_ == 0; });
}

// --- the public face -------------------------------------------------------------------------------------------------

Engine::Engine(Parts parts, EngineOptions options) : impl_(std::make_unique<Impl>(std::move(parts), options)) {}
Engine::~Engine() { Stop(); }

Result<EventSubscription> Engine::Start(const ChatId& chat, StartRequest request) {
  return impl_->Launch(chat, std::move(request), [&](StartRequest&) { return impl_->PlaceAtHead(chat); });
}

Result<EventSubscription> Engine::Resume(const ChatId& chat, InteractionId interaction, StartRequest request) {
  return impl_->Launch(chat, std::move(request), [&](StartRequest& again) -> Result<Place> {
    auto ended = impl_->parts_.store.LoadInteraction(chat, interaction);
    if (!ended) return Fail(ended.error());
    if (again.model.empty()) again.model = ended->model;
    again.user_message = ended->user_message;
    return impl_->PlaceToResume(*std::move(ended));
  });
}

Result<Engine::Recovered> Engine::Recover() { return impl_->Recover(); }

Result<EventSubscription> Engine::Edit(const ChatId& chat, InteractionId interaction, StartRequest request) {
  return impl_->Launch(chat, std::move(request), [&](StartRequest& edit) -> Result<Place> {
    const auto edited = impl_->parts_.store.LoadInteraction(chat, interaction);
    if (!edited) return Fail(edited.error());
    if (edit.model.empty()) edit.model = edited->model;
    return impl_->PlaceBeside(*edited);
  });
}

Result<EventSubscription> Engine::Regenerate(const ChatId& chat, InteractionId interaction, StartRequest request) {
  return impl_->Launch(chat, std::move(request), [&](StartRequest& again) -> Result<Place> {
    auto edited = impl_->parts_.store.LoadInteraction(chat, interaction);
    if (!edited) return Fail(edited.error());
    if (edited->user_message.empty()) {
      return Fail(Error{.code = ErrorCode::kConflict,
                        .reason = "no_message",
                        .message = "the interaction has no message that could be sent again"});
    }
    if (again.model.empty()) again.model = edited->model;
    again.user_message = edited->user_message;
    return impl_->PlaceBeside(*edited);
  });
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
  const auto run = impl_->ActiveRun(subscription.chat_id, subscription.interaction_id);
  if (run && !subscription.hold_) subscription.hold_ = run->AddListener();
}

Result<PendingApproval> Engine::AnswerApproval(std::string_view approval_id, ApprovalAnswer answer,
                                               std::optional<InteractionRef> within) {
  const auto pending = impl_->approvals_.Find(approval_id, within);
  if (!pending && within && IsNotFound(pending.error()))
    return Fail(impl_->WhyNotWaiting<ApprovalKind>(approval_id, *within));
  if (!pending) return Fail(pending.error());
  if (answer.arguments_digest && *answer.arguments_digest != pending->request.arguments_digest) {
    return Fail(Error{.code = ErrorCode::kConflict,
                      .reason = "digest_mismatch",
                      .message = "arguments_digest is not the digest of the arguments that wait for approval"});
  }
  if (answer.approved && answer.arguments) {
    const auto tools = impl_->parts_.tools.Current();
    const Tool* tool = tools->Find(pending->request.tool_name);
    if (tool == nullptr) return Fail(ErrorCode::kNotFound, "the tool is not there any more");
    if (auto valid = tools->Validate(*tool, *answer.arguments); !valid) return Fail(valid.error());
  }
  return impl_->approvals_.Give(approval_id, std::move(answer), within);
}

std::vector<PendingApproval> Engine::PendingApprovals() const { return impl_->approvals_.Waiting(); }

Result<PendingInput> Engine::AnswerInput(std::string_view request_id, InputAnswer answer,
                                         std::optional<InteractionRef> within) {
  const auto pending = impl_->inputs_.Find(request_id, within);
  if (!pending && within && IsNotFound(pending.error())) {
    return Fail(impl_->WhyNotWaiting<InputKind>(request_id, *within));
  }
  if (!pending) return Fail(pending.error());
  if (pending->request.schema && answer.response && !IsJsonObject(*answer.response)) {
    return Fail(Error{.code = ErrorCode::kInvalidArgument,
                      .reason = "invalid_member",
                      .message = "\"response\" must be a JSON object, as the question's schema says"});
  }
  return impl_->inputs_.Give(request_id, std::move(answer), within);
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
    if (all.summary.title.empty()) all.summary.title = TitleFromMessage(all.interactions.back().user_message);
  }
  const auto branch = BranchOf(all.interactions, all.damaged, leaf);
  History history{.summary = std::move(all.summary), .entries = {}, .damaged = std::move(all.damaged)};
  for (Interaction& interaction : all.interactions) {
    const bool superseded = !branch.contains(interaction.id);
    if (all_branches || !superseded) history.entries.push_back({std::move(interaction), superseded});
  }
  return history;
}

Result<std::vector<ChatListEntry>> Engine::ListChats() {
  auto summaries = impl_->parts_.store.ListChats();
  if (!summaries) return Fail(summaries.error());
  std::vector<ChatListEntry> entries;
  entries.reserve(summaries->size());
  for (ChatSummary& summary : *summaries) {
    const auto run = impl_->ActiveRun(summary.id);
    std::optional<InteractionStatus> status = summary.head_status;
    if (run) {
      status = run->status();
      if (summary.title.empty()) summary.title = TitleFromMessage(run->Snapshot().user_message);
    }
    entries.push_back({std::move(summary), status});
  }
  return entries;
}

Result<ChatSummary> Engine::CreateChat(const ChatId& chat, const std::string& title) {
  return impl_->WhileIdle(chat, /*wait=*/false, [&] { return impl_->parts_.store.CreateChat(chat, title); });
}

Result<ChatSummary> Engine::RenameChat(const ChatId& chat, const std::string& title) {
  return impl_->parts_.store.RenameChat(chat, title);
}

Result<void> Engine::DeleteChat(const ChatId& chat) {
  if (const auto run = impl_->ActiveRun(chat)) run->RequestStop("chat_deleted");
  return impl_->WhileIdle(chat, /*wait=*/true, [&] { return impl_->Delete(chat); });
}

Result<Agenda> Engine::GetAgenda(const ChatId& chat) {
  if (const auto run = impl_->ActiveRun(chat)) return run->agenda();
  if (auto summary = impl_->parts_.store.LoadSummary(chat); !summary) return Fail(summary.error());
  return impl_->PlaceAtHead(chat).map([](const Place& head) { return head.state.agenda; });
}

Result<Agenda> Engine::ChangeAgenda(const ChatId& chat, AgendaChange change) {
  return impl_->WhileIdle(chat, /*wait=*/false, [&] { return impl_->ChangeAgenda(chat, std::move(change)); });
}

Result<ChatSummary> Engine::MoveHead(const ChatId& chat, InteractionId interaction) {
  return impl_->WhileIdle(chat, /*wait=*/false, [&] { return impl_->parts_.store.MoveHead(chat, interaction); });
}

Result<ChatSummary> Engine::Undo(const ChatId& chat) {
  return impl_->WhileIdle(chat, /*wait=*/false, [&]() -> Result<ChatSummary> {
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
  auto copy = impl_->WhileIdle(chat, /*wait=*/false,
                               [&] { return impl_->parts_.store.ForkChat(source, interaction, chat, title); });
  if (copy) return ChatListEntry{*copy, copy->head_status};
  if (copy.error().reason != "busy") return Fail(std::move(copy.error()));
  return Fail(
      Error{.code = ErrorCode::kConflict, .reason = "chat_exists", .message = "there is a chat of this name already"});
}

const ModelDirectory& Engine::models() const { return impl_->parts_.models; }
const ToolRegistry& Engine::tools() const { return impl_->parts_.tools; }
const EngineOptions& Engine::options() const { return impl_->options_; }
const AuditLog* Engine::audit() const { return impl_->parts_.audit; }

Engine::Counters Engine::counters() const {
  const std::size_t waiting = impl_->approvals_.waiting_count();
  const std::lock_guard lock(impl_->mutex_);
  Counters counters = impl_->counters_;
  counters.active_runs = impl_->active_.size();
  counters.waiting_approvals = waiting;
  return counters;
}

void Engine::Stop() { impl_->Stop(); }

}  // namespace reprise
