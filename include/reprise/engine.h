#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/approval.h"
#include "reprise/audit_log.h"
#include "reprise/event_log.h"
#include "reprise/guardrails.h"
#include "reprise/hooks.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/interaction_store.h"
#include "reprise/model_client.h"
#include "reprise/replay.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

// What becomes of a run when its last client has gone.
enum class OnDisconnect { kCancel, kContinue };

enum class ApprovalMode {
  kAsk,         // tools that require approval ask
  kReadOnly,    // every tool that is not read-only asks
  kApproveAll,  // nothing asks
  kDenyAll,     // what would ask is refused
};

struct EngineOptions {
  int max_rounds = 25;
  std::chrono::milliseconds disconnect_grace{2000};
  std::chrono::milliseconds tool_timeout{60'000};
  std::chrono::milliseconds save_timeout{5000};
  ApprovalMode approval_mode = ApprovalMode::kAsk;
  int max_retries = 3;  // of a model request that fails for a reason that may pass
  std::size_t max_active_runs = 10'000;
};

struct StartRequest {
  std::string user_message{};
  std::string model{};  // empty: the default
  OnDisconnect on_disconnect = OnDisconnect::kCancel;
};

// One client's hold on an interaction's events. As long as the object lives, the run counts as listened to; when the
// last one of a running interaction goes, its OnDisconnect policy applies. Movable only.
class EventSubscription {
 public:
  EventSubscription(ChatId chat, InteractionId interaction, std::shared_ptr<EventLog> events,
                    std::shared_ptr<void> hold)
      : chat_id(std::move(chat)), interaction_id(interaction), log(std::move(events)), hold_(std::move(hold)) {}
  EventSubscription(EventSubscription&&) = default;
  EventSubscription& operator=(EventSubscription&&) = default;

  ChatId chat_id;
  InteractionId interaction_id;
  std::shared_ptr<EventLog> log;  // live, or filled from the stored interaction and closed

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
  ChatSummary summary;
  std::optional<InteractionStatus> status;  // of the running interaction, or of the head; nullopt: empty chat
};
// What is given replaces what there is.
struct AgendaChange {
  std::optional<std::vector<Task>> tasks{};  // one with an empty id is given one
  std::optional<std::vector<std::string>> plan{};
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
};

// Runs interactions: one at a time per chat, any number of chats at once. Thread-safe.
//
// Failures beside those of the parts it is made of: kConflict (reason "busy", details {"interaction_id"}) if the chat
// has a run already, kUnavailable (reason "stopping" or "overloaded").
class Engine {
 public:
  struct Parts {  // all must outlive the engine
    InteractionStore& store;
    // Where a finished interaction goes when `store` cannot take it, in this order; brought home at the next start.
    std::vector<InteractionStore*> fallback_stores;
    const ModelDirectory& models;
    const ToolRegistry& tools;
    AuditLog* audit = nullptr;  // null: no account of tool calls is kept
    Hooks* hooks = nullptr;
    // Texts that are taken out of what tools say: keys and tokens.
    std::vector<std::string> secrets{};
    GuardrailOptions guardrails{};
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
  // Starts an interaction at the chat's head; an unknown chat is created.
  Result<EventSubscription> Start(const ChatId& chat, StartRequest request);
  // Restores the state before `interaction` and runs `request` from there as its sibling, which becomes the head.
  Result<EventSubscription> Edit(const ChatId& chat, InteractionId interaction, StartRequest request);
  // Edit with the interaction's own message. kConflict (reason "no_message") if it has none.
  Result<EventSubscription> Regenerate(const ChatId& chat, InteractionId interaction, StartRequest request);
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

  // Asks the run to stop; returns at once. Idempotent; a finished interaction reports its status.
  Result<CancelOutcome> Cancel(const ChatId& chat, InteractionId interaction);

  // Events after `after_seq`, recorded then live; looking at them is not listening until Listen. kInvalidArgument
  // (reason "cursor_ahead") if there is no such event yet.
  Result<AttachedEvents> Attach(const ChatId& chat, InteractionId interaction, std::uint64_t after_seq);

  // From now on `subscription` counts as listening, if its interaction still runs.
  void Listen(EventSubscription& subscription);

  // --- approvals --------------------------------------------------------------------------------------------------
  // The first answer wins. kNotFound: no such approval (in that interaction, if one is named); kInvalidArgument (reason
  // "already_processed"): answered before, or its run has ended; kConflict (reason "digest_mismatch").
  using InteractionRef = reprise::InteractionRef;
  Result<PendingApproval> AnswerApproval(std::string_view approval_id, ApprovalAnswer answer,
                                         std::optional<InteractionRef> within = std::nullopt);
  // Oldest first.
  std::vector<PendingApproval> PendingApprovals() const;

  // --- questions of tools -----------------------------------------------------------------------------------------
  // As AnswerApproval. kInvalidArgument (reason "invalid_member") too if the question has a schema and the response is
  // no JSON object.
  Result<PendingInput> AnswerInput(std::string_view request_id, InputAnswer answer,
                                   std::optional<InteractionRef> within = std::nullopt);
  std::vector<PendingInput> PendingInputs() const;

  // --- reading and arranging --------------------------------------------------------------------------------------
  // A running interaction is returned with the events so far.
  Result<Interaction> GetInteraction(const ChatId& chat, InteractionId interaction);
  Result<History> GetHistory(const ChatId& chat, bool all_branches);
  Result<std::vector<ChatListEntry>> ListChats();
  Result<ChatSummary> CreateChat(const ChatId& chat, const std::string& title);
  Result<ChatSummary> RenameChat(const ChatId& chat, const std::string& title);
  // Cancels a run of the chat first and waits for its checkpoint.
  Result<void> DeleteChat(const ChatId& chat);
  // The agent's tasks and plan: those of the running interaction, or of the chat's head.
  Result<Agenda> GetAgenda(const ChatId& chat);
  // Changes them by hand. The change is an interaction of its own, without a message, and becomes the head: it is as
  // durable as others, and an edit of an earlier one leaves it behind. kConflict (reason "busy") while a run is active;
  // kNotFound: no such chat; kInvalidArgument (reason "invalid_member"): two tasks have the same id.
  Result<Agenda> ChangeAgenda(const ChatId& chat, AgendaChange change);
  // kConflict (reason "busy") while a run is active.
  Result<ChatSummary> MoveHead(const ChatId& chat, InteractionId interaction);
  // Moves the head to its parent. kConflict: reason "busy" while a run is active, "nothing_to_undo" if the chat is
  // empty or its head the first of its branch.
  Result<ChatSummary> Undo(const ChatId& chat);
  // Copies the branch that ends at a finished interaction into a new chat (InteractionStore::ForkChat), whatever runs
  // in `source`. kConflict: reason "chat_exists", or "not_finished" if the interaction runs.
  Result<ChatListEntry> ForkChat(const ChatId& source, InteractionId interaction, const ChatId& chat,
                                 const std::optional<std::string>& title);

  const ModelDirectory& models() const;
  const ToolRegistry& tools() const;
  const EngineOptions& options() const;
  const AuditLog* audit() const;  // null: there is none

  struct Counters {
    std::size_t active_runs, waiting_approvals;
    std::uint64_t started, completed, failed, cancelled;
  };
  Counters counters() const;

  // Refuses new runs, cancels the running ones (reason "server_stopping") and waits until each has its checkpoint.
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
