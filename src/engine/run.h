#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/agent_loop.h"
#include "approval/requests.h"
#include "base/mutex.h"
#include "engine/attachments.h"
#include "engine/editors.h"
#include "engine/elastic_pool.h"
#include "engine/run_guard.h"
#include "engine/run_journal.h"
#include "reprise/engine.h"
#include "reprise/event_log.h"
#include "reprise/grant_store.h"
#include "reprise/interaction.h"
#include "reprise/workspace_history.h"

namespace reprise {

// How many questions of a run wait for somebody.
struct WaitingQuestions {
  std::size_t approvals = 0, inputs = 0;

  InteractionStatus Status() const {
    return inputs > 0      ? InteractionStatus::kWaitingInput
           : approvals > 0 ? InteractionStatus::kWaitingApproval
                           : InteractionStatus::kRunning;
  }
};

// An interaction while it executes: the record that grows, the log its listeners read, and the switch that stops it.
class Run final : public AgentObserver, public ApprovalGate, public std::enable_shared_from_this<Run> {
 public:
  struct Plan {
    Interaction interaction;  // RUNNING, without events
    AgentState state;         // what it starts from, with the user's message
    ModelClient* client;
    std::string client_model;         // the client's own name for the model
    std::int64_t context_window = 0;  // tokens; 0: not known
    ModelAbilities abilities{};       // of the model
    OnDisconnect on_disconnect;
    RunJournal journal;  // begun: its first record is kept
    SystemPrompt prompt{};
    AgentGuards guards{};
    Span span{};  // of the interaction, for those who watch
    // Where the agent goes on if it was interrupted; `state` then has all that followed the user's message.
    std::optional<Interrupted> interrupted = std::nullopt;
    bool compact = false;                                     // StartRequest::compact
    bool only_compact = false;                                // there is no message, and nothing else is done
    std::optional<std::int64_t> chat_version = std::nullopt;  // RunBeginning::expected_version
    std::shared_ptr<EventLog> log = nullptr;  // who waits for the run reads it; to be published when it is there
    // What another process has shown of this very interaction, and the id of the question of a tool that waits.
    struct Shown {
      std::shared_ptr<EventLog> log;
      std::optional<std::string> request_id;
    };
    std::optional<Shown> shown = std::nullopt;
  };
  struct Services {  // all must outlive the run
    const ToolRegistry& tools;
    ApprovalRequests& approvals;
    InputRequests& inputs;
    GrantStore* grants;  // null: there are none
    Timer& timer;
    const EngineOptions& options;
    RunGuard::Parts guard;
    FileStore* files = nullptr;                                 // null: chats have none
    DocumentReader* documents = nullptr;                        // null: nobody reads them
    Editors* editors = nullptr;                                 // null: no editor can be connected
    WorkspaceHistory* workspace = nullptr;                      // null: nobody records what is changed
    QuestionStore* questions = nullptr;                         // null: nobody else is told what is asked
    std::function<Result<ApprovalMode>(const ChatId&)> mode{};  // of a chat, as it is now
    std::function<void(std::function<void()>)> submit{};        // to a thread that may wait
    // Whether somebody listens to this run at another process; may wait for the store.
    std::function<bool(const InteractionRef&)> is_followed_elsewhere{};
  };
  // Emits interaction_started.
  Run(Plan plan, Services services);

  const ChatId& chat_id() const { return chat_id_; }
  InteractionId id() const { return id_; }
  const std::optional<InteractionId>& parent_id() const { return parent_id_; }
  const std::optional<ClientRequest>& request() const { return request_; }
  // Of the chat when the run began, if that is known.
  std::optional<std::int64_t> chat_version() const { return chat_version_; }
  const std::shared_ptr<EventLog>& log() const { return log_; }
  const std::shared_ptr<RunHold>& hold() const { return hold_; }

  // --- one after the other, each once -----------------------------------------------------------------------------
  // Starts the agent. When it has come to its end and its last word (error, cancelled) is emitted, `ended` is called on
  // a thread of the executor. What is left is to save and to complete. The run must live until then.
  void Start(Executor executor, std::function<void()> ended);
  // Start has thrown: it has failed, as if the agent had come to its end.
  void FailToStart(const Error& error);
  // Ended without having come to its end: it waits for a person, in its journal, until another process takes it up.
  // Then there is nothing to save, and instead of completing the log is closed as it is.
  bool is_left() const;
  void Leave();
  // Somebody else holds the run now: nothing that is not shown yet ever will be.
  void CutOff();
  // The finished interaction, to be saved.
  Interaction TakeFinished();
  // `finished` could not be saved where it belongs: an error event, and FAILED.
  void FailToSave(Interaction& finished, const Error& error);
  // Its line in the server's log; then emits interaction_complete and closes the event log.
  void Complete();
  // Whether TellEnd would tell anybody.
  bool end_is_heard() const { return guard_.hears_end(); }
  // Before Complete, if end_is_heard: tells what the stored interaction ended as. May take a while.
  void TellEnd(InteractionStatus status);

  // --- any thread -------------------------------------------------------------------------------------------------
  // The first reason given is the one that is told.
  void RequestStop(std::string_view reason);
  // The same because the process ends. A run that waits for a person is left, when a tool that runs beside has ended.
  void RequestStopWithServer();
  Interaction Snapshot() const;
  InteractionStatus status() const;
  // It has come to its end, and stays in its chat only until its checkpoint is stored.
  bool is_being_saved() const;
  std::string model() const;
  Agenda agenda() const;
  // The answer to a question of this run survives the process when this returns ok: it is in the journal, shown or not.
  // Blocks while the disk does; the journal's failures otherwise.
  Result<void> KeepAnswer(const std::string& id, const GivenAnswer& answer);
  std::vector<Grant> grants() const;
  // As long as the returned object lives somebody listens; the OnDisconnect policy applies when the last one goes.
  std::shared_ptr<void> AddListener();

  // AgentObserver
  void Emit(std::uint32_t round_index, EventPayload payload) override;
  void AddTextDelta(std::uint32_t round_index, std::string_view text) override;
  void AddThinkingDelta(std::uint32_t round_index, std::string_view text) override;
  void FlushDeltas() override;
  void StateGrew(const AgentState& state) override;
  void Spent(std::uint32_t round_index, const TokenUsage& usage) override;
  // ApprovalGate
  std::vector<std::string> Ask(std::uint32_t round_index, std::vector<event::ApprovalRequired> requests,
                               std::optional<event::Rejected> withdrawn) override;
  Async<Result<Answered>> AwaitAnswer(std::vector<std::string> approval_ids, std::stop_token stop,
                                      const Executor& executor) override;
  ApprovalMode ModeFor(const std::string& call_id) override;
  std::vector<Grant> StandingGrants(const Grant& call) override;
  void NoteUse(const std::vector<std::string>& grant_ids) override;
  Async<Result<Reply>> AskInput(std::uint32_t round_index, event::InputRequired request, std::stop_token stop,
                                const Executor& executor) override;

 private:
  const ToolRegistry& tools() const { return chat_tools_ ? *chat_tools_ : services_.tools; }
  // Puts it where other processes can answer it.
  void TellOthers(const std::vector<PendingQuestion>& questions) const;
  // To be shown.
  void Record(std::uint32_t round_index, EventPayload payload) REQUIRES(show_mutex_);
  void AgentEnded(AgentOutcome& outcome);
  void EndBadly(AgentOutcome outcome);
  void LogEnd() const;
  // Journals what is not visible yet; it is made visible when it is kept.
  void Show(Journal::Reach reach) REQUIRES(show_mutex_);
  // The first of what Show was asked for is kept, or is not. Any thread; show_mutex_ may be held.
  void Kept(Result<void> kept);
  // Until all that Show was asked for so far is kept, or cannot be. REQUIRES: show_mutex_ is not held.
  void AwaitKept();
  std::optional<Error> journal_error() const;
  std::uint32_t last_round() const;
  void ListenerGone();
  void CancelLater(std::uint64_t grace);
  void CancelIfAbandoned(std::uint64_t grace);
  bool IsAbandoned(std::uint64_t grace) const;
  // After a wait for a person that a stop has ended. True: nothing more of this run is kept or shown.
  bool LeavesNow();
  // Whether another process could ask this question again, as nothing else of the round is under way.
  bool CanBeAskedAgain(const std::string& call_id) const;
  void UpdateStatus() REQUIRES(mutex_);
  // Notes that the agent, which waited for it, has been given an answer.
  template <typename Given>
  std::function<void(Given)> Taking(std::function<void(Given)> done);
  bool IsTaken(const std::string& id) const;

  const ChatId chat_id_;
  const InteractionId id_;
  const std::optional<InteractionId> parent_id_;
  const std::optional<ClientRequest> request_;  // that has begun it
  const std::optional<std::int64_t> chat_version_;
  const OnDisconnect on_disconnect_;
  const Services services_;
  const std::shared_ptr<EventLog> log_;  // synchronises itself
  const std::shared_ptr<RunHold> hold_;  // its Append is called by journal_ alone
  std::stop_source stop_;                // synchronises itself

  // Used by Start only.
  AgentState initial_state_;
  const bool compact_, only_compact_;
  ModelClient* const client_;
  const std::string client_model_;
  const std::int64_t context_window_;
  const ModelAbilities abilities_;
  SystemPrompt prompt_;
  AgentGuards guards_;

  Span span_;  // its children are begun by the agent, which has ended when anything else is done with it
  std::optional<FilesInStore> files_;
  std::unique_ptr<EditorFiles> editor_;
  std::unique_ptr<ToolRegistry> chat_tools_;  // with the editor's; null: no editor can be connected
  std::unique_ptr<RunRecorder> recorder_;     // synchronises itself
  RunGuard guard_;                            // synchronises itself
  std::optional<AgentLoop> agent_;            // handed from thread to thread, never shared
  const std::optional<Interrupted> interrupted_;
  std::optional<std::string> request_id_;  // of the question that another process asked; used by the agent's thread

  mutable Mutex show_mutex_;  // keeps journal and log in step; taken before mutex_
  RunJournal journal_ GUARDED_BY(show_mutex_);
  std::set<std::string> answered_ GUARDED_BY(show_mutex_);  // ids of questions whose answers were shown
  std::condition_variable_any answer_shown_;
  // From here on everything is shown when the checkpoint is durable: behind the answer, as there is no need to sync it
  // to the journal before, and when the journal failed.
  bool holding_ GUARDED_BY(show_mutex_) = false;
  bool ended_ GUARDED_BY(show_mutex_) = false;  // the agent came to its end: the checkpoint has all there is
  bool left_ GUARDED_BY(show_mutex_) = false;

  mutable Mutex kept_mutex_;                  // a leaf; taken under show_mutex_
  std::condition_variable_any kept_changed_;  // tells of a record that is kept, and of the first that is not
  std::vector<EventLog::Position> showing_ GUARDED_BY(kept_mutex_);  // where the records end that are under way
  std::uint64_t records_ GUARDED_BY(kept_mutex_) = 0, kept_ GUARDED_BY(kept_mutex_) =
                                                          0;  // how many were appended, how many of them are kept
  std::optional<Error> journal_error_ GUARDED_BY(kept_mutex_);

  mutable Mutex mutex_;
  Interaction interaction_ GUARDED_BY(mutex_);
  std::string stop_reason_ GUARDED_BY(mutex_);
  bool server_stops_ GUARDED_BY(mutex_) = false;  // and that is why this run stops
  std::uint32_t last_round_ GUARDED_BY(mutex_) = 0;
  Agenda agenda_ GUARDED_BY(mutex_);              // of the agent's state, for others to see
  std::vector<Grant> grants_ GUARDED_BY(mutex_);  // likewise
  WaitingQuestions waiting_ GUARDED_BY(mutex_);
  std::set<std::string> taken_ GUARDED_BY(mutex_);  // ids of questions whose answers the agent has, shown or not
  int listeners_ GUARDED_BY(mutex_) = 0;
  std::uint64_t grace_ GUARDED_BY(mutex_) = 0;  // a grace period that began before a question is void
};

}  // namespace reprise
