#include "engine/chats.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "approval/audit_lines.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/terminal_text.h"
#include "domain/codec.h"
#include "engine/chat_settings.h"
#include "engine/history.h"
#include "engine/recording.h"

namespace reprise {
namespace {

constexpr std::string_view kInTheWay =
    ", and the deleted one comes back under this name only: fork that chat to keep it, delete it, and restore then";

// A busy chat exists.
Error ExistsAlready(Error error, const ChatId& chat, std::string_view more = {}) {
  if (!error.Is(Reason::kBusy) && !error.Is(Reason::kChatExists)) return error;
  return Refused(Reason::kChatExists, "there is a chat " + chat.str() + " already" + std::string(more));
}

// Gives ids to tasks without one.
Result<void> NameTasks(std::vector<Task>& tasks) {
  std::set<std::string> ids;
  for (const Task& task : tasks) {
    if (task.id.empty() || ids.insert(task.id).second) continue;
    return Fail(Reason::kInvalidMember, "two tasks have the id \"" + task.id + "\"");
  }
  for (Task& task : tasks) {
    if (task.id.empty()) task.id = NextTaskId(tasks);
  }
  return {};
}

}  // namespace

// --- reading ---------------------------------------------------------------------------------------------------------

Result<Chats::Whole> Chats::LoadWhole(const ChatId& chat) {
  // Reads the run first, so that a run that ends in between is found in the store as well and shown once.
  auto running = TRY(Running(chat));
  auto stored = services_.parts.store.LoadChat(chat);
  if (!stored && !(running && IsNotFound(stored.error()))) return Fail(stored.error());
  if (stored) services_.damaged.Note(chat, !stored->damaged.empty());
  Chat all = stored ? *std::move(stored) : Chat{ChatSummary{.id = chat}, {}, {}};
  std::optional<InteractionId> leaf = all.summary.head;
  const auto has_it = [&](const Interaction& each) { return running && each.id == running->id; };
  if (running && std::ranges::none_of(all.interactions, has_it)) {
    leaf = running->id;
    FillFromBegun(all.summary, *running);
    all.interactions.push_back(*std::move(running));
  }
  return Whole{std::move(all), leaf};
}

Result<History> Chats::GetHistory(const ChatId& chat, bool all_branches) {
  auto [all, leaf] = TRY(LoadWhole(chat));
  const auto branch = BranchOf(all.interactions, all.damaged, leaf);
  History history{.summary = std::move(all.summary), .entries = {}, .damaged = std::move(all.damaged)};
  for (Interaction& interaction : all.interactions) {
    const bool superseded = !branch.contains(interaction.id);
    if (all_branches || !superseded) history.entries.push_back({std::move(interaction), superseded});
  }
  return history;
}

Result<std::unique_ptr<HistoryReader>> Chats::ReadHistory(const ChatId& chat, const HistoryRange& range,
                                                          HistoryStates states) {
  auto running = TRY(Running(chat));  // first, as above
  return OpenHistory(services_.parts.store, chat, range, states, std::move(running),
                     [this, chat] { services_.damaged.Note(chat, true); });
}

Result<std::optional<Interaction>> Chats::Running(const ChatId& chat) {
  if (const auto run = busy_.RunOf(chat)) return run->Snapshot();
  const auto elsewhere = TRY(services_.parts.runs.HeldElsewhere(chat));
  if (!elsewhere) return std::nullopt;
  auto running = interactions_.FindElsewhere({chat, *elsewhere});
  if (running || running.error().code != ErrorCode::kCorruption) return running;
  // A newer server may store a run that this one cannot read. The rest of the chat can be shown.
  LogWarning("a run of another server cannot be shown",
             {{"chat", chat.str()}, {"interaction", elsewhere->str()}, {"detail", running.error().detail}});
  return std::nullopt;
}

Result<std::vector<ChatListEntry>> Chats::List() {
  const auto runs = busy_.Runs();  // first, as above
  return EntriesOf(TRY(services_.parts.store.ListChats()), runs);
}

Result<ChatListPage> Chats::ListPage(const std::optional<ChatPlace>& after, std::size_t limit) {
  const auto runs = busy_.Runs();
  auto page = TRY(services_.parts.store.ListPage(after, limit, {}));
  ChatListPage listed;
  if (page.more && !page.chats.empty()) listed.next = ChatPlace::Of(page.chats.back());
  listed.chats = TRY(EntriesOf(std::move(page.chats), runs));
  // Some have a time only now.
  std::ranges::stable_sort(listed.chats, [](const ChatListEntry& a, const ChatListEntry& b) {
    return ChatPlace::IsBefore(a.summary, b.summary);
  });
  return listed;
}

Result<std::vector<ChatListEntry>> Chats::EntriesOf(std::vector<ChatSummary> summaries,
                                                    const std::vector<std::shared_ptr<Run>>& runs) {
  std::map<ChatId, std::shared_ptr<Run>> before;
  for (const auto& run : runs) before.emplace(run->chat_id(), run);
  std::map<ChatId, WaitingQuestions> waiting;
  for (const PendingApproval& each : answers_.Approvals()) ++waiting[each.chat_id].approvals;
  for (const PendingInput& each : answers_.Inputs()) ++waiting[each.chat_id].inputs;
  std::map<ChatId, InteractionId> elsewhere;
  for (const auto& each : TRY(services_.parts.runs.AllHeldElsewhere()))
    elsewhere.emplace(each.chat_id, each.interaction_id);
  std::vector<ChatListEntry> entries;
  entries.reserve(summaries.size());
  for (ChatSummary& summary : summaries) {
    const auto run = busy_.RunOf(summary.id);
    if (const auto ran = before.find(summary.id); ran != before.end() && ran->second != run) {
      auto entry = ListEntryOf(summary.id);
      if (entry) entries.push_back(*std::move(entry));
      if (entry || IsNotFound(entry.error())) continue;
    }
    const auto found = waiting.find(summary.id);
    const auto held = elsewhere.find(summary.id);
    entries.push_back(EntryOf(std::move(summary), run, found == waiting.end() ? WaitingQuestions{} : found->second,
                              held == elsewhere.end() ? std::nullopt : std::optional(held->second)));
  }
  return entries;
}

Result<ChatListEntry> Chats::ListEntryOf(const ChatId& chat) {
  auto run = busy_.RunOf(chat);
  auto summary = services_.parts.store.LoadSummary(chat);
  for (auto now = busy_.RunOf(chat); now != run; now = busy_.RunOf(chat)) {
    run = std::move(now);
    summary = services_.parts.store.LoadSummary(chat);
  }
  if (!summary && !(run && IsNotFound(summary.error()))) return Fail(std::move(summary.error()));
  const auto elsewhere = run ? std::nullopt : TRY(services_.parts.runs.HeldElsewhere(chat));
  const WaitingQuestions waiting = elsewhere ? interactions_.WaitingElsewhere(chat)
                                             : WaitingQuestions{.approvals = services_.approvals.waiting_in(chat),
                                                                .inputs = services_.inputs.waiting_in(chat)};
  return EntryOf(summary ? *std::move(summary) : ChatSummary{.id = chat}, run, waiting, elsewhere);
}

ChatListEntry Chats::EntryOf(ChatSummary summary, const std::shared_ptr<Run>& run, const WaitingQuestions& waiting,
                             std::optional<InteractionId> elsewhere) {
  const bool damaged = services_.damaged.Has(summary.id);
  const std::size_t count = waiting.approvals + waiting.inputs, jobs = services_.jobs.RunningIn(summary.id);
  if (!run) {
    const auto status = elsewhere ? std::optional(waiting.Status()) : summary.head_status;
    // Nothing is stored of a chat whose first run is going on.
    if (elsewhere && !summary.head) {
      if (const auto begun = interactions_.ReadElsewhere({summary.id, *elsewhere}); begun && *begun) {
        FillFromBegun(summary, **begun);
        summary.model = (*begun)->model;
      }
    }
    return {.summary = std::move(summary), .status = status, .waiting = count, .jobs = jobs, .damaged = damaged};
  }
  if (!summary.head) FillFromBegun(summary, run->Snapshot());
  summary.model = run->model();
  return {.summary = std::move(summary), .status = run->status(), .waiting = count, .jobs = jobs, .damaged = damaged};
}

Result<EditPreview> Chats::PreviewEdit(const ChatId& chat, InteractionId interaction) {
  if (const auto run = busy_.RunOf(chat, interaction)) return Fail(Busy(run));
  const auto edited = TRY(services_.parts.store.LoadInteraction(chat, interaction));
  auto [all, leaf] = TRY(LoadWhole(chat));
  const auto workspace = TRY(services_.WorkspaceAt(all.summary.workspace));
  const auto head = std::exchange(all.summary.head, leaf);  // a run goes too
  EditPreview preview = PreviewOf(all, edited, *workspace->tools.Current());
  preview.restore = TRY(workspace_.Preview(chat, head, edited.parent_id));
  return preview;
}

Result<AttachedEvents> Chats::Attach(const ChatId& chat, InteractionId interaction, std::uint64_t after_seq) {
  const auto run = busy_.RunOf(chat, interaction);
  std::shared_ptr<EventLog> log;
  std::shared_ptr<void> hold;
  InteractionStatus status;
  if (run) {
    log = run->log();
    status = run->status();
  } else if (const auto stored = interactions_.FindFinished(chat, interaction)) {
    log = RecordedLog(*stored);
    status = stored->status;
  } else {
    const auto follower = IsNotFound(stored.error()) ? Follow({chat, interaction}) : Fail(stored.error());
    if (!follower) return Fail(IsNotFound(follower.error()) ? stored.error() : follower.error());
    log = (*follower)->log();
    status = (*follower)->Snapshot().status;
    hold = *follower;
  }
  const auto last = log->end();
  const auto offset = TRY(log->OffsetAfter(after_seq));
  const auto elsewhere = [&](const auto& each) { return each.chat_id != chat || each.interaction_id != interaction; };
  std::vector<PendingApproval> approvals = answers_.Approvals();
  std::erase_if(approvals, elsewhere);
  std::vector<PendingInput> inputs = answers_.Inputs();
  std::erase_if(inputs, elsewhere);
  if (hold) status = WaitingQuestions{.approvals = approvals.size(), .inputs = inputs.size()}.Status();
  return AttachedEvents{.subscription = EventSubscription(chat, interaction, std::move(log), std::move(hold)),
                        .offset = offset,
                        .status = status,
                        .first_seq = after_seq + 1,
                        .last_seq = last.last_seq,
                        .pending_approvals = std::move(approvals),
                        .pending_inputs = std::move(inputs)};
}

Result<std::shared_ptr<RunFollower>> Chats::Follow(const InteractionRef& run) {
  const std::pair key(run.chat_id, run.interaction_id);
  {
    const MutexLock lock(mutex_);
    std::erase_if(followers_, [](const auto& each) { return each.second.expired(); });
    const auto found = followers_.find(key);
    if (auto follower = found == followers_.end() ? nullptr : found->second.lock()) return follower;
  }
  const auto follower = std::make_shared<RunFollower>(services_, run);
  TRY(follower->Begin());
  const MutexLock lock(mutex_);
  followers_[key] = follower;
  return follower;
}

Result<Beginning> Chats::LoadForChange(const ChatId& chat) {
  TRY(services_.parts.store.LoadSummary(chat));
  return start_points_.AtHead(chat);
}

Result<Agenda> Chats::GetAgenda(const ChatId& chat) {
  if (const auto run = busy_.RunOf(chat)) return run->agenda();
  return LoadForChange(chat).map([](const Beginning& head) { return head.state.agenda; });
}

Result<std::vector<Job>> Chats::ListJobs(const ChatId& chat) {
  TRY(interactions_.CheckChat(chat));
  std::vector<Job> jobs = services_.jobs.Of(chat)->List();
  if (busy_.RunOf(chat)) return jobs;
  const auto head = LoadForChange(chat);
  for (const StartedJob& started : head ? head->state.jobs : std::vector<StartedJob>()) {
    const bool is_here = std::ranges::any_of(jobs, [&](const Job& job) { return job.id == started.id; });
    if (!is_here) jobs.push_back({.id = started.id, .command = started.command, .end = JobEnd{.reason = "lost"}});
  }
  return jobs;
}

Result<std::vector<Grant>> Chats::GetGrants(const ChatId& chat) {
  const auto valid = [](std::vector<Grant> grants) {
    std::erase_if(grants, [now = Now()](const Grant& each) { return each.has_expired(now); });
    return grants;
  };
  if (const auto run = busy_.RunOf(chat)) return valid(run->grants());
  return LoadForChange(chat).map([&](const Beginning& head) { return valid(head.state.grants); });
}

// --- changes by hand -------------------------------------------------------------------------------------------------

Result<Agenda> Chats::ChangeAgenda(const ChatId& chat, AgendaChange change) {
  return busy_.WhileIdle(chat, [&]() -> Result<Agenda> {
    auto head = TRY(LoadForChange(chat));
    Agenda& agenda = head.state.agenda;
    const Agenda before = agenda;
    if (change.tasks) agenda.tasks = *std::move(change.tasks);
    if (change.plan) agenda.plan = *std::move(change.plan);
    TRY(NameTasks(agenda.tasks));
    if (agenda == before) return agenda;
    std::vector<EventPayload> events;
    if (agenda.tasks != before.tasks) events.emplace_back(event::TaskUpdated{std::nullopt, agenda.tasks});
    if (agenda.plan != before.plan) events.emplace_back(event::PlanUpdated{std::nullopt, agenda.plan});
    return SaveChange(chat, std::move(head), std::move(events)).map([](Interaction changed) {
      return std::move(changed.final_agent_state->agenda);
    });
  });
}

Result<void> Chats::RevokeGrant(const ChatId& chat, std::string_view id) {
  return busy_.WhileIdle(chat, [&]() -> Result<void> {
    auto head = TRY(LoadForChange(chat));
    if (std::erase_if(head.state.grants, [&](const Grant& grant) { return GrantId(grant) == id; }) == 0) {
      return Fail(ErrorCode::kNotFound, "there is no such grant");
    }
    event::GrantsUpdated updated{head.state.grants};
    return SaveChange(chat, std::move(head), {std::move(updated)}).map([](const Interaction&) {});
  });
}

Result<Interaction> Chats::SaveChange(const ChatId& chat, Beginning changed, std::vector<EventPayload> events) {
  const auto hold = TRY(services_.parts.runs.Begin({.chat = chat,
                                                    .expected_head = changed.expected_head,
                                                    .expected_version = changed.expected_version,
                                                    .makes_chat = changed.makes_chat}));
  Interaction saved{.id = hold->id(), .chat_id = chat};
  saved.parent_id = changed.parent;
  saved.status = InteractionStatus::kCompleted;
  saved.created_at = saved.completed_at.emplace(Now());
  for (EventPayload& payload : events) {
    const std::uint64_t seq = saved.events.size() + 2;  // interaction_started is 1
    saved.events.push_back({.seq = seq, .at = saved.created_at, .payload = std::move(payload)});
  }
  saved.final_agent_state = std::move(changed.state);
  TRY(hold->Finish(saved));
  workspace_.HeadGrew(chat, changed.parent, saved.id);
  Changed(ChatChange::Kind::kHeadMoved, chat);
  return saved;
}

Result<Beginning> Chats::LoadBehind(const ChatId& chat, std::optional<InteractionId> after) {
  auto head = TRY(start_points_.AtHead(chat));
  if (head.parent == after) return head;
  Beginning behind{.parent = after};
  if (after) behind.state = TRY(services_.parts.store.LoadFinalState(chat, *after)).value_or(AgentState{});
  return behind;
}

// Each turn is stored as a run would store it, so that all readers of interactions can read it.
Result<InteractionId> Chats::AddTurns(const ChatId& chat, std::optional<InteractionId> after,
                                      std::optional<InteractionId> edited_from, const std::vector<SpokenTurn>& turns) {
  return busy_.WhileIdle(chat, [&]() -> Result<InteractionId> {
    auto at = TRY(LoadBehind(chat, after));
    auto files_from = workspace_.is_on() ? workspace_.StandsAt(chat, TRY(start_points_.AtHead(chat)).parent) : after;
    if (at.makes_chat) Changed(ChatChange::Kind::kChatCreated, chat);
    std::optional<InteractionId> last;
    for (const SpokenTurn& turn : turns) {
      const auto hold = TRY(services_.parts.runs.Begin({.chat = chat, .expected_head = at.expected_head}));
      Interaction saved{.id = hold->id(), .chat_id = chat, .parent_id = at.parent};
      saved.edited_from = std::exchange(edited_from, std::nullopt);
      saved.status = InteractionStatus::kCompleted;
      saved.user_message = turn.user_message;
      saved.created_at = saved.completed_at.emplace(Now());
      if (!turn.answer.empty()) {
        saved.events.push_back({.seq = 2, .at = saved.created_at, .payload = event::Answer{turn.answer}});
      }
      at.state.messages.push_back({.role = Role::kUser, .content = turn.user_message});
      saved.record = RunRecord{.first_message = at.state.messages.size()};
      if (files_from != at.parent) saved.record->files_from = files_from;
      files_from = saved.id;
      if (!turn.answer.empty()) at.state.messages.push_back({.role = Role::kAssistant, .content = turn.answer});
      saved.final_agent_state = at.state;
      TRY(hold->Finish(saved));
      at.parent = last = saved.id;
      at.expected_head = std::optional<std::optional<InteractionId>>(saved.id);
    }
    workspace_.HeadMoved(chat, *last, *last);
    Changed(ChatChange::Kind::kHeadMoved, chat);
    return *last;
  });
}

Result<std::optional<InteractionId>> Chats::StateBefore(const ChatId& chat,
                                                        const std::optional<InteractionId>& head) const {
  if (!head) return Fail(Reason::kNothingToUndo, "the chat has no interaction");
  return TRY(services_.parts.store.LoadInteraction(chat, *head)).parent_id;
}

Result<InteractionId> Chats::BeforeHead(const ChatId& chat, const std::optional<InteractionId>& head) const {
  const auto parent = TRY(StateBefore(chat, head));
  if (!parent) return Fail(Reason::kNothingToUndo, "there is no interaction before the chat's head");
  return *parent;
}

Result<ChatSummary> Chats::PutFilesBack(const ChatId& chat, FilesChoice files) {
  const auto head = TRY(services_.parts.store.LoadSummary(chat)).head;
  const auto before = TRY(StateBefore(chat, head));
  const auto plan = TRY(workspace_.Prepare(chat, head, before, files));
  const WorkspaceMoves::Then then{.stands = true, .at = before, .while_at = head};
  TRY(workspace_.Restore(chat, plan, then, [] { return Result<void>(); }));
  auto summary = TRY(services_.parts.store.LoadSummary(chat));
  workspace_.HeadMoved(chat, before, summary.head);
  return summary;
}

Result<ChatSummary> Chats::Undo(const ChatId& chat, FilesChoice files) {
  return WhileIdleEverywhere(chat, [&]() -> Result<ChatSummary> {
    if (files.only) return PutFilesBack(chat, files);
    const auto summary = TRY(services_.parts.store.LoadSummary(chat));
    return Move(chat, TRY(BeforeHead(chat, summary.head)), files);
  });
}

Result<ChatSummary> Chats::Move(const ChatId& chat, InteractionId to, FilesChoice files) {
  const auto head = TRY(services_.parts.store.LoadSummary(chat)).head;
  std::optional<ChatSummary> moved;
  const auto move = [&]() -> Result<void> {
    moved = TRY(services_.parts.store.MoveHead(chat, to));
    return {};
  };
  if (files.restore) {
    const auto plan = TRY(workspace_.Prepare(chat, head, to, files));
    TRY(workspace_.Restore(chat, plan, {.head = to}, move));
    workspace_.HeadMoved(chat, to, to);
  } else {
    const auto stands_at = workspace_.StandsAt(chat, head);
    TRY(move());
    workspace_.HeadMoved(chat, stands_at, to);
  }
  Changed(ChatChange::Kind::kHeadMoved, chat);
  return *std::move(moved);
}

Result<FilesPreview> Chats::PreviewFiles(const ChatId& chat, std::optional<InteractionId> to, FilesChoice files) {
  const auto head = TRY(services_.parts.store.LoadSummary(chat)).head;
  if (to) TRY(services_.parts.store.LoadInteraction(chat, *to));
  if (!to && files.only) return workspace_.Preview(chat, head, TRY(StateBefore(chat, head)));
  return workspace_.Preview(chat, head, to ? *to : TRY(BeforeHead(chat, head)));
}

// --- whole chats -----------------------------------------------------------------------------------------------------

Result<ChatSummary> Chats::Create(const ChatId& chat, ChatSettings settings) {
  TRY(Settle(chat, settings));
  auto created = busy_.WhileIdle(chat, [&] { return services_.parts.store.CreateChat(chat, settings); });
  if (!created) return created;
  if (created->approval_mode) NoteChange(services_, audit::ModeChanged(chat, created->approval_mode));
  if (!created->instructions.empty()) NoteChange(services_, audit::InstructionsChanged(chat, created->instructions));
  Changed(ChatChange::Kind::kChatCreated, chat);
  return created;
}

Result<void> Chats::WorkIn(const ChatId& chat, const std::string& workspace) {
  const std::string path = TRY(Choose(workspace));
  const auto known = services_.parts.store.LoadSummary(chat);
  if (!known && !IsNotFound(known.error())) return Fail(known.error());
  const std::string& home = services_.home->path;
  if (!known && path == home) return {};  // where new chats work
  if (!known) {
    auto created = Create(chat, {.workspace = path});
    if (created || !created.error().Is(Reason::kChatExists)) return created.map([](const ChatSummary&) {});
    return WorkIn(chat, workspace);  // another request was faster
  }
  const std::string& now = known->workspace.empty() ? home : known->workspace;
  if (now == path) return {};
  if (known->workspace.empty() && !known->head) {  // made for a file, say; its first message decides
    return Change(chat, {.workspace = path}).map([](const ChatSummary&) {});
  }
  return Fail(Reason::kWorksElsewhere, "this chat works in " + VisibleLine(now) + ", not in " + VisibleLine(path) +
                                           "; begin another chat there, or move this one: PATCH /chats/" + chat.str() +
                                           " {\"workspace\"}");
}

// Checks the settings, and writes them as they are stored.
Result<void> Chats::Settle(const ChatId& chat, ChatSettings& settings) const {
  const bool moves = settings.workspace && !settings.workspace->empty();
  if (moves) settings.workspace = TRY(Choose(*settings.workspace));
  if (settings.approval_mode) {
    const auto workspace =
        TRY(settings.workspace ? services_.WorkspaceAt(*settings.workspace) : services_.WorkspaceOf(chat));
    TRY(services_.CheckMode(*settings.approval_mode, *workspace));
  }
  if (settings.model && !settings.model->empty()) {
    settings.model = TRY(services_.parts.models.Resolve(*settings.model)).full_name;
  }
  return {};
}

Result<std::string> Chats::Choose(const std::string& workspace) const {
  if (services_.parts.workspaces) return services_.parts.workspaces->Choose(workspace);
  if (workspace == services_.home->path) return workspace;
  return Fail(Reason::kWorkspaceNotAllowed, "this server's chats have no folders of their own");
}

Result<ChatSummary> Chats::Change(const ChatId& chat, ChatSettings settings) {
  TRY(Settle(chat, settings));
  const auto change = [&] { return ChangeSettings(services_, chat, settings); };
  return settings.workspace ? WhileIdleEverywhere(chat, change) : change();
}

Result<ChatSummary> Chats::MoveHead(const ChatId& chat, InteractionId interaction, FilesChoice files) {
  return WhileIdleEverywhere(chat, [&] { return Move(chat, interaction, files); });
}

// The chat is free between two tries. A run of a dead process may be taken up here meanwhile, and is then stopped.
Result<void> Chats::Delete(const ChatId& chat) {
  constexpr std::chrono::seconds kLongest{20};  // by then a dead process is known to be dead
  const auto until = std::chrono::steady_clock::now() + kLongest;
  auto held = services_.queues.Hold(chat);
  for (;;) {
    auto deleted = busy_.WhenStopped(chat, "chat_deleted", [&]() -> Result<void> {
      TRY(StopElsewhere(chat, "chat_deleted"));
      return DeleteIdle(chat);
    });
    if (deleted) return deleted;
    if (!deleted.error().Is(Reason::kBusy) || std::chrono::steady_clock::now() > until) {
      held.reset();
      static_cast<void>(busy_.WhileIdle(chat, [] { return Result<void>(); }));  // begins what waits
      return deleted;
    }
    if (busy_.is_stopping()) return Fail(Stopping());
    Pause();
  }
}

// The run's end is in the store, without a notification. A destroyed timer drops its pending calls.
void Chats::Pause() {
  constexpr std::chrono::milliseconds kPause{50};
  const auto later = std::make_shared<std::promise<void>>();
  services_.timer.After(kPause, [later] { later->set_value(); });
  later->get_future().wait_for(2 * kPause);
}

Result<void> Chats::StopElsewhere(const ChatId& chat, std::string_view reason) {
  const auto id = TRY(services_.parts.runs.HeldElsewhere(chat));
  if (!id) return {};
  TRY(services_.parts.runs.RequestStop({chat, *id}, reason));
  return Fail(Busy(id));
}

Result<void> Chats::DeleteIdle(const ChatId& chat) {
  // First, because nobody lists what is deleted from a fallback: a refusal must leave it there.
  auto deleted = services_.queues.RemoveWith(chat, [&] { return services_.parts.store.DeleteChat(chat); });
  if (!deleted && !IsNotFound(deleted.error())) return deleted;
  services_.jobs.EndOf(chat);
  for (InteractionStore* fallback : services_.parts.fallback_stores) {
    auto unsaved = fallback->DeleteChat(chat);
    if (!unsaved && !IsNotFound(unsaved.error())) return unsaved;
  }
  if (!deleted) return deleted;
  services_.damaged.Note(chat, false);
  services_.usage_limits.Forget(chat);
  if (services_.parts.files) services_.parts.files->ForgetChat(chat);
  if (workspace_.is_on()) services_.home->history->ForgetChat(chat);
  interactions_.Forget(chat);
  searched_.Forget(chat);
  Changed(ChatChange::Kind::kChatDeleted, chat);
  return {};
}

Result<std::vector<InteractionId>> Chats::RemoveBranch(const ChatId& chat, InteractionId from) {
  return WhileIdleEverywhere(chat, [&]() -> Result<std::vector<InteractionId>> {
    auto removed = TRY(services_.parts.store.RemoveBranch(chat, from));
    NoteChange(services_, audit::Pruned(chat, from));
    interactions_.Forget(chat);
    services_.usage_limits.Forget(chat);
    Changed(ChatChange::Kind::kHeadMoved, chat);
    return removed;
  });
}

Result<ChatSummary> Chats::Restore(std::string_view entry) {
  const auto chat = ChatId::Parse(entry.substr(0, entry.find('.')));
  if (!chat) return Fail(ErrorCode::kNotFound, "there is no such chat in the trash");
  auto restored = busy_.WhileIdle(*chat, [&] {
    services_.usage_limits.Forget(*chat);
    if (services_.parts.files) services_.parts.files->ForgetChat(*chat);
    if (workspace_.is_on()) services_.home->history->ForgetChat(*chat);
    return services_.parts.store.RestoreChat(*chat, std::string(entry));
  });
  if (!restored) return Fail(ExistsAlready(std::move(restored.error()), *chat, kInTheWay));
  Changed(ChatChange::Kind::kChatCreated, *chat);
  return restored;
}

template <typename Take, typename PutFiles>
Result<ChatListEntry> Chats::BringIn(const ChatId& chat, const Take& take, const PutFiles& put_files) {
  auto brought = busy_.WhileIdle(chat, [&]() -> Result<ChatSummary> {
    services_.usage_limits.Forget(chat);
    auto taken = take();
    if (!taken || services_.parts.files == nullptr) return taken;
    if (auto put = put_files(); !put) {
      static_cast<void>(DeleteIdle(chat));
      return Fail(std::move(put.error()));
    }
    return taken;
  });
  if (!brought) return Fail(ExistsAlready(std::move(brought.error()), chat));
  Changed(ChatChange::Kind::kChatCreated, chat);
  return brought.map([this](ChatSummary summary) { return EntryOf(std::move(summary), nullptr, {}, {}); });
}

Result<ChatListEntry> Chats::Fork(const ChatId& source, InteractionId interaction, const ChatId& chat,
                                  const std::optional<std::string>& title, FilesChoice files) {
  if (busy_.RunOf(source, interaction) || TRY(services_.parts.runs.HeldElsewhere(source)) == interaction) {
    return Fail(Reason::kNotFinished, "the interaction has not come to its end yet");
  }
  const auto fork = [&] {
    return BringIn(
        chat, [&] { return services_.parts.store.ForkChat(source, interaction, chat, title); },
        [&] { return CopyFiles(source, chat); });
  };
  if (!files.restore) return fork();
  return busy_.WhileIdle(source, [&]() -> Result<ChatListEntry> {
    const auto head = TRY(services_.parts.store.LoadSummary(source)).head;
    const auto plan = TRY(workspace_.Prepare(source, head, interaction, files));
    std::optional<ChatListEntry> made;
    const WorkspaceMoves::Then then{.stands = true, .at = interaction, .while_at = head};
    TRY(workspace_.Restore(source, plan, then, [&]() -> Result<void> {
      made = TRY(fork());
      return {};
    }));
    // The source's head has not moved, but its files have changed.
    workspace_.HeadMoved(source, interaction, TRY(services_.parts.store.LoadSummary(source)).head);
    return *std::move(made);
  });
}

Result<ChatListEntry> Chats::Import(const IncomingChat& chat) {
  const ChatId& id = chat.summary.id;
  return BringIn(
      id, [&] { return services_.parts.store.ImportChat(chat); },
      [&] { return PutMissingFiles(id, chat.files, chat.load_file); });
}

// `load` may leave a file out (nullopt).
template <typename Load>
Result<void> Chats::PutMissingFiles(const ChatId& chat, const std::vector<FileId>& files, const Load& load) const {
  const auto there = TRY(services_.parts.files->List(chat));
  for (const FileId& id : files) {
    if (std::ranges::find(there.files, id, &FileInfo::id) != there.files.end()) continue;
    const std::optional<StoredFile> file = TRY(load(id));
    if (file) TRY(services_.parts.files->Put(chat, *file));
  }
  return {};
}

// Copies the files that can be read; the messages tell of the others.
Result<void> Chats::CopyFiles(const ChatId& from, const ChatId& to) const {
  const auto wanted = TRY(services_.parts.files->List(from));
  bool damaged = !wanted.damaged.empty();
  std::vector<FileId> ids;
  for (const FileInfo& each : wanted.files) ids.push_back(each.id);
  TRY(PutMissingFiles(to, ids, [&](const FileId& id) -> Result<std::optional<StoredFile>> {
    auto file = services_.parts.files->Get(from, id);
    if (file) return *std::move(file);
    const bool is_damaged = file.error().code == ErrorCode::kCorruption;
    damaged = damaged || is_damaged;
    if (is_damaged || IsNotFound(file.error())) return std::nullopt;  // or deleted meanwhile
    return Fail(std::move(file.error()));
  }));
  if (damaged) {
    LogWarning("damaged files of a chat were not copied", {{"from", from.str()}, {"to", to.str()}});
  }
  return {};
}

}  // namespace reprise
