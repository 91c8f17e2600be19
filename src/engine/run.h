#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/agent_loop.h"
#include "agent/deferred_tools.h"
#include "approval/requests.h"
#include "approval/rules.h"
#include "base/mutex.h"
#include "engine/attachments.h"
#include "engine/editors.h"
#include "engine/elastic_pool.h"
#include "engine/jobs.h"
#include "engine/run_guard.h"
#include "engine/run_journal.h"
#include "reprise/engine.h"
#include "reprise/event_log.h"
#include "reprise/grant_store.h"
#include "reprise/interaction.h"
#include "reprise/workspace_history.h"

namespace reprise {

// The number of open questions of a run.
struct WaitingQuestions {
  std::size_t approvals = 0, inputs = 0;

  InteractionStatus Status() const {
    return inputs > 0      ? InteractionStatus::kWaitingInput
           : approvals > 0 ? InteractionStatus::kWaitingApproval
                           : InteractionStatus::kRunning;
  }
};

// The prompt of the folder for a run of this chat.
inline SystemPrompt PromptFor(const WorkspaceParts& workspace, const ChatId& chat) {
  SystemPrompt prompt = workspace.prompt ? workspace.prompt() : SystemPrompt();
  if (prompt.git_of) prompt.git = prompt.git_of(chat.str());
  return prompt;
}
// What the options and the model allow an agent.
AgentLimits LimitsOf(const EngineOptions& options, const ModelDirectory::Resolved& model);

// An interaction while it executes: the growing record, the log for its listeners, and the switch that stops it.
class Run final : public AgentObserver, public ApprovalGate, public std::enable_shared_from_this<Run> {
 public:
  struct Plan {
    Interaction interaction;  // RUNNING, without events
    AgentState state;         // the state to start from, with the user's message
    ModelDirectory::Resolved model;
    OnDisconnect on_disconnect;
    std::optional<ApprovalMode> approval_mode;  // StartRequest::approval_mode
    RunJournal journal;                         // already begun: its first record is stored
    SystemPrompt prompt{};
    Effort effort = Effort::kDefault;  // ChatSummary::effort
    AgentGuards guards{};
    Span span{};  // of the interaction, for telemetry
    // Where an interrupted agent continues; `state` then includes everything after the user's message.
    std::optional<Interrupted> interrupted = std::nullopt;
    std::vector<event::JobEnded> ended_jobs{};                // that the user's message tells of
    bool compact = false;                                     // StartRequest::compact
    bool only_compact = false;                                // there is no message and nothing else to do
    std::optional<std::int64_t> chat_version = std::nullopt;  // RunBeginning::expected_version
    std::shared_ptr<EventLog> log = nullptr;  // of a queued run, for its client; published when the run is visible
    // The events of this very interaction that another process has shown, and the id of a tool's open question.
    struct Shown {
      std::shared_ptr<EventLog> log;
      std::optional<std::string> request_id;
    };
    std::optional<Shown> shown = std::nullopt;
  };
  struct Services {                                   // all must outlive the run
    std::shared_ptr<const WorkspaceParts> workspace;  // the run keeps it
    ApprovalRequests& approvals;
    InputRequests& inputs;
    GrantStore* grants;  // null if there are none
    Timer& timer;
    const EngineOptions& options;
    const ModelDirectory& models;  // of the folder
    RunGuard::Parts guard;
    FileStore* files = nullptr;                                 // null if chats have no files
    DocumentReader* documents = nullptr;                        // null if documents are not read
    Jobs* jobs = nullptr;                                       // null: no background jobs
    Editors* editors = nullptr;                                 // null if editors cannot connect
    QuestionStore* questions = nullptr;                         // null if no other process needs to know the questions
    std::function<Result<ApprovalMode>(const ChatId&)> mode{};  // the chat's mode now
    std::function<Result<void>(const ChatId&, ApprovalMode)> set_mode{};
    std::function<ToolOutcome(const std::string& query, bool everywhere, const std::stop_token& stop)> recall{};
    std::function<void(std::function<void()>)> submit{};  // runs a job on a thread that may wait
    // Whether a client of another process listens to this run; may wait for the store.
    std::function<bool(const InteractionRef&)> is_followed_elsewhere{};
    std::function<ToolRules()> added_rules{};  // Engine::Parts
  };
  // Emits interaction_started.
  Run(Plan plan, Services services);

  const ChatId& chat_id() const { return chat_id_; }
  InteractionId id() const { return id_; }
  const std::optional<InteractionId>& parent_id() const { return parent_id_; }
  const std::optional<ClientRequest>& request() const { return request_; }
  // The chat's version when the run began, if known.
  std::optional<std::int64_t> chat_version() const { return chat_version_; }
  const std::shared_ptr<EventLog>& log() const { return log_; }
  const std::shared_ptr<const WorkspaceParts>& workspace() const { return services_.workspace; }
  const std::shared_ptr<RunHold>& hold() const { return hold_; }

  // --- in this order, each once -------------------------------------------------------------------------------------
  // Starts the agent. When it has ended and its last event (error, cancelled) is emitted, `ended` is called on a thread
  // of the executor, and the run is ready to be saved and completed. The run must live until then.
  void Start(Executor executor, std::function<void()> ended);
  // Start has thrown: the run has failed, as if the agent had ended.
  void FailToStart(const Error& error);
  // Whether the run stopped without an end: it waits for a person, in its journal, until another process takes it up.
  // Then it is not saved, and Leave closes the log as it is instead of Complete.
  bool is_left() const;
  void Leave();
  // Another process holds the run now: events that are not visible yet never will be.
  void CutOff();
  // Takes the finished interaction, for saving.
  Interaction TakeFinished();
  // `finished` could not be saved in its place: adds an error event and sets FAILED.
  void FailToSave(Interaction& finished, const Error& error);
  // Writes its line to the server's log, emits interaction_complete and closes the event log.
  void Complete();
  // Whether a hook waits for TellEnd.
  bool end_is_heard() const { return guard_.hears_end(); }
  // Tells hooks the final status of the stored interaction; called before Complete if end_is_heard. May take a while.
  void TellEnd(InteractionStatus status);

  // --- any thread -------------------------------------------------------------------------------------------------
  // The first given reason counts.
  void RequestStop(std::string_view reason);
  // The same because the process ends. A run that waits for a person is left once a tool that runs beside it has ended.
  void RequestStopWithServer();
  Interaction Snapshot() const;
  InteractionStatus status() const;
  // Whether the agent has ended, so that the run stays in its chat only until its checkpoint is stored.
  bool is_being_saved() const;
  bool is_watched() const {  // by a client of this process
    const MutexLock lock(mutex_);
    return listeners_ > 0;
  }
  std::string model() const;
  Agenda agenda() const;
  // When this returns ok, the answer to a question of this run survives the process: it is in the journal, visible or
  // not. Blocks while the disk does; fails as the journal does.
  Result<void> KeepAnswer(const std::string& id, const GivenAnswer& answer);
  std::vector<Grant> grants() const;
  // The returned object counts as a listener while it lives; the OnDisconnect policy applies when the last one goes.
  std::shared_ptr<void> AddListener();

  // AgentObserver
  void Emit(std::uint32_t round_index, EventPayload payload) override;
  void AddTextDelta(std::uint32_t round_index, std::string_view text) override;
  void AddThinkingDelta(std::uint32_t round_index, std::string_view text) override;
  void FlushDeltas() override;
  void StateGrew(const AgentState& state) override;
  std::optional<std::size_t> Requested(const Sent& sent) override;
  void Responded(std::size_t request, SentResponse response) override;
  void Spent(std::uint32_t round_index, const TokenUsage& usage) override;
  // ApprovalGate
  std::vector<std::string> Ask(std::uint32_t round_index, std::vector<event::ApprovalRequired> requests,
                               std::optional<event::Rejected> withdrawn) override;
  Async<Result<Answered>> AwaitAnswer(std::vector<std::string> approval_ids, std::stop_token stop,
                                      const Executor& executor) override;
  ApprovalMode ModeFor(const std::string& call_id) override;
  Result<void> SetMode(ApprovalMode mode) override { return services_.set_mode(chat_id_, mode); }
  std::vector<Grant> StandingGrants(const Grant& call) override;
  void NoteUse(const std::vector<std::string>& grant_ids) override;
  Async<Result<Reply>> AskInput(std::uint32_t round_index, event::InputRequired request, std::stop_token stop,
                                const Executor& executor) override;

 private:
  const ToolRegistry& all_tools() const { return chat_tools_ ? *chat_tools_ : services_.workspace->tools; }
  // Stores the questions where other processes can answer them.
  void TellOthers(const std::vector<PendingQuestion>& questions) const;
  // Records an event to be shown.
  void Record(std::uint32_t round_index, EventPayload payload) REQUIRES(show_mutex_);
  void AgentEnded(AgentOutcome& outcome);
  void EndBadly(AgentOutcome outcome);
  void LogEnd() const;
  // Journals events that are not visible yet; they become visible when they are stored.
  void Show(Journal::Reach reach) REQUIRES(show_mutex_);
  // The oldest record of Show under way is stored, or failed. Called from any thread, also with show_mutex_ held.
  void Kept(Result<void> kept);
  // Waits until all records of Show so far are stored or failed. REQUIRES: show_mutex_ is not held.
  void AwaitKept();
  std::optional<Error> journal_error() const;
  std::uint32_t last_round() const;
  void ListenerGone();
  void CancelLater(std::uint64_t grace);
  void CancelIfAbandoned(std::uint64_t grace);
  bool IsAbandoned(std::uint64_t grace) const;
  // Called when a stop has ended a wait for a person. If true, no more of this run is stored or shown.
  bool LeavesNow();
  // Whether another process could ask this question again because nothing else of the round is under way.
  bool CanBeAskedAgain(const std::string& call_id) const;
  void UpdateStatus() REQUIRES(mutex_);
  // Notes that the waiting agent has been given an answer.
  template <typename Given>
  std::function<void(Given)> Taking(std::function<void(Given)> done);
  bool IsTaken(const std::string& id) const;
  bool IsOfSubAgent(const std::vector<std::string>& approval_ids) const;

  const ChatId chat_id_;
  const InteractionId id_;
  const std::optional<InteractionId> parent_id_;
  const std::optional<ClientRequest> request_;  // that began it
  const std::optional<std::int64_t> chat_version_;
  const OnDisconnect on_disconnect_;
  const Services services_;
  const std::shared_ptr<EventLog> log_;  // synchronises itself
  const std::shared_ptr<RunHold> hold_;  // only journal_ calls its Append
  std::stop_source stop_;                // synchronises itself

  // Used by Start only.
  AgentState initial_state_;
  const bool compact_, only_compact_;
  const ModelDirectory::Resolved model_;
  SystemPrompt prompt_;
  const Effort effort_;
  AgentGuards guards_;

  Span span_;  // the agent begins its children, and has ended before anything else uses it
  std::optional<FilesInStore> files_;
  std::unique_ptr<JobsOfChat> jobs_;
  std::vector<event::JobEnded> ended_jobs_;  // for Start
  std::unique_ptr<EditorFiles> editor_;
  std::unique_ptr<ToolRegistry> chat_tools_;  // with the editor's tools; null if no editor can connect
  std::optional<DeferredTools> tools_;        // of chat_tools_ or the workspace
  std::unique_ptr<RunRecorder> recorder_;     // synchronises itself
  RunGuard guard_;                            // synchronises itself
  std::optional<AgentLoop> agent_;            // handed from thread to thread, never shared
  const std::optional<Interrupted> interrupted_;
  std::optional<std::string> request_id_;  // of a question that another process asked; for the agent's thread

  mutable Mutex show_mutex_;  // keeps journal and log in step; locked before mutex_
  RunJournal journal_ GUARDED_BY(show_mutex_);
  std::set<std::string> answered_ GUARDED_BY(show_mutex_);  // ids of questions whose answers were shown
  Condition answer_shown_;
  // Set by the answer. From then on, events become visible when the checkpoint is durable, so that they need not be
  // synced to the journal first. Show and Kept do the same after a failure of the journal.
  bool holding_ GUARDED_BY(show_mutex_) = false;
  bool ended_ GUARDED_BY(show_mutex_) = false;  // the agent has ended, so the checkpoint has everything
  bool left_ GUARDED_BY(show_mutex_) = false;

  mutable Mutex kept_mutex_;                                         // a leaf; locked under show_mutex_
  Condition kept_changed_;                                           // a record was stored, or the first one failed
  std::vector<EventLog::Position> showing_ GUARDED_BY(kept_mutex_);  // the ends of records under way
  std::uint64_t records_ GUARDED_BY(kept_mutex_) = 0, kept_ GUARDED_BY(kept_mutex_) = 0;  // appended; stored
  std::optional<Error> journal_error_ GUARDED_BY(kept_mutex_);

  mutable Mutex mutex_;
  Interaction interaction_ GUARDED_BY(mutex_);
  std::string stop_reason_ GUARDED_BY(mutex_);
  bool server_stops_ GUARDED_BY(mutex_) = false;  // the reason why this run stops
  std::uint32_t last_round_ GUARDED_BY(mutex_) = 0;
  Agenda agenda_ GUARDED_BY(mutex_);              // copy of the agent's, for readers
  std::vector<Grant> grants_ GUARDED_BY(mutex_);  // likewise
  WaitingQuestions waiting_ GUARDED_BY(mutex_);
  std::set<std::string> of_sub_agents_ GUARDED_BY(mutex_);  // ids of their open approvals
  std::set<std::string> taken_ GUARDED_BY(mutex_);  // ids of questions whose answers the agent has, visible or not
  int listeners_ GUARDED_BY(mutex_) = 0;
  std::uint64_t grace_ GUARDED_BY(mutex_) = 0;  // a grace period that began before a question is void
};

}  // namespace reprise
