#include "engine/turns.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <new>
#include <system_error>
#include <variant>

#include "agent/told.h"
#include "approval/decision.h"
#include "base/logging.h"
#include "base/system.h"
#include "base/try.h"
#include "engine/chat_settings.h"
#include "engine/recall.h"

namespace reprise {
namespace {

constexpr std::size_t kAtOnce = 20;  // abandoned runs per claim

Error NoMemory() { return Refused(Reason::kOverloaded, "the system has no memory left for this interaction"); }

Error NotStarted() {
  return MakeError(ErrorCode::kInternal, "the run could not be started; the server's log says more");
}

// The error for a client whose interaction could not be saved in its place.
Error NotSaved(Error error) {
  if (error.code == ErrorCode::kStorageFull || error.Is(Reason::kSaveTimeout)) return error;
  error.reason = NameOf(Reason::kSaveFailed);
  error.message = "the interaction could not be saved in its chat's folder";
  return error;
}

// The answer to this question before the process ended; null if none.
template <typename Answer>
const Answer* GivenTo(const InterruptedRun& run, const std::string& id) {
  const auto given = run.answers.find(id);
  return given == run.answers.end() ? nullptr : std::get_if<Answer>(&given->second);
}

bool IsNamed(const StartRequest& request) { return request.request && !request.request->is_unnamed(); }

// Whether the chat's folder cannot be opened.
bool IsOfFolder(const Error& error) {
  constexpr Reason kReasons[] = {Reason::kNoSuchWorkspace, Reason::kWorkspaceNotAllowed, Reason::kUntrusted,
                                 Reason::kInvalidConfig};
  return std::ranges::any_of(kReasons, [&](Reason reason) { return error.Is(reason); });
}

}  // namespace

// --- starting --------------------------------------------------------------------------------------------------------

Result<EventSubscription> Turns::Start(const ChatId& chat, const StartPoint& from, StartRequest request) {
  TRY(start_points_.Check(chat, from, request));
  if (request.approval_mode) TRY(services_.CheckMode(request.approval_mode, *TRY(services_.WorkspaceOf(chat))));
  if (auto occupied = busy_.Occupy(chat); !occupied) {
    const bool waits = request.if_running != IfRunning::kReject && occupied.error().Is(Reason::kBusy);
    return waits ? Wait(chat, from, std::move(request)) : Fail(occupied.error());
  }
  bool is_made = false;
  const std::shared_ptr<void> release(nullptr, [&](void*) {  // also when it throws
    if (!is_made) busy_.Release(chat);
  });
  auto made = Make(chat, from, request, {});
  const bool is_taken = !made && (made.error().Is(Reason::kBusy) || made.error().Is(Reason::kNotNext));
  if (is_taken && request.if_running != IfRunning::kReject) {
    busy_.Release(chat);  // another process has its run or its next message
    is_made = true;
    return Wait(chat, from, std::move(request));
  }
  if (!made) return Fail(std::move(made.error()));
  is_made = true;
  const std::shared_ptr<Run>& run = *made;
  EventSubscription subscription(chat, run->id(), run->log(), run->AddListener());
  busy_.Put(run);
  Execute(run);
  return subscription;
}

// Another process may have moved the head or the chat since it was read, or have made a chat that is unknown here.
Result<std::shared_ptr<Run>> Turns::Make(const ChatId& chat, const StartPoint& from, const StartRequest& request,
                                         const Waited& waited) {
  for (auto which = StartPoints::Head::kKnown;; which = StartPoints::Head::kNow) {
    auto beginning = start_points_.Load(chat, from, request, which);
    const bool is_assumed =
        which == StartPoints::Head::kKnown && (beginning ? beginning->makes_chat : !from.interaction);
    auto made = MakeFrom(std::move(beginning), chat, from, request, waited);
    if (made || made.error().code == ErrorCode::kUnavailable) return made;
    const bool may_have_moved = which == StartPoints::Head::kKnown && IsOfFolder(made.error());
    if (!made.error().Is(Reason::kHeadMoved) && !is_assumed && !may_have_moved) {
      if (!IsNotFound(made.error())) return made;
      const auto running = TRY(services_.parts.runs.HeldElsewhere(chat));  // nothing of that run is stored
      const bool is_meant = from.interaction ? running == from.interaction : running.has_value();
      if (is_meant) return Fail(Busy(running));
      return made;
    }
    services_.usage_limits.Forget(chat);  // it has used more than is counted here
  }
}

// Of a request that is sent again, and has begun since its sender looked.
Result<void> Turns::RefuseBegun(const ChatId& chat, const StartRequest& request) {
  if (!IsNamed(request) || !TRY(repeated_.Find(chat, *request.request))) return {};
  return Fail(Reason::kRequestBegun, "this request has just begun");
}

// All that may fail happens here, in this order: load the beginning; then reserve the number, claim the chat and begin
// the journal in one step. After that the run exists.
Result<std::shared_ptr<Run>> Turns::MakeFrom(Result<Beginning> beginning, const ChatId& chat, const StartPoint& from,
                                             const StartRequest& request, const Waited& waited) {
  if (!beginning) return Fail(beginning.error());
  if (!waited.log) {
    // The head is read before the search. If another server begins the request after the search, the head has moved,
    // and Begin fails.
    if (IsNamed(request) && !beginning->expected_head) beginning->expected_head = HeadOf(chat);
    TRY(RefuseBegun(chat, request));
  }
  auto workspace = TRY(services_.WorkspaceAt(beginning->workspace()));
  const auto text_rules = services_.TextRulesOf(*workspace);
  for (const std::string* text :
       {&beginning->user_message, &beginning->attached.text, &beginning->attached.documents}) {
    TRY(text_rules->guardrails.Admit(*text));
  }
  const auto model = TRY(services_.ModelsOf(*workspace).Resolve(beginning->model));
  TRY(CheckResources(waited.log != nullptr));
  auto guards = TRY(GuardsFor(chat, model.full_name, {}, services_.OptionsOf(*workspace)));

  Interaction interaction{.id = InteractionId::FromNumber(1), .chat_id = chat};  // Begin sets its number
  interaction.parent_id = beginning->parent;
  interaction.edited_from = beginning->edited_from;
  interaction.user_message = std::move(beginning->user_message);
  interaction.attachments = std::move(beginning->attached.files);
  interaction.model = model.full_name;
  interaction.created_at = Now();
  interaction.workspace = workspace->path;
  std::optional<InteractionId> files_from;
  std::optional<WorkspaceMoves::Plan> plan;
  // A run that follows the head knows the head, and does not begin if it has moved. A new chat has none.
  const bool asks = !beginning->expected_head && !beginning->makes_chat && workspace_.is_on();
  const auto head = asks ? HeadOf(chat) : beginning->expected_head.value_or(std::nullopt);
  if (request.files.restore) {
    plan = TRY(workspace_.Prepare(chat, head, beginning->parent, request.files));
  } else if (workspace_.is_on() && !beginning->makes_chat) {
    files_from = workspace_.StandsAt(chat, head, beginning->expected_version);
    if (files_from == beginning->parent) files_from.reset();
  }
  const bool only_compact = from.kind == StartPoint::Kind::kCompact;
  EndedJobs ended_jobs;
  if (!beginning->interrupted && !only_compact) {
    ended_jobs = TakeEndedJobs(*services_.jobs.Of(chat), beginning->state.jobs);
    beginning->state.messages.push_back(
        {.role = Role::kUser,
         .content = interaction.user_message + beginning->attached.text + ended_jobs.note,
         .parts = beginning->attached.parts});
  }
  RunJournal journal(beginning->state, {.first_message = beginning->state.messages.size(),
                                        .resumed_from = beginning->resumed_from,
                                        .request = request.request,
                                        .files_from = files_from,
                                        .names_model = !beginning->model.empty(),
                                        .effort = beginning->chat ? beginning->chat->effort : Effort::kDefault});
  Span span = BeginSpan(request.trace_parent);
  span.Link(beginning->resumed_span);
  journal.AddBegin(interaction, request.on_disconnect, waited.queued ? waited.queued->id : "", beginning->attached,
                   FormatTraceparent(span.context()), request.approval_mode);
  // A queued message leaves the queue, so from then on only the journal holds it.
  const auto reach = waited.queued ? Journal::Reach::kPowerLoss : Journal::Reach::kProcess;
  std::unique_ptr<RunHold> hold;
  const auto begin = [&]() -> Result<void> {
    hold = TRY(services_.parts.runs.Begin({.chat = chat,
                                           .expected_head = beginning->expected_head,
                                           .expected_version = beginning->expected_version,
                                           .makes_chat = beginning->makes_chat,
                                           .record = journal.TakeFirst(),
                                           .reach = reach,
                                           .queued = waited.queued,
                                           .in_line = request.if_running == IfRunning::kQueue}));
    return {};
  };
  const WorkspaceMoves::Then then{.stands = true, .at = beginning->parent, .while_at = head};
  if (auto begun = plan ? workspace_.Restore(chat, *plan, then, begin) : begin(); !begun) {
    span.Fail(begun.error().reason);
    return Fail(std::move(begun.error()));
  }
  interaction.id = hold->id();
  journal.KeepIn(std::move(hold));
  if (beginning->makes_chat) services_.changes.Add(ChatChange::Kind::kChatCreated, chat);
  return NewRun({.interaction = std::move(interaction),
                 .state = std::move(beginning->state),
                 .model = model,
                 .on_disconnect = request.on_disconnect,
                 .approval_mode = request.approval_mode,
                 .journal = std::move(journal),
                 .guards = std::move(guards),
                 .span = std::move(span),
                 .interrupted = std::move(beginning->interrupted),
                 .ended_jobs = std::move(ended_jobs.events),
                 .compact = request.compact || only_compact,
                 .only_compact = only_compact,
                 .chat_version = beginning->expected_version,
                 .log = waited.log},
                beginning->chat, std::move(workspace), request.instructions);
}

std::optional<InteractionId> Turns::HeadOf(const ChatId& chat) const {
  const auto summary = services_.parts.store.LoadSummary(chat);
  return summary ? summary->head : std::nullopt;
}

std::shared_ptr<Run> Turns::NewRun(Run::Plan plan, const std::optional<ChatSummary>& chats,
                                   std::shared_ptr<const WorkspaceParts> workspace, const std::string& instructions) {
  plan.prompt = PromptFor(*workspace, plan.interaction.chat_id);
  if (chats) plan.effort = chats->effort;
  // The client's come last, because they are for this run alone.
  const std::string own = chats ? chats->instructions : std::string();
  plan.prompt.instructions = own + (own.empty() || instructions.empty() ? "" : "\n\n") + instructions;
  const EngineOptions& options = services_.OptionsOf(*workspace);
  const auto mode = [this, of_run = plan.approval_mode, of_folder = options.approval_mode](const ChatId& chat) {
    return services_.ModeOf(chat, of_run, of_folder);
  };
  const auto recall = [this, chat = plan.interaction.chat_id, last = plan.interaction.parent_id,
                       path = workspace->path](const std::string& query, bool everywhere, const std::stop_token& stop) {
    return Recall(services_, {chat, last, path, query, everywhere}, stop);
  };
  struct Held {
    std::shared_ptr<const WorkspaceParts> workspace;
    std::shared_ptr<const EngineServices::TextRules> rules;
  };
  const auto held = std::make_shared<Held>(Held{workspace, services_.TextRulesOf(*workspace)});
  return std::make_shared<Run>(
      std::move(plan),
      Run::Services{{held, held->workspace.get()},
                    services_.approvals,
                    services_.inputs,
                    services_.parts.grants,
                    services_.timer,
                    options,
                    services_.ModelsOf(*workspace),
                    {services_.parts.audit, workspace->hooks, held->rules->redactor, held->rules->guardrails},
                    services_.parts.files,
                    services_.parts.documents,
                    &services_.jobs,
                    &services_.editors,
                    services_.parts.questions,
                    mode,
                    [this](const ChatId& chat, ApprovalMode chosen) -> Result<void> {
                      TRY(ChangeSettings(services_, chat, {.approval_mode = chosen}));
                      return {};
                    },
                    recall,
                    [this](std::function<void()> job) { services_.pool.Submit(std::move(job)); },
                    [this](const InteractionRef& run) {
                      return services_.parts.runs.IsFollowedElsewhere(run).value_or(true);  // asked again later
                    },
                    services_.parts.added_rules});
}

// A run that waits for a thread shows nothing, so it is refused. If others take the thread in between, the run waits.
Result<void> Turns::CheckResources(bool has_thread) {
  if (!MemoryReserve::HasRoom()) return Fail(NoMemory());
  try {
    services_.control.StartFirstThread();
    services_.pool.StartFirstThread();
  } catch (const std::system_error& error) {
    return Fail(NoThreads(error.what()));
  }
  if (!has_thread && !services_.pool.HasThreadToSpare()) return Fail(NoThreads("all threads work or wait"));
  return {};
}

Result<AgentGuards> Turns::GuardsFor(const ChatId& chat, const std::string& model, const TokenUsage& used_before,
                                     const EngineOptions& options) {
  auto over_budget = TRY(services_.usage_limits.ForRun(chat, model, used_before, options.budget));
  AgentGuards guards{.over_budget = std::move(over_budget)};
  const int max_calls = options.max_tool_calls_per_minute;
  if (max_calls == 0) return guards;
  guards.refuse_call = [this, chat, max_calls]() -> std::optional<std::string> {
    const auto wait = services_.call_rate.Take(chat, max_calls);
    if (!wait) return std::nullopt;
    return "Not run: there may be " + std::to_string(max_calls) + " tool calls in a minute. Wait " +
           std::to_string(wait->count()) +
           " seconds before the next one; go on with what you have, or answer and say what is missing.";
  };
  return guards;
}

// --- ending ----------------------------------------------------------------------------------------------------------

void Turns::Execute(const std::shared_ptr<Run>& run) {
  // The agent's work, and whatever it waits for, keep the run alive.
  const auto executor = [this, weak = std::weak_ptr(run)](std::function<void()> job) {
    services_.pool.Submit([run = weak.lock(), job = std::move(job)] { job(); });
  };
  const auto ended = [this, run] {
    if (run->is_left()) {  // its chat stays occupied while this process lives
      run->hold()->GiveBack();
      run->Leave();
      return busy_.WorkEnded();
    }
    if (Guarded("the saving of a run", [&] { Save(run); })) return;
    // Its journal stays for the next start.
    LogError("an interaction could not be saved", {{"chat", run->chat_id().str()}, {"interaction", run->id().str()}});
    run->hold()->SetAside();
    Complete(run, InteractionStatus::kFailed);
  };
  // The agent itself does not throw, so an exception comes from before it.
  bool lacks_memory = false;
  const auto start = [&] {
    try {
      run->Start(executor, ended);
    } catch (const std::bad_alloc&) {
      lacks_memory = true;
      throw;
    }
  };
  if (Guarded("the start of a run", start)) return;
  run->FailToStart(lacks_memory ? NoMemory() : NotStarted());
  ended();
}

void Turns::Save(const std::shared_ptr<Run>& run) {
  auto finished = std::make_shared<Interaction>(run->TakeFinished());
  services_.usage_limits.Add(*finished);
  services_.saver.Save(run->hold(), finished, [this, run, finished](const Result<void>& saved) {
    if (saved && run->chat_version()) workspace_.RunEnded(run->chat_id(), *run->chat_version() + 1);
    if (saved) saved_(*finished);
    if (saved) return Complete(run, finished->status);
    saved.error().Is(Reason::kFenced) ? Abandon(run) : Rescue(run, *finished, saved.error());
  });
}

void Turns::Abandon(const std::shared_ptr<Run>& run) {
  LogWarning("another server has taken up a run of this one",
             {{"chat", run->chat_id().str()}, {"interaction", run->id().str()}});
  run->CutOff();
  busy_.Release(run->chat_id());
  busy_.WorkEnded();
}

void Turns::Rescue(const std::shared_ptr<Run>& run, Interaction finished, const Error& error) {
  LogError("a checkpoint could not be saved", {{"chat", run->chat_id().str()},
                                               {"interaction", run->id().str()},
                                               {"code", error.reason},
                                               {"detail", error.detail}});
  if (!error.Is(Reason::kDatabaseUnavailable)) run->hold()->SetAside();  // otherwise others take it up
  run->FailToSave(finished, NotSaved(error));
  interactions_.Rescue(finished);
  const auto rescued = std::make_shared<Interaction>(std::move(finished));
  services_.saver.SaveToFallback(rescued, [this, run](const Result<void>& saved) {
    if (!saved) {
      LogError("no fallback could take the checkpoint",
               {{"chat", run->chat_id().str()}, {"interaction", run->id().str()}, {"detail", saved.error().detail}});
    }
    Complete(run, InteractionStatus::kFailed);
  });
}

void Turns::Complete(const std::shared_ptr<Run>& run, InteractionStatus status) {
  const auto close = [this, run, status] {
    if (run->end_is_heard()) run->TellEnd(status);
    // A client that sees interaction_complete may start the next run at once, so the chat is free before that.
    busy_.Release(run->chat_id());
    busy_.Count(status);
    services_.changes.Add(ChatChange::Kind::kInteractionEnded, run->chat_id(), run->id());
    // Who cancels a run knows of its end.
    const bool by_itself = status != InteractionStatus::kCancelled && !run->is_watched();
    if (by_itself && services_.parts.attention) services_.parts.attention({.chat = run->chat_id()});
    run->Complete();
    busy_.WorkEnded();
  };
  // This thread may be one that must not wait for hooks.
  run->end_is_heard() ? services_.pool.Submit(close) : close();
}

// --- waiting messages ------------------------------------------------------------------------------------------------

Result<EventSubscription> Turns::Wait(const ChatId& chat, const StartPoint& from, StartRequest request) {
  TRY(RefuseBegun(chat, request));
  const auto workspace = TRY(services_.WorkspaceOf(chat));
  TRY(services_.ModelsOf(*workspace).Resolve(request.model));
  TRY(services_.TextRulesOf(*workspace)->guardrails.Admit(request.user_message));
  const bool cancel = request.if_running == IfRunning::kCancel;
  QueuedMessage message{.id = "queued_" + RandomHex(16),
                        .user_message = request.user_message,
                        .model = request.model,
                        .on_disconnect = request.on_disconnect,
                        .created_at = Now(),
                        .request = request.request,
                        .approval_mode = request.approval_mode};
  QueuedRun::MakeRun make;
  if (cancel) {
    make = [this, request, from](QueuedRun& run) { return Make(run.chat_id, from, request, {.log = run.log}); };
  }
  const auto waiting = std::make_shared<QueuedRun>(chat, std::move(message), std::move(make));
  waiting->trace_parent = request.trace_parent;
  waiting->ClientCame();
  TRY(cancel ? Interrupt(waiting) : services_.queues.Add(waiting));
  EventSubscription subscription(chat, std::nullopt, waiting->log,
                                 std::shared_ptr<void>(nullptr, [this, waiting](void*) { ClientLeft(waiting); }));
  subscription.waiting = waiting;
  StartNext(chat);  // the run may have ended meanwhile
  return subscription;
}

// Puts it before all waiting messages, and stops the run.
Result<void> Turns::Interrupt(const std::shared_ptr<QueuedRun>& waiting) {
  std::shared_ptr<Run> running;
  TRY(busy_.LookAt(waiting->chat_id, [&](const std::shared_ptr<Run>& run) {
    running = run;
    services_.queues.AddFirst(waiting);
  }));
  if (running) return running->RequestStop("replaced"), Result<void>();
  const auto stop = [&]() -> Result<void> {
    const auto elsewhere = TRY(services_.parts.runs.HeldElsewhere(waiting->chat_id));
    if (elsewhere) static_cast<void>(TRY(services_.parts.runs.RequestStop({waiting->chat_id, *elsewhere}, "replaced")));
    return {};
  };
  auto stopped = stop();
  if (!stopped) services_.queues.Erase(*waiting);  // the error tells its client that it will not begin
  return stopped;
}

void Turns::ClientLeft(const std::shared_ptr<QueuedRun>& waiting) {
  if (waiting->ClientLeft().waits) GiveUp(waiting);
}

void Turns::GiveUp(const std::shared_ptr<QueuedRun>& waiting) {
  if (services_.queues.message(*waiting).on_disconnect == OnDisconnect::kContinue) return;
  if (!services_.queues.Erase(*waiting) || !waiting->durable()) return;
  // Not on this thread, which serves connections.
  services_.pool.Submit([this, waiting] {
    if (auto removed = services_.queues.RemoveErased(*waiting); !removed) {
      LogError(
          "a message whose client has gone could not be taken from the queue",
          {{"chat", waiting->chat_id.str()}, {"code", removed.error().reason}, {"detail", removed.error().detail}});
    }
  });
}

void Turns::StartNext(const ChatId& chat) {
  if (busy_.OccupyForNext(chat)) LaunchNext(chat);
}

void Turns::LaunchNext(const ChatId& chat) {
  services_.pool.Submit([this, chat] {
    const auto waiting = services_.queues.TakeNext(chat);
    std::shared_ptr<Run> run;
    if (waiting && !Guarded("the making of a run", [&] { run = MakeQueued(waiting); }))
      CannotBegin(*waiting, NotStarted());
    if (run) {
      auto hold = waiting->had_client() ? waiting->Began(run->id(), run->AddListener()) : nullptr;
      busy_.Put(run);
      services_.queues.Begun(*waiting);  // not earlier: its request, sent again, must be found
      waiting->log->Publish();           // not earlier, because a client that sees it may ask for the run or cancel it
      hold = nullptr;                    // its client has gone
      Execute(run);
    } else {
      busy_.Release(chat);
    }
    busy_.WorkEnded();
  });
}

void Turns::TryAgain(const std::shared_ptr<QueuedRun>& waiting) {
  constexpr std::chrono::seconds kUntilNextTry{1};
  services_.queues.Pause(*waiting);
  if (waiting->has_left()) GiveUp(waiting);
  services_.timer.After(
      kUntilNextTry, [this, chat = waiting->chat_id] { services_.pool.Submit([this, chat] { LookAtQueue(chat); }); });
}

void Turns::LookAtQueue(const ChatId& chat) {
  if (busy_.is_stopping()) return;
  if (const auto read = services_.queues.Refresh(chat); !read) {
    LogWarning("a queue could not be read", {{"chat", chat.str()}, {"detail", read.error().detail}});
  }
  services_.queues.GoOn(chat);
  StartNext(chat);
}

// Null if it could not begin: its client knows why, or it stays in the queue.
std::shared_ptr<Run> Turns::MakeQueued(const std::shared_ptr<QueuedRun>& waiting) {
  if (busy_.is_draining()) {
    services_.queues.PutBack(*waiting);
    if (waiting->has_left()) GiveUp(waiting);
    return nullptr;
  }
  const auto make = [&]() -> Result<std::shared_ptr<Run>> {
    if (waiting->make) return waiting->make(*waiting);
    const QueuedMessage message = services_.queues.message(*waiting);
    return Make(waiting->chat_id, {},
                {.user_message = message.user_message,
                 .model = message.model,
                 .approval_mode = message.approval_mode,
                 .on_disconnect = message.on_disconnect,
                 .request = message.request,
                 .trace_parent = waiting->trace_parent},
                {.queued = services_.queues.reference(*waiting), .log = waiting->log});
  };
  auto run = make();
  if (run) return *std::move(run);
  const Error& why = run.error();
  const bool is_kept = why.Is(Reason::kDatabaseUnavailable) && waiting->durable();
  if (why.Is(Reason::kBusy) || why.Is(Reason::kNotNext) || is_kept) return TryAgain(waiting), nullptr;
  if (why.Is(Reason::kDequeued)) return services_.queues.Gone(*waiting), nullptr;
  LogWarning("a waiting message could not begin",
             {{"chat", waiting->chat_id.str()}, {"code", why.reason}, {"detail", why.detail}});
  CannotBegin(*waiting, why);
  return nullptr;
}

void Turns::CannotBegin(QueuedRun& waiting, const Error& why) {
  if (waiting.End(why) || !waiting.durable()) return services_.queues.Drop(waiting);
  services_.queues.Stuck(waiting, why);
}

// --- after a crash ---------------------------------------------------------------------------------------------------

Result<Engine::Recovered> Turns::Recover() {
  Engine::Recovered recovered;
  for (;;) {
    auto abandoned = TRY(services_.parts.runs.ClaimAbandoned(kAtOnce));
    if (abandoned.empty()) break;
    for (AbandonedRun& run : abandoned) TakeUp(std::move(run), recovered);
  }
  // In the background, because it looks at the folder of every chat.
  services_.pool.Submit([this] {
    const auto chats = services_.queues.RefreshAll();
    if (!chats) return LogError("the queues could not be listed", {{"detail", chats.error().detail}});
    for (const ChatId& chat : *chats) StartNext(chat);
  });
  return recovered;
}

void Turns::TakeUpAbandoned() {
  auto abandoned = services_.parts.runs.ClaimAbandoned(kAtOnce);
  if (!abandoned) return LogWarning("abandoned runs could not be claimed", {{"detail", abandoned.error().detail}});
  Engine::Recovered recovered;
  for (AbandonedRun& run : *abandoned) {
    const InteractionRef ref = run.ref;
    // This process's run in the chat is obsolete.
    if (const auto occupied = busy_.OccupyWhenStopped(ref.chat_id, "taken_over"); !occupied) {
      run.hold->GiveBack();
      continue;
    }
    LogInfo("a run of another server is taken up",
            {{"chat", ref.chat_id.str()}, {"interaction", ref.interaction_id.str()}});
    const auto waiting = recovered.waiting;
    TakeUp(std::move(run), recovered);
    if (recovered.waiting == waiting) busy_.Release(ref.chat_id);
  }
  const auto chats = services_.queues.RefreshAll();
  if (!chats) return LogWarning("the queues could not be listed", {{"detail", chats.error().detail}});
  for (const ChatId& chat : *chats) {
    services_.queues.GoOn(chat);
    StartNext(chat);
  }
}

void Turns::TakeUp(AbandonedRun run, Engine::Recovered& recovered) {
  const std::shared_ptr<RunHold> hold = std::move(run.hold);
  const auto outcome = RecoverOne(run.ref, hold, run.is_last);
  if (!outcome) {
    ++recovered.left;
    LogError("an interrupted interaction could not be recovered; its journal is left as it is",
             {{"chat", run.ref.chat_id.str()},
              {"interaction", run.ref.interaction_id.str()},
              {"code", outcome.error().reason},
              {"detail", outcome.error().message}});
    // An unreachable store is no damage: giving up the hold lets the next claimant take the run up.
    if (!outcome.error().Is(Reason::kDatabaseUnavailable)) {
      hold->SetAside();
      services_.damaged.Note(run.ref.chat_id, true);
    }
  } else if (*outcome == RecoveredAs::kWaiting) {
    ++recovered.waiting;
  } else if (*outcome == RecoveredAs::kFailed) {
    ++recovered.failed;
  }
}

// A run that was left at an earlier start must not take the head from later interactions.
Result<void> Turns::SaveInterrupted(RunHold& hold, const Interaction& ended) {
  const auto before = services_.parts.store.LoadSummary(ended.chat_id);
  if (auto saved = hold.Finish(ended); !saved) return saved;
  if (!before || !before->head || *before->head < ended.id) return {};
  return services_.parts.store.MoveHead(ended.chat_id, *before->head).map([](const ChatSummary&) {});
}

Result<Turns::RecoveredAs> Turns::RecoverOne(const InteractionRef& ref, const std::shared_ptr<RunHold>& hold,
                                             bool may_wait) {
  const auto drop = [&] { return hold->Discard().map([] { return RecoveredAs::kNothing; }); };
  // The process was killed between the checkpoint and the end of its journal. Saving again makes the checkpoint durable
  // before the journal is dropped.
  const auto saved = services_.parts.store.LoadInteraction(ref.chat_id, ref.interaction_id);
  if (saved) {
    TRY(hold->Finish(*saved));
    saved_(*saved);
    return RecoveredAs::kNothing;
  }
  // An unreadable checkpoint also means that the run has ended, so its questions must not be asked again.
  if (!IsNotFound(saved.error())) return Fail(saved.error());
  if (interactions_.IsRescued(ref)) return RecoveredAs::kNothing;
  const auto content = hold->ReadJournal();
  if (!content && IsNotFound(content.error())) return drop();
  if (!content) return Fail(content.error());
  if (content->cut_off) {
    LogWarning(
        "the end of a journal did not reach the disk, and is left out",
        {{"chat", ref.chat_id.str()}, {"interaction", ref.interaction_id.str()}, {"records", content->records.size()}});
  }
  auto run = TRY(ReadRun(ref, *content));
  if (!run) return drop();  // no client has seen any of it
  if (const std::string& queued = run->queue_id; !queued.empty()) {
    if (auto taken = services_.parts.store.queues().TakeQueued(ref.chat_id, queued); !taken) {
      LogError("a message that has begun could not be taken from the queue",
               {{"chat", ref.chat_id.str()}, {"code", taken.error().reason}, {"detail", taken.error().detail}});
    }
  }
  AgentState state;
  const auto& resumed_from = run->record.resumed_from;
  const auto before = resumed_from ? resumed_from->interaction : run->interaction.parent_id;
  if (before) {
    auto stored = TRY(services_.parts.store.LoadInteraction(ref.chat_id, *before));
    state = std::move(stored.final_agent_state).value_or(AgentState{});
  }
  RestoreState(*run, state);
  const auto workspace = services_.WorkspaceAt(run->interaction.workspace);
  if (!workspace) {
    LogWarning("an interrupted interaction cannot go on: " + workspace.error().message,
               {{"chat", ref.chat_id.str()}, {"interaction", ref.interaction_id.str()}});
  }
  const auto tools = (workspace ? *workspace : services_.home)->tools.Current();
  if (auto questions = FindOpenQuestions(*run, state, *tools); questions && may_wait && workspace) {
    if (const auto model = services_.ModelsOf(**workspace).Resolve(run->interaction.model)) {
      return AskAgain(hold, *std::move(run), std::move(state), *model, *workspace, *std::move(questions), *content)
          .map([] { return RecoveredAs::kWaiting; });
    }
  }
  const Interaction ended = EndInterrupted(*std::move(run), std::move(state));
  TRY(SaveInterrupted(*hold, ended));
  saved_(ended);
  return RecoveredAs::kFailed;
}

// Open questions are open again, under their ids, and the run goes on when they are answered. If an answer came just
// before the process ended, it goes on at once.
Result<void> Turns::AskAgain(const std::shared_ptr<RunHold>& hold, InterruptedRun interrupted, AgentState state,
                             const ModelDirectory::Resolved& model, std::shared_ptr<const WorkspaceParts> workspace,
                             OpenQuestions questions, const JournalContent& content) {
  const ChatId chat = interrupted.interaction.chat_id;
  auto guards = TRY(GuardsFor(chat, model.full_name, interrupted.interaction.usage, services_.OptionsOf(*workspace)));
  auto settings = services_.parts.store.LoadSummary(chat);
  if (!settings && !IsNotFound(settings.error())) return Fail(std::move(settings.error()));
  if (auto goes_on = hold->GoOn(content.records); !goes_on) return goes_on;
  const InteractionId id = interrupted.interaction.id;
  const auto tools = workspace->tools.Current();
  for (const auto& approval : questions.approvals) {
    const auto reopened = services_.approvals.Reopen({chat, id, approval});
    const auto* given = GivenTo<ApprovalAnswer>(interrupted, approval.approval_id);
    const bool is_outdated = (given != nullptr && given->outside_sandbox) ||  // as in FindOpenQuestions
                             (IsOutdated(approval, *tools) && (given == nullptr || given->approved));
    if (is_outdated || given != nullptr) {
      static_cast<void>(services_.approvals.Give(reopened, is_outdated ? kSuperseded : *given));
    }
  }
  std::optional<std::string> request_id;
  if (questions.input) {
    const auto reopened = services_.inputs.Reopen({chat, id, *questions.input});
    request_id = questions.input->request_id;
    if (const auto* given = GivenTo<InputAnswer>(interrupted, *request_id)) {
      static_cast<void>(services_.inputs.Give(reopened, *given));
    }
  }
  RunJournal journal(state, std::move(interrupted.record));
  journal.KeepIn(hold);
  const auto run =
      NewRun({.interaction = std::move(interrupted.interaction),
              .state = std::move(state),
              .model = model,
              .on_disconnect = interrupted.on_disconnect,
              .approval_mode = interrupted.approval_mode,
              .journal = std::move(journal),
              .guards = std::move(guards),
              .span = BeginSpan(interrupted.span),
              .interrupted = std::move(questions.where),
              .shown = Run::Plan::Shown{.log = std::move(interrupted.log), .request_id = std::move(request_id)}},
             settings ? std::optional(*settings) : std::nullopt, std::move(workspace));
  busy_.Put(run);
  Execute(run);
  return {};
}

}  // namespace reprise
