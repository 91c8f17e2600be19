#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/accounting.h"
#include "reprise/approval.h"
#include "reprise/audio.h"
#include "reprise/audit_log.h"
#include "reprise/chat_changes.h"
#include "reprise/daily_usage.h"
#include "reprise/document_reader.h"
#include "reprise/event_log.h"
#include "reprise/file_store.h"
#include "reprise/grant_store.h"
#include "reprise/guardrails.h"
#include "reprise/history.h"
#include "reprise/hooks.h"
#include "reprise/ids.h"
#include "reprise/incoming_chat.h"
#include "reprise/interaction.h"
#include "reprise/interaction_store.h"
#include "reprise/jobs.h"
#include "reprise/model_client.h"
#include "reprise/project_instructions.h"
#include "reprise/question_store.h"
#include "reprise/queue.h"
#include "reprise/replay.h"
#include "reprise/resource_limits.h"
#include "reprise/result.h"
#include "reprise/run_store.h"
#include "reprise/system_prompt.h"
#include "reprise/telemetry.h"
#include "reprise/tool.h"
#include "reprise/workspace_change.h"
#include "reprise/workspace_history.h"
#include "reprise/workspace_reader.h"
#include "reprise/workspaces.h"

namespace reprise {

class LearnedSecrets;
struct WhatIfChanges;

// What happens to a request for a run in a chat that already has one.
enum class IfRunning {
  kReject,  // kConflict (reason "busy")
  kQueue,   // the message waits for that run and for messages queued earlier; messages only
  kCancel,  // that run is cancelled; this one starts after its checkpoint, ahead of the queue
};

struct EngineOptions {
  int max_rounds = 25;
  std::chrono::milliseconds disconnect_grace{2000};
  std::chrono::milliseconds tool_timeout{60'000};
  std::chrono::milliseconds save_timeout{5000};
  ApprovalMode approval_mode = ApprovalMode::kAsk;
  std::shared_ptr<const std::vector<ToolRule>> rules{};  // of the configuration; null: none
  std::chrono::milliseconds approval_expiry{0};          // how long an approval waits; 0: forever
  int max_retries = 3;                                   // of a model request that failed for a transient reason
  std::size_t max_active_runs = 10'000;
  int max_tool_calls_per_minute = 0;  // per chat; 0: no limit
  int max_end_checks = 3;             // times that before_end hooks may send the agent back in an interaction
  bool titles_by_model = false;       // the model gives chats their titles, after the first answer
  UsageBudget budget{};
  PriceTable prices{};
  PartLimits parts{};       // which attached files a request holds in their own format
  std::string workspace{};  // where the tools work, shown to people and clients; empty: not shown
  OutputLimits output{};
  JobLimits jobs{};
};

// What the chats of a folder have in place of the engine's, because the folder has a configuration.
struct FolderSettings {
  EngineOptions options{};  // a limit for a day stays the engine's
  const ModelDirectory& models;
  std::vector<std::string> secrets{};  // redacted as those of the engine
  GuardrailOptions guardrails{};
};

// What happens to the workspace when the chat's head moves.
struct FilesChoice {
  bool restore = false;  // restores the files that the chat changed to their state at the new head; else they stay
  bool force = false;    // also overwrites later changes by others and changes that cannot be recorded
  bool only = false;     // for Undo, with `restore`: the chat's head stays
  bool allow_imported = false;  // also restores files known only from an imported interaction
};

struct StartRequest {
  std::string user_message{};
  std::string model{};  // empty: the default
  // In place of the server's mode, for this run; a chat's own mode counts before it, and so does a server's kDenyAll.
  std::optional<ApprovalMode> approval_mode{};
  OnDisconnect on_disconnect = OnDisconnect::kCancel;
  IfRunning if_running = IfRunning::kReject;
  // Files of the chat whose text goes with the message. nullopt: none; an edit or regeneration keeps the original
  // attachments as they were then.
  std::optional<std::vector<FileId>> attachments{};
  // The folder that a new chat works in (Workspaces::Choose); empty: the server's. kConflict (reason "works_elsewhere")
  // if the chat exists and works elsewhere.
  std::string workspace{};
  // The expected head; an inner nullopt means an empty chat. Unset: any head. Used by Start only, which fails with
  // kConflict (reason "stale") if the chat has another head.
  std::optional<std::optional<InteractionId>> follows{};
  // The client's instructions for this run only, after the system prompt; not stored. An edit or a resumption has its
  // own.
  std::string instructions{};
  // First asks the model for a summary, which replaces the earlier messages in requests.
  bool compact = false;
  // A request with the same key in the same chat returns the earlier run and starts nothing. An unnamed request is only
  // recorded: see FollowRepeated.
  std::optional<ClientRequest> request{};
  FilesChoice files{};          // used by Edit and Regenerate
  TraceContext trace_parent{};  // the client's span, parent of the run; not valid: none
};

// A message and its answer, exchanged outside this chat: in another program or by another client.
struct SpokenTurn {
  std::string user_message;
  std::string answer;  // empty: no answer
};

// A question to a model, outside any chat (Engine::Ask).
struct ModelQuestion {
  // A file for one of the messages. A model that does not take the file gets its text, or the reason why there is none.
  struct File {
    std::size_t message = 0;  // its index in `messages`
    StoredFile file;
  };
  std::string model{};  // empty: the default
  std::string system{};
  std::vector<Message> messages{};
  std::vector<File> files{};
  std::vector<ToolSpec> tools{};  // the caller's tools, which the caller runs
  ModelWishes wishes{};
  TraceContext trace_parent{};
};

// An editor connected to a chat. While `hold` lives, the chat's file tools ask the editor, and the chat has the
// editor's tools. `log` carries the requests as frames: `editor_open` first, then an `editor_request` each:
// {request_id, method: "read"|"write", path, content?} or {request_id, method: "call", tool, arguments, terms}. An
// `editor_cancel` {request_id} withdraws a call. The log is closed when another editor takes over.
struct EditorConnection {
  std::shared_ptr<EventLog> log;
  std::shared_ptr<void> hold;
};
struct EditorAbilities {
  bool reads = true;    // returns its content of a file
  bool writes = false;  // accepts new content from tools in place of its unsaved text
};
// For a read: the content or an error. For a write: nothing or an error. For a call: the outcome or an error.
struct EditorAnswer {
  std::optional<std::string> content{};
  std::string error{};
  std::optional<ToolOutcome> outcome{};
};
// A tool that an editor offers, for example from an MCP server of its configuration.
struct EditorTool {
  ToolSpec spec;
  std::string server;         // the server that offers it, for people
  std::string terms;          // shown for approval beyond the spec (ToolTraits::terms); returned with each call
  bool any_arguments = true;  // a grant may cover all arguments
};

// The requests of an interaction, each with its lists (SentRequest::modules, tools) even if they are those of another.
struct RequestsOnRecord {
  std::optional<std::vector<SentRequest>> requests{};  // nullopt: not on record, because an earlier version ran it
  std::string program{};                               // RunRecord::program
};

// A part of a request: of the system prompt, a tool, a parameter or a message.
struct ToldPart {
  std::string name{};   // of the module, tool or parameter; empty: unknown
  std::string text{};   // a module's text; else JSON text as it was sent
  bool is_new = false;  // the request before it did not have it
};
struct ToldRequest {
  std::vector<ToldPart> system{}, tools{}, parameters{}, messages{};
  std::size_t gone = 0;  // number of parts that only the request before it had
};

// A run that waits for its chat. Thread-safe.
class WaitingRun {
 public:
  virtual ~WaitingRun() = default;
  // The id of the queued message; empty: the run starts as soon as the cancelled run has ended.
  virtual std::string queue_id() const = 0;
  // The interaction that it became. kGone (reason "dequeued"): it was removed; kUnavailable (reason "stopping"): a
  // queued message runs after the next start. Otherwise the reason why it could not start.
  virtual Result<InteractionId> outcome() const = 0;
};
// A message in a chat's queue.
struct QueueEntry {
  QueuedMessage message;
  std::optional<Error> error{};  // why it could not start; a change of the message retries it
};

// One client's hold on an interaction's events. The run counts as watched while the object lives. When the last hold on
// a running interaction ends, its OnDisconnect policy applies; for a queued message it decides whether the message
// leaves the queue. Movable only.
class EventSubscription {
 public:
  EventSubscription(ChatId chat, std::optional<InteractionId> interaction, std::shared_ptr<EventLog> events,
                    std::shared_ptr<void> hold)
      : chat_id(std::move(chat)), interaction_id(interaction), log(std::move(events)), hold_(std::move(hold)) {}
  EventSubscription(EventSubscription&&) = default;
  EventSubscription& operator=(EventSubscription&&) = default;

  ChatId chat_id;
  std::optional<InteractionId> interaction_id;  // nullopt: `waiting` is set
  std::shared_ptr<WaitingRun> waiting{};
  // Live, or filled from the stored interaction and closed. For a waiting run: empty until it starts, or only an error
  // if it never does.
  std::shared_ptr<EventLog> log;
  bool is_repeated = false;  // an earlier copy of this unnamed request started the run

 private:
  friend class Engine;
  std::shared_ptr<void> hold_;
};

struct AttachedEvents {
  EventSubscription subscription;
  std::uint64_t offset;  // where to begin reading
  InteractionStatus status;
  std::uint64_t first_seq, last_seq;  // to replay before the live stream; first > last: none
  std::vector<PendingApproval> pending_approvals;
  std::vector<PendingInput> pending_inputs;
};

struct CancelOutcome {
  bool was_running;
  InteractionStatus status;  // of the finished interaction if !was_running
};

// An interaction, and whether it is off the head's branch.
struct HistoryEntry {
  Interaction interaction;
  bool superseded = false;
};
struct History {
  ChatSummary summary;
  std::vector<HistoryEntry> entries;  // oldest first; a running one last, without final state
  std::vector<DamagedInteraction> damaged;
};
struct ChatListEntry {
  ChatSummary summary;                      // for a running chat with the run's additions
  std::optional<InteractionStatus> status;  // of the running interaction or the head; nullopt: empty chat
  std::size_t waiting = 0;                  // approvals and questions that can be answered now
  std::size_t jobs = 0;                     // background jobs that run here
  bool damaged = false;                     // something of it cannot be read, as far as this process has looked
  bool is_running() const { return status && !IsFinished(*status); }
};
struct ChatListPage {
  std::vector<ChatListEntry> chats;
  std::optional<ChatPlace> next;  // of the last one; nullopt: no others follow
};
// A place where the text was found.
struct SearchMatch {
  ChatId chat_id;
  std::string title{};  // of the chat
  InteractionId interaction_id;
  bool superseded = false;
  std::string where{};    // "user", "answer", "tool_call", "tool_result" or, of an imported chat, "summary"
  std::string snippet{};  // the found text with some context
};
struct SearchResult {
  std::vector<SearchMatch> matches;
  bool truncated = false;  // there may be more matches
};
// Who wrote the lines of a file of a workspace.
struct BlamedFile {
  std::string path, text;      // as it is now, valid UTF-8; without secrets
  std::string lines{};         // a JSON array of blame.schema.json
  std::size_t lost = 0;        // recorded contents that cannot be read, so lines of the agent may count as others'
  std::size_t unreadable = 0;  // chats of this folder that cannot be read, or not whole
};
// What finished interactions have used, on every branch, without those of other machines.
struct UsageReport {
  std::map<std::string, UsageByModel> days{};  // by day (UTC), "2026-11-30"
  struct OfChat {
    ChatId chat;
    std::string title;
    UsageByModel models{};
  };
  std::vector<OfChat> chats{};
  bool complete = true;  // false: some could not be read, or not in time
};
// Each member that is set replaces the present value.
struct AgendaChange {
  std::optional<std::vector<Task>> tasks{};  // a task with an empty id gets a new one
  std::optional<std::vector<std::string>> plan{};
};
// What a restore would do to a path.
struct FilePreview {
  std::string path;      // valid UTF-8
  std::string change{};  // "created", "modified" or "deleted"
  // Why the path would stay as it is. Unless forced: "changed" (by another program or person since), "not_kept" (its
  // present content would be lost). Even if forced: "lost" (the old content is not kept), "out_of_reach", "not_empty"
  // (the directory holds other files), "link_outside" (an imported link may lead out of the workspace). Empty: no
  // conflict.
  std::string conflict{};
  // The target state comes from an imported interaction: needs FilesChoice::allow_imported.
  bool imported = false;
  FileExtras loses{};  // that it had in the target state, or has now, and will not have
  std::string diff{};  // imported only: the effect as a unified diff; cut if it is long
};
struct FilesPreview {
  std::vector<FilePreview> files{};
  std::uint64_t omitted = 0;  // unrecorded changes on the way: they stay, and the restore needs force
  bool unseen = false;        // of a call on the way nothing is recorded: likewise
};
// What an edit would do. Side effects are calls of tools that are not read-only, in the superseded interactions.
struct EditPreview {
  std::vector<InteractionId> superseded;
  struct SideEffect {
    InteractionId interaction_id;
    std::string call_id, tool_name, tool_input;
    std::optional<std::string> path{};  // the file named by the call's arguments, if any
    bool failed = false;                // the result was an error: it may have done nothing, or a part
  };
  std::vector<SideEffect> side_effects;
  FilesPreview restore{};  // the effect on files if they are restored as well
};
// What an interaction did to workspace files.
struct FileDiff {
  WorkspaceChange change;
  std::string path;         // valid UTF-8
  std::string change_name;  // "created", "modified" or "deleted"
  std::string unified{};    // as git prints it; empty for a directory
};
struct InteractionDiff {
  std::vector<FileDiff> files{};
  std::uint64_t omitted = 0;  // further changed files, without a record
  bool unseen = false;        // what a call changed is not known
};

// Runs interactions: one at a time per chat, in any number of chats at once. Thread-safe. Failures, beside those of its
// parts: kConflict (reason "busy", details {"interaction_id"}) if the chat already has a run, kUnavailable (reason
// "stopping" or "overloaded").
//
//   const auto chat = *reprise::ChatId::Parse("demo");
//   auto run = engine.Start(chat, {.user_message = "Hello"});  // keep it: the run is cancelled without a subscriber
//   if (!run) return Complain(run.error().message);
//   for (const auto& open : engine.PendingApprovals()) {
//     auto answered = engine.AnswerApproval(open.request.approval_id, {.approved = true});
//   }
class Engine {
 public:
  // Something that a person may want to know away from the page.
  struct Attention {
    enum class Kind { kApproval, kQuestion, kEnded };  // kEnded: by itself, and no client was listening
    Kind kind = Kind::kEnded;
    ChatId chat;
    std::string id{};  // of the approval or the question
  };
  struct Parts {  // all must outlive the engine
    InteractionStore& store;
    RunStore& runs;  // of the chats in `store`
    // Take a finished interaction, in this order, if `store` cannot; the next start moves it to `store`.
    std::vector<InteractionStore*> fallback_stores;
    const ModelDirectory& models;
    const ToolRegistry& tools;           // of chats without a folder of their own, like prompt, history and hooks
    Workspaces* workspaces = nullptr;    // null: no chat has a folder of its own
    QuestionStore* questions = nullptr;  // null: only this process can answer questions
    SharedChanges* changes = nullptr;    // null: no other process uses these chats
    GrantStore* grants = nullptr;        // null: no grants for all chats
    // The rules that people have added to the running server, beside the configured ones. Called for each decision, on
    // any thread; empty: there are none.
    std::function<std::shared_ptr<const std::vector<ToolRule>>()> added_rules{};
    PromptSource prompt{};
    FileStore* files = nullptr;                         // of the chats; null: chats have no files
    WorkspaceHistory* workspace_history = nullptr;      // null: workspace changes are not recorded
    const WorkspaceReader* workspace_reader = nullptr;  // null: people cannot name workspace files
    ProjectInstructions* instructions = nullptr;        // null: none. For clients; the prompt holds those in use
    Audio* audio = nullptr;                             // null: no speech. For clients and attached recordings
    DocumentReader* documents = nullptr;                // null: the model gets no text of documents
    AuditLog* audit = nullptr;                          // null: tool calls are not audited
    Hooks* hooks = nullptr;
    Telemetry* telemetry = nullptr;  // gets spans and metrics; null: none
    // Called for each finished interaction once it is stored, on a thread that must not wait; null: nobody.
    std::function<void(const Interaction&)> finished{};
    // Called when a person should look, on a thread that must not wait and perhaps under locks of the engine; null:
    // nobody.
    std::function<void(const Attention&)> attention{};
    DailyUsage* usage = nullptr;  // null: daily usage is not counted and has no limit
    // Texts that are removed from tool output: keys and tokens.
    std::vector<std::string> secrets{};
    std::shared_ptr<const LearnedSecrets> learned_secrets{};  // likewise, and may grow; null: none
    GuardrailOptions guardrails{};
    // Validates a person's response to a form (a question with a schema). kInvalidArgument: the message says what to
    // correct. Called from any thread. Empty: any object is accepted.
    std::function<Result<void>(std::string_view schema, std::string_view response)> check_form{};
  };
  Engine(Parts parts, EngineOptions options);
  ~Engine();                       // Stop
  Engine(const Engine&) = delete;  // runs refer to it
  Engine& operator=(const Engine&) = delete;

  // --- after a crash ----------------------------------------------------------------------------------------------
  struct Recovered {
    std::size_t waiting = 0;  // still wait for an answer
    std::size_t failed = 0;   // with error "interrupted"; can be resumed
    std::size_t left = 0;     // damaged: named in the log, journals unchanged
  };
  // Recovers the interactions that were running when their process ended. Call it once, before any other function.
  Result<Recovered> Recover();

  // --- runs -------------------------------------------------------------------------------------------------------
  // Starts an interaction at the chat's head; creates an unknown chat. Nothing starts after a failure, as in Edit:
  // kNotFound (reason "no_such_file": an attachment is no file of the chat), kInvalidArgument (reason "unknown_model",
  // "guardrail", or "invalid_member": queued messages have no attachments or `compact`), kUnavailable ("queue_full").
  Result<EventSubscription> Start(const ChatId& chat, StartRequest request);
  // The run that the same request started earlier in the chat. nullopt: none, or the unnamed request may run again.
  // kUnprocessable (reason "idempotency_key_reused"), kConflict (reason "request_waits"): it waits in the queue.
  Result<std::optional<EventSubscription>> FollowRepeated(const ChatId& chat, const ClientRequest& request);
  // Restores the state before `interaction` and runs `request` there as its sibling, which becomes the head.
  Result<EventSubscription> Edit(const ChatId& chat, InteractionId interaction, StartRequest request);
  // Edit with the interaction's own message. kConflict (reason "no_message") if it has none.
  Result<EventSubscription> Regenerate(const ChatId& chat, InteractionId interaction, StartRequest request);
  // Summarizes the messages before the last one; later requests carry the summary instead. The summary is an
  // interaction without a message. kNotFound if the chat has no messages yet.
  Result<EventSubscription> Compact(const ChatId& chat, StartRequest request);
  // Resumes a failed or cancelled interaction as a new sibling of it; `request` needs no message. kConflict (reason
  // "not_resumable") if it completed.
  Result<EventSubscription> Resume(const ChatId& chat, InteractionId interaction, StartRequest request);
  // Replays the events of a finished interaction: with the original pauses divided by `speed`, or at once if `speed` is
  // 0. kConflict (reason "not_replayable") while it runs.
  Result<EventSubscription> ReplayEvents(const ChatId& chat, InteractionId interaction, double speed);
  // Runs the agent again on the recorded results of models and tools, and compares every event; has no side effects.
  // Blocks while the agent computes. kConflict (reason "not_replayable"): it still runs, or has no record for a replay.
  // kCurrent also compares its requests with those of today; fails as Workspaces::Open, too.
  Result<ReplayReport> ReplayRecorded(const ChatId&, InteractionId, ReplayInput input = ReplayInput::kRecorded);
  // Goes on from an event of a finished interaction with something different (reprise/what_if.h), in a copy of its
  // workspace; the chat stays as it is. The events are first those of the record. Before the last one comes the frame
  // "what_if" {files, diff, first_difference}. The run ends when the subscription does. Its usage counts for the day,
  // and the budgets of interactions and chats hold. Hooks do not run. kInvalidArgument if
  // `changes` do not fit; kConflict (reason "not_replayable"); kForbidden (reasons "budget_exceeded",
  // "mode_not_allowed"); kUnavailable (reason "queue_full"): two such runs are under way; fails as Workspaces::Open,
  // too.
  Result<EventSubscription> WhatIf(const ChatId& chat, InteractionId interaction, const WhatIfChanges& changes);
  // The first difference between an interaction and a finished second run of its message.
  Result<ReplayReport> CompareReplay(const ChatId& chat, InteractionId recorded, InteractionId again);
  // What an edit of `interaction` would do; changes nothing. A run in the chat counts as superseded, with the calls
  // that it has made; what it changes in files does not count yet. kConflict (reason "busy") while `interaction` itself
  // runs.
  Result<EditPreview> PreviewEdit(const ChatId& chat, InteractionId interaction);
  // Adds turns from elsewhere after `after` (nullopt: as the root of a branch), each as a finished interaction. The
  // last becomes the head, which is returned. `edited_from`: the interaction that the first turn replaces. Creates an
  // unknown chat. kConflict (reason "busy") while a run is active. REQUIRES: `turns` are not empty.
  Result<InteractionId> AddTurns(const ChatId& chat, std::optional<InteractionId> after,
                                 std::optional<InteractionId> edited_from, const std::vector<SpokenTurn>& turns);
  // Asks a model without a chat: stores nothing, and sends nothing but the question. Its usage counts for the day.
  // Otherwise as ModelClient::Generate: `stream` must live until `done` is called, once. If Ask fails, `done` is not
  // called: kInvalidArgument (reasons "unknown_model", "guardrail"), kForbidden (reason "budget_exceeded"),
  // kUnavailable (reason "stopping").
  Result<void> Ask(const ModelQuestion& question, ModelStream& stream, std::stop_token stop, ModelClient::Done done);
  // --- editors
  // Connects an editor to the chat, which need not exist yet. An editor connected earlier is disconnected. kUnavailable
  // (reason "overloaded").
  Result<EditorConnection> ConnectEditor(const ChatId& chat, EditorAbilities abilities);
  // Sets the tools of the chat's editor; each call needs approval or a grant. Returns the number of accepted tools:
  // those whose names are free and allowed by the configuration. kNotFound: no editor is connected. kUnavailable
  // (reason "overloaded"): all editors together offer too many tools.
  Result<std::size_t> OfferEditorTools(const ChatId& chat, std::vector<EditorTool> tools);
  // kNotFound: no such request of this chat's editor waits. kInvalidArgument: the answer does not fit the request.
  Result<void> AnswerEditor(const ChatId& chat, std::string_view request_id, EditorAnswer answer);

  // What a restore would do to files if the head moved to `to`; nullopt: to the target of Undo. kNotFound.
  Result<FilesPreview> PreviewFiles(const ChatId& chat, std::optional<InteractionId> to, FilesChoice files = {});
  // What an interaction did to files, by path; with `call_id` what that call did, as far as recorded. kConflict (reason
  // "not_finished") while it runs.
  Result<InteractionDiff> DiffOf(const ChatId& chat, InteractionId interaction,
                                 const std::optional<std::string>& call_id = std::nullopt);

  // The requests to models that an interaction has sent. kConflict (reason "not_finished") while it runs.
  Result<RequestsOnRecord> RequestsOf(const ChatId& chat, InteractionId interaction);
  // The body of one of them, byte for byte as it was sent. kNotFound, kConflict as above; kCorruption if the record
  // does not add up to it.
  Result<std::string> RequestBody(const ChatId& chat, InteractionId interaction, std::uint64_t index);
  // What one of them told the model, in parts. Fails as above; kInvalidArgument if the body is no JSON.
  Result<ToldRequest> ToldBy(const ChatId& chat, InteractionId interaction, std::uint64_t index);

  // Asks the run to stop; returns at once. Idempotent; for a finished interaction returns its status.
  Result<CancelOutcome> Cancel(const ChatId& chat, InteractionId interaction);

  // Events after `after_seq`, recorded ones first, then live. Does not count as watching until Listen, except that a
  // run of another process counts as watched at once. kInvalidArgument (reason "cursor_ahead") if `after_seq` is beyond
  // the last event.
  Result<AttachedEvents> Attach(const ChatId& chat, InteractionId interaction, std::uint64_t after_seq);

  // Makes `subscription` count as watching, if its interaction still runs.
  void Listen(EventSubscription& subscription);

  // --- background jobs ------------------------------------------------------------------------------------------
  // Those that run here or have ended lately, and those that the chat's head knows and that are lost. kNotFound: no
  // such chat.
  Result<std::vector<Job>> ListJobs(const ChatId& chat);
  // As JobsOfChat::Read and Stop.
  Result<JobOutput> ReadJob(const ChatId& chat, const std::string& job, std::uint64_t after);
  Result<Job> StopJob(const ChatId& chat, const std::string& job);
  // As JobPorts::Open and Close, for a person (`by`; empty: the only one). Each is in the audit log, without which no
  // port is opened.
  Result<JobPort> OpenJobPort(const ChatId& chat, const std::string& job, std::uint16_t port, const std::string& by);
  Result<JobPort> CloseJobPort(const ChatId& chat, const std::string& job, std::uint16_t port, const std::string& by);

  // --- queued messages ------------------------------------------------------------------------------------------
  // In run order. kNotFound: no such chat.
  Result<std::vector<QueueEntry>> GetQueue(const ChatId& chat);
  // kNotFound: no such message waits. kInvalidArgument (reason "guardrail"): the new text is refused.
  Result<QueueEntry> ChangeQueued(const ChatId& chat, std::string_view id, const std::string& user_message);
  Result<void> RemoveQueued(const ChatId& chat, std::string_view id);

  // --- approvals --------------------------------------------------------------------------------------------------
  // The first answer wins. kNotFound: no such approval (in `within`, if given). kInvalidArgument: reason
  // "already_processed" (it has an answer, or its run has ended), "expired" (too late), "invalid_answer" (the approval
  // does not offer this scope or pattern) or "invalid_member" (the tool cannot have a grant for all chats). kConflict:
  // reason "digest_mismatch", "stale" (the tool has changed, so the call is asked about again) or "denied_by_rule". If
  // a disk failure prevents a grant for all chats, the approval keeps waiting. A consent revokes the grants for all
  // chats to the tool's earlier version. If this returns ok, the answer survives the process. kStorageFull, kIo: the
  // answer was taken but could not be recorded, and the run fails; kUnavailable (reason "not_on_record"): it was taken,
  // but the disk has not responded for two seconds.
  using InteractionRef = reprise::InteractionRef;
  Result<PendingApproval> AnswerApproval(std::string_view approval_id, ApprovalAnswer answer,
                                         std::optional<InteractionRef> within = std::nullopt);
  // An approval that can be answered now. Errors as above.
  Result<PendingApproval> FindApproval(std::string_view approval_id) const;
  // Oldest first.
  std::vector<PendingApproval> PendingApprovals() const;
  // What the waiting call would change, for the present files and the arguments shown; stores nothing. kNotFound: no
  // such approval waits; kConflict as Tool::PreviewChange.
  Result<FileChange> PreviewChange(std::string_view approval_id) const;

  // --- grants -----------------------------------------------------------------------------------------------------
  // Grants for all chats, oldest first, and their revocation. kNotFound: no grant has this id. An edit does not change
  // them.
  Result<std::vector<StandingGrant>> StandingGrants();
  Result<void> RevokeStandingGrant(std::string_view id);
  // Grants of a chat: of the running interaction or the head. A revocation is an interaction of its own, like a change
  // of the agenda. kNotFound: no such chat or grant; kConflict (reason "busy") while a run is active.
  Result<std::vector<Grant>> GetGrants(const ChatId& chat);
  Result<void> RevokeGrant(const ChatId& chat, std::string_view id);

  // --- questions of tools -----------------------------------------------------------------------------------------
  // As AnswerApproval. Also kInvalidArgument if the question has a schema and the response is no JSON object (reason
  // "invalid_answer") or fails Parts::check_form; the question keeps waiting.
  Result<PendingInput> AnswerInput(std::string_view request_id, InputAnswer answer,
                                   std::optional<InteractionRef> within = std::nullopt);
  std::vector<PendingInput> PendingInputs() const;

  // --- reading and arranging --------------------------------------------------------------------------------------
  // A running interaction is returned with its events so far.
  Result<Interaction> GetInteraction(const ChatId& chat, InteractionId interaction);
  Result<History> GetHistory(const ChatId& chat, bool all_branches);
  // The history, or a part of it, for reading piece by piece; unreadable parts are found while reading.
  // kInvalidArgument (reason "invalid_parameter") if `range.before` is not in the history.
  Result<std::unique_ptr<HistoryReader>> ReadHistory(const ChatId& chat, const HistoryRange& range,
                                                     HistoryStates states);
  // Searches one chat or all chats for `text`, ignoring case: chats as ListChats orders them, the newest matches of
  // each first. At most `limit` matches, and only those found within a few seconds. Runs of other processes are not
  // searched. kInvalidArgument: the text is empty.
  Result<SearchResult> Search(const std::string& text, const std::optional<ChatId>& chat, std::size_t limit);
  // What the chat's interactions have used; reads all of them.
  Result<ChatUsage> GetUsage(const ChatId& chat);
  // What the chats have used since then; reads those that have changed since, for some seconds at most.
  Result<UsageReport> GetUsageSince(Timestamp since);
  // Today's tokens, from finished interactions of all chats and from Ask; nullopt: not counted.
  std::optional<std::int64_t> UsedToday() const;
  Result<std::vector<ChatListEntry>> ListChats();
  // As ChatStore::ListPage.
  Result<ChatListPage> ListPage(const std::optional<ChatPlace>& after, std::size_t limit);
  // The interaction that runs in the chat, or waits for a person.
  std::optional<InteractionId> RunningIn(const ChatId& chat) const;
  // A single entry. kNotFound, kCorruption.
  Result<ChatListEntry> GetListEntry(const ChatId& chat);
  // The chats that ListChats leaves out.
  Result<std::vector<UnreadableChat>> ListUnreadableChats();
  // With these settings; `settings.workspace` as StartRequest::workspace. kConflict (reason "chat_exists"), and the
  // failures of ChangeChat and Workspaces::Choose.
  Result<ChatSummary> CreateChat(const ChatId& chat, ChatSettings settings);
  // Has the chat work there, as StartRequest::workspace does, for what is added to it before its first message.
  Result<void> WorkIn(const ChatId& chat, const std::string& workspace);
  // Allowed while a run is active, except for the workspace; its next call uses the new mode. kInvalidArgument (reason
  // "unknown_model"), kForbidden (reason "mode_not_allowed"): the server's mode is kDenyAll, which no chat may
  // override; the failures of Workspaces::Choose.
  Result<ChatSummary> ChangeChat(const ChatId& chat, ChatSettings settings);
  // Empties the queue, cancels a running interaction and waits for its checkpoint first. kConflict (reason "busy") if
  // another process has not ended its run within 20 seconds.
  Result<void> DeleteChat(const ChatId& chat);
  // Moves a superseded interaction and its descendants to the trash, as ChatStore::RemoveBranch does, and writes it to
  // the audit log. kConflict (reason "busy") while a run is active.
  Result<std::vector<InteractionId>> RemoveBranch(const ChatId& chat, InteractionId from);
  // InteractionStore::ListTrash and RestoreChat. kConflict (reason "chat_exists") also while a new chat of that name
  // starts.
  Result<std::vector<TrashEntry>> ListTrash();
  Result<ChatSummary> RestoreChat(std::string_view entry);
  // The agent's tasks and plan in the running interaction or the chat's head.
  Result<Agenda> GetAgenda(const ChatId& chat);
  // Changes tasks and plan by hand. The change is an interaction without a message and becomes the head: it is as
  // durable as others, and an edit of an earlier one leaves it behind. kConflict (reason "busy") while a run is active;
  // kNotFound: no such chat; kInvalidArgument (reason "invalid_member"): two tasks have the same id.
  Result<Agenda> ChangeAgenda(const ChatId& chat, AgendaChange change);
  // Failures of every function with a FilesChoice, before any change: kConflict (reason "imported_files", details
  // {"files"}) if a file is known only from an imported interaction and that is not allowed; kConflict (reason
  // "workspace_conflict", details {"files"}) if a file cannot be restored without force; kInvalidArgument (reason
  // "no_workspace_history") if workspace changes are not recorded; kConflict (reason "busy") while a run is active.
  Result<ChatSummary> MoveHead(const ChatId& chat, InteractionId interaction, FilesChoice files = {});
  // Moves the head to its parent. With FilesChoice::only it restores only the files, also those of the first
  // interaction. kConflict: reason "busy" while a run is active, "nothing_to_undo" if the chat is empty or its head is
  // the root of its branch.
  Result<ChatSummary> Undo(const ChatId& chat, FilesChoice files = {});
  // Copies the branch that ends at a finished interaction into a new chat (InteractionStore::ForkChat), even while
  // `source` has a run. kConflict: reason "chat_exists", or "not_finished" if the interaction runs.
  Result<ChatListEntry> ForkChat(const ChatId& source, InteractionId interaction, const ChatId& chat,
                                 const std::optional<std::string>& title, FilesChoice files = {});

  // Imports a whole chat (InteractionStore::ImportChat) with its files.
  Result<ChatListEntry> ImportChat(const IncomingChat& chat);

  // --- files of chats ---------------------------------------------------------------------------------------------
  // Failures as FileStore; kNotFound for an unknown chat, but AddFile creates the chat. AddFile returns the existing
  // file if one has the same name, type and content.
  Result<FileInfo> AddFile(const ChatId& chat, const StoredFile& file);
  Result<FileListing> ListFiles(const ChatId& chat);
  Result<StoredFile> GetFile(const ChatId& chat, const FileId& file);
  Result<void> DeleteFile(const ChatId& chat, const FileId& file);
  // Workspace files that a person names in a message: those that the agent may read without approval.
  // AttachWorkspaceFile copies the present file into the chat, as AddFile does. kNotFound (reason "no_workspace" or
  // "no_such_file"), kForbidden (reason "not_readable"), and the failures of WorkspaceReader.
  Result<WorkspaceReader::Listing> FindWorkspaceFiles(const std::optional<ChatId>& chat, std::string_view text,
                                                      std::size_t limit);
  Result<FileInfo> AttachWorkspaceFile(const ChatId& chat, std::string_view path);
  // Who wrote its lines, according to all chats of the folder; as `reprise blame`. Fails as AttachWorkspaceFile, and
  // with kInvalidArgument for a binary file, kUnavailable (reason "overloaded") while another is looked up, and
  // kTooLarge if the chats cannot be read in ten seconds.
  Result<BlamedFile> Blame(const ChatId& chat, std::string_view path);

  const ModelDirectory& models() const;
  // The folder of a chat with what belongs to it; nullopt or an unknown chat: the server's. The failures of
  // Workspaces::Open.
  Result<std::shared_ptr<const WorkspaceParts>> WorkspaceOf(const std::optional<ChatId>& chat) const;
  // That of a folder for new chats (StartRequest::workspace). Also the failures of Workspaces::Choose.
  Result<std::shared_ptr<const WorkspaceParts>> OpenWorkspace(const std::string& path) const;
  const ToolRegistry& tools() const;  // of the server's folder
  const EngineOptions& options() const;
  // All rules that hold in a folder now, the configured ones first; null: none.
  std::shared_ptr<const std::vector<ToolRule>> RulesIn(const WorkspaceParts& workspace) const;
  const AuditLog* audit() const;       // null: none
  const Telemetry* telemetry() const;  // null: none
  Audio* audio() const;                // null: none
  // Changes in any chat, for clients that show a list of chats: they need not poll.
  ChatChanges& changes();

  struct Counters {
    std::size_t active_runs, waiting_approvals;
    std::size_t waiting_runs;  // active runs in which an approval or question waits
    std::uint64_t started, completed, failed, cancelled;
  };
  Counters counters() const;

  // Refuses new runs and changes (kUnavailable, reason "stopping"), and gives up runs that wait for a person, as Stop
  // does. Other runs continue until they end, `limit` has passed or Stop is called.
  void Drain(std::chrono::milliseconds limit);
  // Refuses new runs, cancels the running ones (reason "server_stopping") and waits for their checkpoints. A run that
  // waits for a person stays in its journal, if the store keeps one, for Recover of the next engine; its log is closed
  // without an end event. (A tool that runs meanwhile is stopped and its result kept. A waiting question of a tool ends
  // if the tool does more than ask.)
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
