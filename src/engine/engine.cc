#include "reprise/engine.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "approval/audit_lines.h"
#include "base/try.h"
#include "engine/answers.h"
#include "engine/attachments.h"
#include "engine/blamed_files.h"
#include "engine/busy_chats.h"
#include "engine/chat_settings.h"
#include "engine/chats.h"
#include "engine/interactions.h"
#include "engine/model_questions.h"
#include "engine/others.h"
#include "engine/repeated_requests.h"
#include "engine/replays.h"
#include "engine/services.h"
#include "engine/start_point.h"
#include "engine/titles.h"
#include "engine/turns.h"
#include "engine/usage_report.h"
#include "engine/what_if_runs.h"
#include "engine/workspace_moves.h"

namespace reprise {
namespace {

Error NoFiles() { return MakeError(ErrorCode::kNotFound, "this server keeps no files"); }
Error NoSuchGrant() { return MakeError(ErrorCode::kNotFound, "there is no such grant"); }

}  // namespace

// Joins the parts of the engine, each of which has a file of its own.
struct Engine::Impl {
  Impl(Parts parts, EngineOptions options) : made(std::in_place, std::move(parts), std::move(options)) {}
  ~Impl() { made.reset(); }  // first, because its threads use the others

  // Made before the members that refer to it.
  std::optional<EngineServices> made;
  EngineServices& services = *made;
  BusyChats busy{services, [this](const ChatId& chat) { turns.LaunchNext(chat); }};
  Interactions interactions{services, busy};
  RepeatedRequests repeated{services, busy, interactions};
  StartPoints start_points{services, interactions};
  WorkspaceMoves workspace{services, interactions, start_points};
  Turns turns{services, busy, interactions, start_points, repeated, workspace, [this](const Interaction& interaction) {
                titles.Saved(interaction);
                if (services.parts.finished) services.parts.finished(interaction);
              }};
  Answers answers{services, busy, interactions};
  Replays replays{services, interactions};
  WhatIfRuns what_if_runs{services, busy, interactions, workspace};
  Chats chats{services, busy, interactions, start_points, answers, workspace};
  Others others{services, busy, turns, answers};
  ModelQuestions questions{services};
  Titles titles{services, busy, questions, chats};
  NamedFiles named_files{services};

  Result<EventSubscription> Begin(const ChatId& chat, const StartPoint& from, StartRequest request);
  // Follows the run of an earlier copy of this request; nullopt if there is none.
  Result<std::optional<EventSubscription>> FollowRepeated(const ChatId& chat, const ClientRequest& request);
};

Result<std::optional<EventSubscription>> Engine::Impl::FollowRepeated(const ChatId& chat,
                                                                      const ClientRequest& request) {
  const auto begun = TRY(repeated.Find(chat, request));
  if (!begun) return std::nullopt;
  auto subscription = TRY(chats.Attach(chat, *begun, 0)).subscription;
  subscription.is_repeated = request.is_unnamed();
  return subscription;
}

Result<EventSubscription> Engine::Impl::Begin(const ChatId& chat, const StartPoint& from, StartRequest request) {
  const auto key = request.request && !request.request->is_unnamed() ? request.request : std::nullopt;
  if (key) {
    if (auto before = TRY(FollowRepeated(chat, *key))) return *std::move(before);
  }
  if (!request.workspace.empty()) {
    TRY(services.parts.models.Resolve(request.model));  // a refused message makes no chat
    if (from.kind == StartPoint::Kind::kHead || services.parts.store.LoadSummary(chat)) {
      TRY(chats.WorkIn(chat, request.workspace));
    }
  }
  auto started = turns.Start(chat, from, std::move(request));
  if (started || !key || (!started.error().Is(Reason::kBusy) && !started.error().Is(Reason::kRequestBegun)))
    return started;
  // The request came twice at once.
  if (auto meanwhile = TRY(FollowRepeated(chat, *key))) return *std::move(meanwhile);
  return started;
}

Engine::Engine(Parts parts, EngineOptions options)
    : impl_(std::make_unique<Impl>(std::move(parts), std::move(options))) {}
Engine::~Engine() { Stop(); }

void Engine::Drain(std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds kLookEvery{100};
  const auto until = std::chrono::steady_clock::now() + limit;
  impl_->busy.BeginDrain();
  impl_->questions.Refuse();
  impl_->services.queues.TellStopping();
  for (;;) {
    const auto left = until - std::chrono::steady_clock::now();
    if (left <= left.zero()) return;
    for (const auto& run : impl_->busy.Runs()) {  // includes runs that have begun to wait meanwhile
      if (run->status() != InteractionStatus::kRunning) run->RequestStopWithServer();
    }
    if (impl_->busy.AwaitAllWork(std::min<std::chrono::nanoseconds>(left, kLookEvery))) return;
  }
}

void Engine::Stop() {
  impl_->others.Stop();
  impl_->busy.BeginStop();
  for (const auto& run : impl_->busy.Runs()) run->RequestStopWithServer();
  impl_->replays.Stop();
  impl_->what_if_runs.Stop();
  impl_->questions.Stop();
  impl_->services.queues.TellStopping();
  impl_->busy.AwaitAllWork();
  impl_->services.jobs.EndAll();
}

Result<Engine::Recovered> Engine::Recover() {
  impl_->workspace.Recover();  // before anything uses the workspace again
  return impl_->turns.Recover().map([this](const Recovered& recovered) {
    impl_->others.Watch();
    return recovered;
  });
}

// --- runs ------------------------------------------------------------------------------------------------------------

Result<EventSubscription> Engine::Start(const ChatId& chat, StartRequest request) {
  return impl_->Begin(chat, {}, std::move(request));
}

Result<std::optional<EventSubscription>> Engine::FollowRepeated(const ChatId& chat, const ClientRequest& request) {
  return impl_->FollowRepeated(chat, request);
}

Result<EventSubscription> Engine::Compact(const ChatId& chat, StartRequest request) {
  return impl_->Begin(chat, {StartPoint::Kind::kCompact}, std::move(request));
}

Result<EventSubscription> Engine::Resume(const ChatId& chat, InteractionId interaction, StartRequest request) {
  return impl_->Begin(chat, {StartPoint::Kind::kResume, interaction}, std::move(request));
}

Result<EventSubscription> Engine::Edit(const ChatId& chat, InteractionId interaction, StartRequest request) {
  return impl_->Begin(chat, {StartPoint::Kind::kEdit, interaction}, std::move(request));
}

Result<EventSubscription> Engine::Regenerate(const ChatId& chat, InteractionId interaction, StartRequest request) {
  return impl_->Begin(chat, {StartPoint::Kind::kRegenerate, interaction}, std::move(request));
}

Result<InteractionId> Engine::AddTurns(const ChatId& chat, std::optional<InteractionId> after,
                                       std::optional<InteractionId> edited_from, const std::vector<SpokenTurn>& turns) {
  return impl_->chats.AddTurns(chat, after, edited_from, turns);
}

Result<void> Engine::Ask(const ModelQuestion& question, ModelStream& stream, std::stop_token stop,
                         ModelClient::Done done) {
  return impl_->questions.Ask(question, stream, std::move(stop), std::move(done));
}

Result<EditorConnection> Engine::ConnectEditor(const ChatId& chat, EditorAbilities abilities) {
  return impl_->services.editors.Connect(chat, abilities);
}

Result<std::size_t> Engine::OfferEditorTools(const ChatId& chat, std::vector<EditorTool> tools) {
  const auto workspace = TRY(impl_->busy.WorkspaceOf(chat));
  return impl_->services.editors.Offer(chat, std::move(tools), workspace->tools);
}

Result<void> Engine::AnswerEditor(const ChatId& chat, std::string_view request_id, EditorAnswer answer) {
  return impl_->services.editors.Answer(chat, request_id, std::move(answer));
}

Result<CancelOutcome> Engine::Cancel(const ChatId& chat, InteractionId interaction) {
  if (const auto run = impl_->busy.RunOf(chat, interaction)) {
    run->RequestStop("requested");
    return CancelOutcome{.was_running = true, .status = InteractionStatus::kRunning};
  }
  const auto stored = impl_->interactions.FindFinished(chat, interaction);
  if (stored) return CancelOutcome{.was_running = false, .status = stored->status};
  if (!IsNotFound(stored.error())) return Fail(stored.error());
  const auto asked = TRY(impl_->services.parts.runs.RequestStop({chat, interaction}, "requested"));
  if (asked) return CancelOutcome{.was_running = true, .status = InteractionStatus::kRunning};
  return Fail(stored.error());
}

Result<AttachedEvents> Engine::Attach(const ChatId& chat, InteractionId interaction, std::uint64_t after_seq) {
  return impl_->chats.Attach(chat, interaction, after_seq);
}

void Engine::Listen(EventSubscription& subscription) {
  if (!subscription.interaction_id) return;  // it listens already
  const auto run = impl_->busy.RunOf(subscription.chat_id, *subscription.interaction_id);
  if (run && !subscription.hold_) subscription.hold_ = run->AddListener();
}

Result<std::vector<QueueEntry>> Engine::GetQueue(const ChatId& chat) {
  return impl_->interactions.CheckChat(chat).and_then([&] { return impl_->services.queues.List(chat); });
}

Result<QueueEntry> Engine::ChangeQueued(const ChatId& chat, std::string_view id, const std::string& user_message) {
  auto changed = impl_->interactions.CheckChat(chat)
                     .and_then([&] { return impl_->services.WorkspaceOf(chat); })
                     .and_then([&](const auto& workspace) {
                       return impl_->services.TextRulesOf(*workspace)->guardrails.Admit(user_message);
                     })
                     .and_then([&] { return impl_->services.queues.Change(chat, id, user_message); });
  if (changed) impl_->turns.StartNext(chat);
  return changed;
}

Result<void> Engine::RemoveQueued(const ChatId& chat, std::string_view id) {
  return impl_->interactions.CheckChat(chat).and_then([&] { return impl_->services.queues.Remove(chat, id); });
}

// --- background jobs -------------------------------------------------------------------------------------------------

Result<std::vector<Job>> Engine::ListJobs(const ChatId& chat) { return impl_->chats.ListJobs(chat); }

Result<JobOutput> Engine::ReadJob(const ChatId& chat, const std::string& job, std::uint64_t after) {
  TRY(impl_->interactions.CheckChat(chat));
  return impl_->services.jobs.Of(chat)->Read(job, after, {}, {});
}

Result<Job> Engine::StopJob(const ChatId& chat, const std::string& job) {
  TRY(impl_->interactions.CheckChat(chat));
  return impl_->services.jobs.Of(chat)->Stop(job);
}

Result<JobPort> Engine::OpenJobPort(const ChatId& chat, const std::string& job, std::uint16_t port,
                                    const std::string& by) {
  TRY(impl_->interactions.CheckChat(chat));
  AuditLog* const audit = impl_->services.parts.audit;
  return impl_->services.jobs.OpenPort(chat, job, port, [&](const JobPort& opened) -> Result<void> {
    return audit ? audit->Append(audit::PortChanged(chat, job, opened, by)) : Result<void>();
  });
}

Result<JobPort> Engine::CloseJobPort(const ChatId& chat, const std::string& job, std::uint16_t port,
                                     const std::string& by) {
  TRY(impl_->interactions.CheckChat(chat));
  return impl_->services.jobs.ClosePort(chat, job, port, [&](const JobPort& closed) {
    NoteChange(impl_->services, audit::PortChanged(chat, job, closed, by));
  });
}

// --- replays ---------------------------------------------------------------------------------------------------------

Result<EventSubscription> Engine::ReplayEvents(const ChatId& chat, InteractionId interaction, double speed) {
  return impl_->replays.Events(chat, interaction, speed);
}

Result<ReplayReport> Engine::ReplayRecorded(const ChatId& chat, InteractionId interaction, ReplayInput input) {
  return impl_->replays.Recorded(chat, interaction, input);
}

Result<EventSubscription> Engine::WhatIf(const ChatId& chat, InteractionId interaction, const WhatIfChanges& changes) {
  return impl_->what_if_runs.Start(chat, interaction, changes);
}

Result<ReplayReport> Engine::CompareReplay(const ChatId& chat, InteractionId recorded, InteractionId again) {
  return impl_->replays.Compare(chat, recorded, again);
}

// --- what people answer ----------------------------------------------------------------------------------------------

Result<PendingApproval> Engine::AnswerApproval(std::string_view approval_id, ApprovalAnswer answer,
                                               std::optional<InteractionRef> within) {
  return impl_->answers.AnswerApproval(approval_id, std::move(answer), within);
}

Result<PendingInput> Engine::AnswerInput(std::string_view request_id, InputAnswer answer,
                                         std::optional<InteractionRef> within) {
  return impl_->answers.AnswerInput(request_id, std::move(answer), within);
}

Result<PendingApproval> Engine::FindApproval(std::string_view approval_id) const {
  return impl_->answers.FindApproval(approval_id);
}

std::vector<PendingApproval> Engine::PendingApprovals() const { return impl_->answers.Approvals(); }

std::vector<PendingInput> Engine::PendingInputs() const { return impl_->answers.Inputs(); }

Result<FileChange> Engine::PreviewChange(std::string_view approval_id) const {
  return impl_->answers.PreviewChange(approval_id);
}

Result<std::vector<StandingGrant>> Engine::StandingGrants() {
  GrantStore* const grants = impl_->services.parts.grants;
  return grants ? grants->List() : std::vector<StandingGrant>();
}

Result<void> Engine::RevokeStandingGrant(std::string_view id) {
  GrantStore* const grants = impl_->services.parts.grants;
  return grants ? grants->Remove(id) : Fail(NoSuchGrant());
}

Result<std::vector<Grant>> Engine::GetGrants(const ChatId& chat) { return impl_->chats.GetGrants(chat); }

Result<void> Engine::RevokeGrant(const ChatId& chat, std::string_view id) { return impl_->chats.RevokeGrant(chat, id); }

// --- chats -----------------------------------------------------------------------------------------------------------

Result<Interaction> Engine::GetInteraction(const ChatId& chat, InteractionId interaction) {
  return impl_->interactions.Find(chat, interaction);
}

Result<History> Engine::GetHistory(const ChatId& chat, bool all_branches) {
  return impl_->chats.GetHistory(chat, all_branches);
}

Result<std::unique_ptr<HistoryReader>> Engine::ReadHistory(const ChatId& chat, const HistoryRange& range,
                                                           HistoryStates states) {
  return impl_->chats.ReadHistory(chat, range, states);
}

Result<SearchResult> Engine::Search(const std::string& text, const std::optional<ChatId>& chat, std::size_t limit) {
  return impl_->chats.Search(text, chat, limit);
}

Result<ChatUsage> Engine::GetUsage(const ChatId& chat) { return GetHistory(chat, /*all_branches=*/true).map(UsageOf); }

Result<UsageReport> Engine::GetUsageSince(Timestamp since) { return UsageSince(impl_->services, since); }

std::optional<std::int64_t> Engine::UsedToday() const {
  DailyUsage* const usage = impl_->services.parts.usage;
  return usage ? std::optional(usage->Today()) : std::nullopt;
}

Result<EditPreview> Engine::PreviewEdit(const ChatId& chat, InteractionId interaction) {
  return impl_->chats.PreviewEdit(chat, interaction);
}

Result<FilesPreview> Engine::PreviewFiles(const ChatId& chat, std::optional<InteractionId> to, FilesChoice files) {
  return impl_->chats.PreviewFiles(chat, to, files);
}

Result<InteractionDiff> Engine::DiffOf(const ChatId& chat, InteractionId interaction,
                                       const std::optional<std::string>& call_id) {
  return impl_->workspace.DiffOf(chat, interaction, call_id);
}

Result<RequestsOnRecord> Engine::RequestsOf(const ChatId& chat, InteractionId interaction) {
  return impl_->interactions.RequestsOf(chat, interaction);
}

Result<std::string> Engine::RequestBody(const ChatId& chat, InteractionId interaction, std::uint64_t index) {
  return impl_->interactions.RequestBody(chat, interaction, index);
}

Result<ToldRequest> Engine::ToldBy(const ChatId& chat, InteractionId interaction, std::uint64_t index) {
  return impl_->interactions.ToldBy(chat, interaction, index);
}

Result<std::vector<ChatListEntry>> Engine::ListChats() { return impl_->chats.List(); }
Result<ChatListPage> Engine::ListPage(const std::optional<ChatPlace>& after, std::size_t limit) {
  return impl_->chats.ListPage(after, limit);
}

std::optional<InteractionId> Engine::RunningIn(const ChatId& chat) const {
  const auto run = impl_->busy.RunOf(chat);
  return run ? std::optional(run->id()) : impl_->services.parts.runs.HeldElsewhere(chat).value_or(std::nullopt);
}

Result<ChatListEntry> Engine::GetListEntry(const ChatId& chat) { return impl_->chats.ListEntryOf(chat); }

Result<std::vector<UnreadableChat>> Engine::ListUnreadableChats() {
  return impl_->services.parts.store.ListUnreadableChats();
}

Result<ChatSummary> Engine::CreateChat(const ChatId& chat, ChatSettings settings) {
  return impl_->chats.Create(chat, std::move(settings));
}

Result<void> Engine::WorkIn(const ChatId& chat, const std::string& workspace) {
  return impl_->chats.WorkIn(chat, workspace);
}

Result<ChatSummary> Engine::ChangeChat(const ChatId& chat, ChatSettings settings) {
  return impl_->chats.Change(chat, std::move(settings));
}

Result<void> Engine::DeleteChat(const ChatId& chat) { return impl_->chats.Delete(chat); }

Result<std::vector<InteractionId>> Engine::RemoveBranch(const ChatId& chat, InteractionId from) {
  return impl_->chats.RemoveBranch(chat, from);
}

Result<std::vector<TrashEntry>> Engine::ListTrash() { return impl_->services.parts.store.ListTrash(); }

Result<ChatSummary> Engine::RestoreChat(std::string_view entry) { return impl_->chats.Restore(entry); }

Result<Agenda> Engine::GetAgenda(const ChatId& chat) { return impl_->chats.GetAgenda(chat); }

Result<Agenda> Engine::ChangeAgenda(const ChatId& chat, AgendaChange change) {
  return impl_->chats.ChangeAgenda(chat, std::move(change));
}

Result<ChatSummary> Engine::MoveHead(const ChatId& chat, InteractionId interaction, FilesChoice files) {
  return impl_->chats.MoveHead(chat, interaction, files);
}

Result<ChatSummary> Engine::Undo(const ChatId& chat, FilesChoice files) { return impl_->chats.Undo(chat, files); }

Result<ChatListEntry> Engine::ForkChat(const ChatId& source, InteractionId interaction, const ChatId& chat,
                                       const std::optional<std::string>& title, FilesChoice files) {
  return impl_->chats.Fork(source, interaction, chat, title, files);
}

Result<ChatListEntry> Engine::ImportChat(const IncomingChat& chat) { return impl_->chats.Import(chat); }

// --- their files -----------------------------------------------------------------------------------------------------

Result<FileInfo> Engine::AddFile(const ChatId& chat, const StoredFile& file) {
  if (impl_->services.parts.files == nullptr) return Fail(NoFiles());
  if (const auto known = impl_->services.parts.store.LoadSummary(chat); !known) {
    if (!IsNotFound(known.error())) return Fail(known.error());
    auto created = CreateChat(chat, {});
    // Another request was faster, or the chat's first interaction is about to make it.
    if (!created && created.error().code != ErrorCode::kConflict) return Fail(std::move(created.error()));
  }
  return KeepOnce(*impl_->services.parts.files, chat, file);
}

Result<FileListing> Engine::ListFiles(const ChatId& chat) {
  if (impl_->services.parts.files == nullptr) return Fail(NoFiles());
  TRY(impl_->services.parts.store.LoadSummary(chat));
  return impl_->services.parts.files->List(chat);
}

Result<StoredFile> Engine::GetFile(const ChatId& chat, const FileId& file) {
  if (impl_->services.parts.files == nullptr) return Fail(NoFiles());
  return impl_->services.parts.files->Get(chat, file);
}

Result<void> Engine::DeleteFile(const ChatId& chat, const FileId& file) {
  if (impl_->services.parts.files == nullptr) return Fail(NoFiles());
  return impl_->services.parts.files->Delete(chat, file);
}

Result<WorkspaceReader::Listing> Engine::FindWorkspaceFiles(const std::optional<ChatId>& chat, std::string_view text,
                                                            std::size_t limit) {
  return impl_->named_files.Find(*TRY(WorkspaceOf(chat)), text, limit);
}

Result<FileInfo> Engine::AttachWorkspaceFile(const ChatId& chat, std::string_view path) {
  const auto file = TRY(impl_->named_files.Read(*TRY(WorkspaceOf(chat)), path));
  return AddFile(chat, file);
}

Result<BlamedFile> Engine::Blame(const ChatId& chat, std::string_view path) {
  const auto workspace = TRY(WorkspaceOf(chat));
  auto file = TRY(impl_->named_files.Read(*workspace, path));
  return BlameFile(impl_->services, *workspace, std::string(path), std::move(file.content));
}

// --- facts -----------------------------------------------------------------------------------------------------------

const ModelDirectory& Engine::models() const { return impl_->services.parts.models; }
Result<std::shared_ptr<const WorkspaceParts>> Engine::WorkspaceOf(const std::optional<ChatId>& chat) const {
  return chat ? impl_->busy.WorkspaceOf(*chat) : impl_->services.home;
}
Result<std::shared_ptr<const WorkspaceParts>> Engine::OpenWorkspace(const std::string& path) const {
  return impl_->services.WorkspaceAt(TRY(impl_->chats.Choose(path)));
}
const ToolRegistry& Engine::tools() const { return impl_->services.parts.tools; }
const EngineOptions& Engine::options() const { return impl_->services.options; }
std::shared_ptr<const std::vector<ToolRule>> Engine::RulesIn(const WorkspaceParts& workspace) const {
  return impl_->services.RulesIn(workspace);
}
Audio* Engine::audio() const { return impl_->services.parts.audio; }
const AuditLog* Engine::audit() const { return impl_->services.parts.audit; }
const Telemetry* Engine::telemetry() const { return impl_->services.parts.telemetry; }
ChatChanges& Engine::changes() { return impl_->services.changes; }

Engine::Counters Engine::counters() const {
  Counters counters = impl_->busy.counters();
  counters.waiting_approvals = impl_->services.approvals.waiting_count();
  return counters;
}

}  // namespace reprise
