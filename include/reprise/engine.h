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
#include "reprise/model_client.h"
#include "reprise/project_instructions.h"
#include "reprise/question_store.h"
#include "reprise/queue.h"
#include "reprise/replay.h"
#include "reprise/result.h"
#include "reprise/run_store.h"
#include "reprise/system_prompt.h"
#include "reprise/telemetry.h"
#include "reprise/tool.h"
#include "reprise/workspace_change.h"
#include "reprise/workspace_history.h"
#include "reprise/workspace_reader.h"

namespace reprise {

// What becomes of a request to run something in a chat that has a run.
enum class IfRunning {
  kReject,  // kConflict (reason "busy")
  kQueue,   // it waits for that one, and for those that wait already; messages only
  kCancel,  // that one is cancelled, and this one begins when it has its checkpoint, before any that wait
};

struct EngineOptions {
  int max_rounds = 25;
  std::chrono::milliseconds disconnect_grace{2000};
  std::chrono::milliseconds tool_timeout{60'000};
  std::chrono::milliseconds save_timeout{5000};
  ApprovalMode approval_mode = ApprovalMode::kAsk;
  std::shared_ptr<const std::vector<ToolRule>> rules{};  // of the configuration; null: none
  std::chrono::milliseconds approval_expiry{0};          // how long an approval waits; 0: for ever
  int max_retries = 3;                                   // of a model request that fails for a reason that may pass
  std::size_t max_active_runs = 10'000;
  int max_tool_calls_per_minute = 0;  // of a chat; 0: no limit
  UsageBudget budget{};
  PriceTable prices{};
  PartLimits parts{};       // what of attached files goes into one request as it is
  std::string workspace{};  // where the tools work, for people and clients; empty: it is not told
};

// What becomes of the workspace when a chat goes to another of its states.
struct FilesChoice {
  bool restore = false;  // what the chat's interactions have changed becomes what it was in that state; else it stays
  bool force = false;    // also what somebody else has changed since, or cannot be recorded
  bool only = false;     // of an undo, with `restore`: the chat stays where it is
  bool allow_imported = false;  // also what is known from an imported interaction alone
};

struct StartRequest {
  std::string user_message{};
  std::string model{};  // empty: the default
  OnDisconnect on_disconnect = OnDisconnect::kCancel;
  IfRunning if_running = IfRunning::kReject;
  // Files of the chat whose text goes with the message. nullopt: none, or when an interaction is edited or run again,
  // what was attached to it, as it was then.
  std::optional<std::vector<FileId>> attachments{};
  // The head that it has to follow, nullopt in it: that of an empty chat. Empty: whatever head there is. Of Start
  // alone, which fails with kConflict (reason "stale") where the chat ends elsewhere.
  std::optional<std::optional<InteractionId>> follows{};
  // What the client tells the model for this run alone, behind the system prompt; kept nowhere. An edit or a resumption
  // has its own.
  std::string instructions{};
  // From this message on a summary, which the model makes first, stands in requests for what was said before it.
  bool compact = false;
  // If a request of the same chat had the same key, this one leads to what that one began, and begins nothing. An
  // unnamed one is only noted: see FollowRepeated.
  std::optional<ClientRequest> request{};
  FilesChoice files{};          // of Edit and Regenerate
  TraceContext trace_parent{};  // the span of the client that this is a part of; not valid: none
};

// A message and its answer that were exchanged elsewhere: with another program, or at another client's hands.
struct SpokenTurn {
  std::string user_message;
  std::string answer;  // empty: nobody has answered
};

// A question to a model alone (Engine::Ask).
struct ModelQuestion {
  // A file that goes with one of the messages: as it is where the model takes such, else its text, or why there is
  // none.
  struct File {
    std::size_t message = 0;  // its number
    StoredFile file;
  };
  std::string model{};  // empty: the default
  std::string system{};
  std::vector<Message> messages{};
  std::vector<File> files{};
  std::vector<ToolSpec> tools{};  // of the caller, who runs them
  ModelWishes wishes{};
  TraceContext trace_parent{};
};

// An editor that is connected with a chat: as long as `hold` lives, the chat's file tools ask it, and its own tools are
// the chat's. `log` has its requests, as frames: `editor_open`, then an `editor_request` each time: {request_id,
// method: "read"|"write", path, content?} or {request_id, method: "call", tool, arguments, terms}, and an
// `editor_cancel` {request_id} for a call that nobody waits for any more. It is closed when another editor takes its
// place.
struct EditorConnection {
  std::shared_ptr<EventLog> log;
  std::shared_ptr<void> hold;
};
struct EditorAbilities {
  bool reads = true;    // it says what it has of a file
  bool writes = false;  // it takes what tools would put in the place of what it has not saved
};
// Of a read: the content, or an error. Of a write: nothing, or an error. Of a call: what it came to, or an error.
struct EditorAnswer {
  std::optional<std::string> content{};
  std::string error{};
  std::optional<ToolOutcome> outcome{};
};
// A tool that an editor has, of an MCP server that it was configured with, say.
struct EditorTool {
  ToolSpec spec;
  std::string server;         // whose it is, for people
  std::string terms;          // what a person agrees to beyond the spec (ToolTraits::terms); comes back with each call
  bool any_arguments = true;  // it may be granted for all arguments at once
};

// A run that has to wait for its chat. Thread-safe.
class WaitingRun {
 public:
  virtual ~WaitingRun() = default;
  // Of the message in the chat's queue; empty: it begins as soon as the cancelled run has ended.
  virtual std::string queue_id() const = 0;
  // What it has become. kGone (reason "dequeued"): it was removed; kUnavailable (reason "stopping"): a queued message
  // runs after the next start; or why it could not begin.
  virtual Result<InteractionId> outcome() const = 0;
};
// A message in a chat's queue.
struct QueueEntry {
  QueuedMessage message;
  std::optional<Error> error{};  // why it could not begin when it was its turn; it is tried again when it is changed
};

// One client's hold on an interaction's events. As long as the object lives, the run counts as listened to; when the
// last one of a running interaction goes, its OnDisconnect policy applies. (A message that still waits is removed from
// the queue then, or stays.) Movable only.
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
  // Live, or filled from the stored interaction and closed. Of a run that waits: empty until it begins, or an error
  // alone if it never does.
  std::shared_ptr<EventLog> log;
  bool is_repeated = false;  // the same request has begun it before, without a name

 private:
  friend class Engine;
  std::shared_ptr<void> hold_;
};

struct AttachedEvents {
  EventSubscription subscription;
  std::uint64_t offset;  // where to begin reading
  InteractionStatus status;
  std::uint64_t first_seq, last_seq;  // to be replayed before the stream is live; first > last: nothing
  std::vector<PendingApproval> pending_approvals;
  std::vector<PendingInput> pending_inputs;
};

struct CancelOutcome {
  bool was_running;
  InteractionStatus status;  // of the finished interaction if !was_running
};

// An interaction and whether it is on the head's branch.
struct HistoryEntry {
  Interaction interaction;
  bool superseded = false;
};
struct History {
  ChatSummary summary;
  std::vector<HistoryEntry> entries;  // oldest first; a running one last, without its final state
  std::vector<DamagedInteraction> damaged;
};
struct ChatListEntry {
  ChatSummary summary;                      // of a running chat with what its run has added
  std::optional<InteractionStatus> status;  // of the running interaction, or of the head; nullopt: empty chat
  std::size_t waiting = 0;                  // approvals and questions that can be answered now
  bool is_running() const { return status && !IsFinished(*status); }
};
// A place where a text was found.
struct SearchMatch {
  ChatId chat_id;
  std::string title{};  // of the chat
  InteractionId interaction_id;
  bool superseded = false;
  std::string where{};    // "user", "answer", "tool_call" or "tool_result"
  std::string snippet{};  // what was found, with some text around it
};
struct SearchResult {
  std::vector<SearchMatch> matches;
  bool truncated = false;  // there may be more
};
// What is given replaces what there is.
struct AgendaChange {
  std::optional<std::vector<Task>> tasks{};  // one with an empty id is given one
  std::optional<std::vector<std::string>> plan{};
};
// What a restore would make of a path.
struct FilePreview {
  std::string path;      // valid UTF-8
  std::string change{};  // "created", "modified" or "deleted"
  // Why it is left alone unless it is forced: "changed" (by somebody else since), "not_kept" (what is there would be
  // lost). Left alone in any case: "lost" (what was there then is not kept), "out_of_reach", "not_empty" (a directory
  // with other things in it stands in the way), "link_outside" (an imported link that may lead out of the workspace).
  // Empty: no conflict.
  std::string conflict{};
  // An imported interaction says what it is to be: it takes FilesChoice::allow_imported.
  bool imported = false;
  std::string diff{};  // of an imported one: what would become of it, as a unified diff; cut where it is long
};
struct FilesPreview {
  std::vector<FilePreview> files{};
  std::uint64_t omitted = 0;  // changes on the way of which nothing is recorded: they stay, and it takes force to go
};
// What an edit would do; the side effects are calls of tools that are not read-only, in the superseded interactions.
struct EditPreview {
  std::vector<InteractionId> superseded;
  struct SideEffect {
    InteractionId interaction_id;
    std::string call_id, tool_name, tool_input;
    std::optional<std::string> path{};  // of the file that the call was about, if its arguments name one
    bool failed = false;                // its result was an error: it may have done nothing, or a part
  };
  std::vector<SideEffect> side_effects;
  FilesPreview restore{};  // what it would do besides with files restored
};
// What an interaction did to files of the workspace.
struct FileDiff {
  WorkspaceChange change;
  std::string path;         // valid UTF-8
  std::string change_name;  // "created", "modified" or "deleted"
  std::string unified;      // as git prints it; empty for a directory
};
struct InteractionDiff {
  std::vector<FileDiff> files{};
  std::uint64_t omitted = 0;  // further files that have changed, of which nothing is recorded
};

// Runs interactions: one at a time per chat, any number of chats at once. Thread-safe.
//
// Failures beside those of the parts it is made of: kConflict (reason "busy", details {"interaction_id"}) if the chat
// has a run already, kUnavailable (reason "stopping" or "overloaded").
class Engine {
 public:
  struct Parts {  // all must outlive the engine
    InteractionStore& store;
    RunStore& runs;  // of the chats in `store`
    // Where a finished interaction goes when `store` cannot take it, in this order; brought home at the next start.
    std::vector<InteractionStore*> fallback_stores;
    const ModelDirectory& models;
    const ToolRegistry& tools;
    QuestionStore* questions = nullptr;  // null: what is asked can be answered in this process alone
    SharedChanges* changes = nullptr;    // null: no other process uses these chats
    GrantStore* grants = nullptr;        // null: nothing can be granted for always
    PromptSource prompt{};
    FileStore* files = nullptr;                         // of the chats; null: chats have no files
    WorkspaceHistory* workspace_history = nullptr;      // null: nobody records what is changed in the workspace
    const WorkspaceReader* workspace_reader = nullptr;  // null: there is no workspace whose files people could name
    ProjectInstructions* instructions = nullptr;  // null: there are none. For clients; the prompt has what is used
    Audio* audio = nullptr;  // null: speech is neither heard nor made. For clients, and recordings that are attached
    DocumentReader* documents = nullptr;  // null: of documents the model gets no text
    AuditLog* audit = nullptr;            // null: no account of tool calls is kept
    Hooks* hooks = nullptr;
    Telemetry* telemetry = nullptr;  // who is told of runs, requests and calls; null: nobody
    DailyUsage* usage = nullptr;     // null: nobody counts what is used in a day, and there is no limit to it
    // Texts that are taken out of what tools say: keys and tokens.
    std::vector<std::string> secrets{};
    GuardrailOptions guardrails{};
    // Checks what a person has filled into a form (a question with a schema) before it is taken: kInvalidArgument with
    // words that say what to mend. Called by any thread. Empty: any object is taken.
    std::function<Result<void>(std::string_view schema, std::string_view response)> check_form{};
  };
  Engine(Parts parts, EngineOptions options);
  ~Engine();                       // Stop
  Engine(const Engine&) = delete;  // runs refer to it
  Engine& operator=(const Engine&) = delete;

  // --- after a crash ----------------------------------------------------------------------------------------------
  struct Recovered {
    std::size_t waiting = 0;  // for an answer, as they did
    std::size_t failed = 0;   // with error "interrupted"; can be resumed
    std::size_t left = 0;     // damaged: named in the log, their journals untouched
  };
  // Takes up the interactions whose process ended before they did. Call it once, before anything else.
  Result<Recovered> Recover();

  // --- runs -------------------------------------------------------------------------------------------------------
  // Starts an interaction at the chat's head; an unknown chat is created. kUnavailable (reason "queue_full"): so many
  // wait in this chat already. An attachment that is not a file of the chat is kNotFound (reason "no_such_file"), here
  // and in Edit, and nothing has begun; kInvalidArgument if the message is to be queued: that keeps no attachments.
  Result<EventSubscription> Start(const ChatId& chat, StartRequest request);
  // What the same request has begun in the chat before; nullopt: nothing, or of an unnamed request, nothing that must
  // not happen twice. kUnprocessable (reason "idempotency_key_reused").
  Result<std::optional<EventSubscription>> FollowRepeated(const ChatId& chat, const ClientRequest& request);
  // Restores the state before `interaction` and runs `request` from there as its sibling, which becomes the head.
  Result<EventSubscription> Edit(const ChatId& chat, InteractionId interaction, StartRequest request);
  // Edit with the interaction's own message. kConflict (reason "no_message") if it has none.
  Result<EventSubscription> Regenerate(const ChatId& chat, InteractionId interaction, StartRequest request);
  // Sums up what was said before the last message; later requests have the summary in its place. An interaction of its
  // own, without a message. kNotFound if nothing was said yet.
  Result<EventSubscription> Compact(const ChatId& chat, StartRequest request);
  // Goes on, as its sibling, where an interaction failed or was cancelled; `request` needs no message. kConflict
  // (reason "not_resumable") if it came to its end.
  Result<EventSubscription> Resume(const ChatId& chat, InteractionId interaction, StartRequest request);
  // Shows the events of a finished interaction again: with the pauses they had, divided by `speed`, or at once if that
  // is 0. kConflict (reason "not_replayable") while it runs.
  Result<EventSubscription> ReplayEvents(const ChatId& chat, InteractionId interaction, double speed);
  // Runs the agent again on the recorded results of models and tools and compares every event; touches nothing. Blocks
  // for as long as the agent computes. kConflict (reason "not_replayable"): it runs, or its record is not of this kind.
  Result<ReplayReport> ReplayRecorded(const ChatId& chat, InteractionId interaction);
  // Where a second run of an interaction's message, now finished, first did something else.
  Result<ReplayReport> CompareReplay(const ChatId& chat, InteractionId recorded, InteractionId again);
  Result<EditPreview> PreviewEdit(const ChatId& chat, InteractionId interaction);
  // Adds what was said elsewhere behind `after` (nullopt: as the first of a branch), each turn as an interaction of its
  // own that has ended; the last becomes the head. `edited_from`: in whose place the first of them stands. An unknown
  // chat is created. Gives the head. kConflict (reason "busy") while a run is active. REQUIRES: `turns` are not empty.
  Result<InteractionId> AddTurns(const ChatId& chat, std::optional<InteractionId> after,
                                 std::optional<InteractionId> edited_from, const std::vector<SpokenTurn>& turns);
  // Asks a model without a chat: nothing is kept, and nothing of ours is told to it. What it uses counts for the day.
  // Otherwise as ModelClient::Generate: `stream` must live until `done` is called, once. When this fails `done` is not
  // called: kInvalidArgument (reasons "unknown_model", "guardrail"), kForbidden (reason "budget_exceeded"),
  // kUnavailable (reason "stopping").
  Result<void> Ask(const ModelQuestion& question, ModelStream& stream, std::stop_token stop, ModelClient::Done done);
  // --- editors
  // An editor on this chat, known to the engine or not; one that was connected before makes room. kUnavailable (reason
  // "overloaded").
  Result<EditorConnection> ConnectEditor(const ChatId& chat, EditorAbilities abilities);
  // From now on the editor that is connected with this chat has these tools, which ask before each call that nobody has
  // granted. How many of them are the chat's: not those whose names are taken, or that the configuration does not
  // allow. kNotFound: none is connected. kUnavailable (reason "overloaded"): those of all editors are too much.
  Result<std::size_t> OfferEditorTools(const ChatId& chat, std::vector<EditorTool> tools);
  // kNotFound: no such request waits for this chat's editor (any more). kInvalidArgument: it does not answer that.
  Result<void> AnswerEditor(const ChatId& chat, std::string_view request_id, EditorAnswer answer);

  // What restoring files would do when the chat's head goes to this interaction; nullopt: to where Undo goes.
  // kNotFound.
  Result<FilesPreview> PreviewFiles(const ChatId& chat, std::optional<InteractionId> to, FilesChoice files = {});
  // What an interaction did to files, by path. kConflict (reason "not_finished") while it runs. With `call_id` what
  // that call did, as far as it has been recorded.
  Result<InteractionDiff> DiffOf(const ChatId& chat, InteractionId interaction,
                                 const std::optional<std::string>& call_id = std::nullopt);

  // Asks the run to stop; returns at once. Idempotent; a finished interaction reports its status.
  Result<CancelOutcome> Cancel(const ChatId& chat, InteractionId interaction);

  // Events after `after_seq`, recorded then live; looking at them is not listening until Listen. kInvalidArgument
  // (reason "cursor_ahead") if there is no such event yet.
  Result<AttachedEvents> Attach(const ChatId& chat, InteractionId interaction, std::uint64_t after_seq);

  // From now on `subscription` counts as listening, if its interaction still runs.
  void Listen(EventSubscription& subscription);

  // --- messages that wait ---------------------------------------------------------------------------------------
  // In the order in which they will run. kNotFound: no such chat.
  Result<std::vector<QueueEntry>> GetQueue(const ChatId& chat);
  // kNotFound: no such message waits (any more).
  Result<QueueEntry> ChangeQueued(const ChatId& chat, std::string_view id, const std::string& user_message);
  Result<void> RemoveQueued(const ChatId& chat, std::string_view id);

  // --- approvals --------------------------------------------------------------------------------------------------
  // The first answer wins. kNotFound: no such approval (in that interaction, if one is named); kInvalidArgument (reason
  // "already_processed"): answered before, or its run has ended; (reason "expired"): too late; (reason
  // "invalid_member"): the tool cannot be granted for always; kConflict (reason "digest_mismatch"). If a grant for
  // always cannot be kept (the disk's failures), the approval goes on waiting. An approval that is a consent ends what
  // was granted for always to the tool as it was. When this returns ok the answer survives the process. kStorageFull,
  // kIo: it was taken and cannot be put on record, and the run fails; kUnavailable (reason "not_on_record"): it was
  // taken, and for two seconds the disk has not responded.
  using InteractionRef = reprise::InteractionRef;
  Result<PendingApproval> AnswerApproval(std::string_view approval_id, ApprovalAnswer answer,
                                         std::optional<InteractionRef> within = std::nullopt);
  // One that can be answered now. Errors as above.
  Result<PendingApproval> FindApproval(std::string_view approval_id) const;
  // Oldest first.
  std::vector<PendingApproval> PendingApprovals() const;
  // What the call that waits would change, on the files as they are now and with the arguments that were shown; nothing
  // of it is kept. kNotFound: no such approval waits (any more); kConflict as Tool::PreviewChange.
  Result<FileChange> PreviewChange(std::string_view approval_id) const;

  // --- grants -----------------------------------------------------------------------------------------------------
  // Those that count in every chat, oldest first, and the end of one: kNotFound if there is none with this id. An edit
  // leaves them as they are.
  Result<std::vector<StandingGrant>> StandingGrants();
  Result<void> RevokeStandingGrant(std::string_view id);
  // Those of a chat: of the running interaction, or of the head. kNotFound: no such chat, no such grant. The end of one
  // is an interaction of its own, as a change of the agenda is; kConflict (reason "busy") while a run is active.
  Result<std::vector<Grant>> GetGrants(const ChatId& chat);
  Result<void> RevokeGrant(const ChatId& chat, std::string_view id);

  // --- questions of tools -----------------------------------------------------------------------------------------
  // As AnswerApproval. kInvalidArgument too if the question has a schema and the response is no JSON object (reason
  // "invalid_member") or does not fit it (what Parts::check_form says); the question waits on.
  Result<PendingInput> AnswerInput(std::string_view request_id, InputAnswer answer,
                                   std::optional<InteractionRef> within = std::nullopt);
  std::vector<PendingInput> PendingInputs() const;

  // --- reading and arranging --------------------------------------------------------------------------------------
  // A running interaction is returned with the events so far.
  Result<Interaction> GetInteraction(const ChatId& chat, InteractionId interaction);
  Result<History> GetHistory(const ChatId& chat, bool all_branches);
  // The same or a part of it, to be read piece by piece; what cannot be read is found on the way. kInvalidArgument
  // (reason "invalid_parameter") if `range.before` is none of its interactions.
  Result<std::unique_ptr<HistoryReader>> ReadHistory(const ChatId& chat, const HistoryRange& range,
                                                     HistoryStates states);
  // Where this text (in upper or lower case) was said, in one chat or in all of them, the newest first; at most `limit`
  // places, and those that are found within a few seconds. kInvalidArgument: no text.
  Result<SearchResult> Search(const std::string& text, const std::optional<ChatId>& chat, std::size_t limit);
  // What the chat's interactions have used; reads all of them.
  Result<ChatUsage> GetUsage(const ChatId& chat);
  // Tokens of today in all chats, as far as interactions have ended; nullopt: nobody counts them.
  std::optional<std::int64_t> UsedToday() const;
  Result<std::vector<ChatListEntry>> ListChats();
  // The interaction that runs in the chat, or waits for a person.
  std::optional<InteractionId> RunningIn(const ChatId& chat) const;
  // One of them. kNotFound, kCorruption.
  Result<ChatListEntry> GetListEntry(const ChatId& chat);
  // Those that ListChats leaves out.
  Result<std::vector<UnreadableChat>> ListUnreadableChats();
  Result<ChatSummary> CreateChat(const ChatId& chat, const std::string& title);
  // Also while a run is active, which decides on its next call by the new mode. kInvalidArgument (reason
  // "unknown_model"), kForbidden (reason "mode_not_allowed"): the server refuses what needs approval, and no chat can
  // have it otherwise.
  Result<ChatSummary> ChangeChat(const ChatId& chat, ChatSettings settings);
  // Empties its queue, cancels a run of the chat first and waits for its checkpoint.
  Result<void> DeleteChat(const ChatId& chat);
  // Moves a superseded interaction and all that continue it to the trash, as ChatStore::RemoveBranch does; the audit
  // log tells of it. kConflict (reason "busy") while a run is active.
  Result<std::vector<InteractionId>> RemoveBranch(const ChatId& chat, InteractionId from);
  // What the store's trash holds, and the way back: InteractionStore::ListTrash and RestoreChat. kConflict (reason
  // "chat_exists") also while a new chat of that name begins.
  Result<std::vector<TrashEntry>> ListTrash();
  Result<ChatSummary> RestoreChat(std::string_view entry);
  // The agent's tasks and plan: those of the running interaction, or of the chat's head.
  Result<Agenda> GetAgenda(const ChatId& chat);
  // Changes them by hand. The change is an interaction of its own, without a message, and becomes the head: it is as
  // durable as others, and an edit of an earlier one leaves it behind. kConflict (reason "busy") while a run is active;
  // kNotFound: no such chat; kInvalidArgument (reason "invalid_member"): two tasks have the same id.
  Result<Agenda> ChangeAgenda(const ChatId& chat, AgendaChange change);
  // Of all that take a FilesChoice: kConflict (reason "imported_files", details {"files"}) if one of the files is known
  // from an imported interaction alone, unless that is allowed; kConflict (reason "workspace_conflict", details
  // {"files"}) if files are to be restored and one of them cannot be, unless it is forced; kInvalidArgument (reason
  // "no_workspace_history") if nothing is recorded here. Nothing has changed then. kConflict (reason "busy") while a
  // run is active.
  Result<ChatSummary> MoveHead(const ChatId& chat, InteractionId interaction, FilesChoice files = {});
  // Moves the head to its parent; with FilesChoice::only the files alone go back, also of the first. kConflict: reason
  // "busy" while a run is active, "nothing_to_undo" if the chat is empty or its head the first of its branch.
  Result<ChatSummary> Undo(const ChatId& chat, FilesChoice files = {});
  // Copies the branch that ends at a finished interaction into a new chat (InteractionStore::ForkChat), whatever runs
  // in `source`. kConflict: reason "chat_exists", or "not_finished" if the interaction runs.
  Result<ChatListEntry> ForkChat(const ChatId& source, InteractionId interaction, const ChatId& chat,
                                 const std::optional<std::string>& title, FilesChoice files = {});

  // Takes a whole chat in (InteractionStore::ImportChat), with its files.
  Result<ChatListEntry> ImportChat(const IncomingChat& chat);

  // --- files of chats ---------------------------------------------------------------------------------------------
  // The failures are those of FileStore; kNotFound for a chat that is not there. AddFile creates an unknown chat, and
  // keeps a file once: one with the name, type and content of another is that one, which it gives.
  Result<FileInfo> AddFile(const ChatId& chat, const StoredFile& file);
  Result<FileListing> ListFiles(const ChatId& chat);
  Result<StoredFile> GetFile(const ChatId& chat, const FileId& file);
  Result<void> DeleteFile(const ChatId& chat, const FileId& file);
  // Files of the workspace that a person names in a message: those that the agent could read without a question to
  // anybody. AttachWorkspaceFile makes one, as it is now, a file of the chat, as AddFile does. kNotFound (reason
  // "no_workspace", or "no_such_file"), kForbidden (reason "not_readable"), and the failures of WorkspaceReader.
  Result<WorkspaceReader::Listing> FindWorkspaceFiles(std::string_view text, std::size_t limit);
  Result<FileInfo> AttachWorkspaceFile(const ChatId& chat, std::string_view path);

  const ModelDirectory& models() const;
  const ToolRegistry& tools() const;
  const EngineOptions& options() const;
  const AuditLog* audit() const;       // null: there is none
  const Telemetry* telemetry() const;  // likewise
  Audio* audio() const;                // likewise
  ProjectInstructions* instructions() const;
  // What changes from now on in any chat: who shows a list of them need not ask again and again.
  ChatChanges& changes();

  struct Counters {
    std::size_t active_runs, waiting_approvals;
    std::size_t waiting_runs;  // active ones in which something waits for a person
    std::uint64_t started, completed, failed, cancelled;
  };
  Counters counters() const;

  // Refuses new runs and changes from now on (kUnavailable, reason "stopping"), gives up at once what waits for a
  // person, as Stop does, and lets what runs go on: until it has ended, `limit` has passed, or Stop is called.
  void Drain(std::chrono::milliseconds limit);
  // Refuses new runs, cancels the running ones (reason "server_stopping") and waits until each has its checkpoint. What
  // waits for a person stays in its journal if the store keeps one: Recover of the next engine takes it up. Its log is
  // closed without an end. (A tool that runs meanwhile is ended and has its result; a tool that has asked ends the wait
  // if it does more than ask.)
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
