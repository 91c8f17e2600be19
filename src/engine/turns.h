#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/busy_chats.h"
#include "engine/interactions.h"
#include "engine/message_queue.h"
#include "engine/recovery.h"
#include "engine/repeated_requests.h"
#include "engine/services.h"
#include "engine/start_point.h"
#include "engine/workspace_moves.h"

namespace reprise {

// The life of a run, from the request to the free chat: it starts or waits its turn, is saved when its agent has ended,
// and frees the chat. Also continues what a dead process left. Thread-safe.
class Turns {
 public:
  Turns(EngineServices& services, BusyChats& busy, Interactions& interactions, StartPoints& start_points,
        RepeatedRequests& repeated, WorkspaceMoves& workspace, std::function<void(const Interaction&)> saved)
      : services_(services),
        busy_(busy),
        interactions_(interactions),
        start_points_(start_points),
        repeated_(repeated),
        workspace_(workspace),
        saved_(std::move(saved)) {}

  // As Engine::Start, Edit, Regenerate and Resume.
  Result<EventSubscription> Start(const ChatId& chat, const StartPoint& from, StartRequest request);
  // Begins the next message of `chat`, if that is free.
  void StartNext(const ChatId& chat);
  // The same when the chat is already occupied for it.
  void LaunchNext(const ChatId& chat);
  Result<Engine::Recovered> Recover();
  // Takes up runs and queued messages that other processes have left, while this one works.
  void TakeUpAbandoned();
  // Called when other processes have changed the chat's queue, or their run in the chat has ended.
  void LookAtQueue(const ChatId& chat);

 private:
  // Tells the client why its message cannot begin; without a client, the message stays in the queue.
  void CannotBegin(QueuedRun& waiting, const Error& why);
  // What a run brings from the queue.
  struct Waited {
    std::optional<QueuedRef> queued{};
    std::shared_ptr<EventLog> log{};
  };
  // REQUIRES: the chat is occupied.
  Result<std::shared_ptr<Run>> Make(const ChatId& chat, const StartPoint& from, const StartRequest& request,
                                    const Waited& waited);
  Result<std::shared_ptr<Run>> MakeFrom(Result<Beginning> beginning, const ChatId& chat, const StartPoint& from,
                                        const StartRequest& request, const Waited& waited);
  // Checks in advance, as far as possible, that a run will get its resources. `has_thread` on a thread of the pool.
  Result<void> CheckResources(bool has_thread);
  Result<AgentGuards> GuardsFor(const ChatId& chat, const std::string& model, const TokenUsage& used_before,
                                const EngineOptions& options);
  std::optional<InteractionId> HeadOf(const ChatId& chat) const;
  // `chats`: for the chat's own instructions and effort; nullopt: a new chat.
  std::shared_ptr<Run> NewRun(Run::Plan plan, const std::optional<ChatSummary>& chats,
                              std::shared_ptr<const WorkspaceParts> workspace, const std::string& instructions = {});
  Span BeginSpan(const TraceContext& parent) const {
    return Span::Begin(services_.parts.telemetry, "invoke_agent reprise", parent);
  }

  Result<void> RefuseBegun(const ChatId& chat, const StartRequest& request);
  // Makes the request wait for the end of the chat's run.
  Result<EventSubscription> Wait(const ChatId& chat, const StartPoint& from, StartRequest request);
  Result<void> Interrupt(const std::shared_ptr<QueuedRun>& waiting);
  void ClientLeft(const std::shared_ptr<QueuedRun>& waiting);
  // The client has gone: removes its message from the queue, unless it was to run without one.
  void GiveUp(const std::shared_ptr<QueuedRun>& waiting);
  // The message waits for another process; its turn is checked again soon.
  void TryAgain(const std::shared_ptr<QueuedRun>& waiting);
  std::shared_ptr<Run> MakeQueued(const std::shared_ptr<QueuedRun>& waiting);

  void Execute(const std::shared_ptr<Run>& run);
  void Save(const std::shared_ptr<Run>& run);
  void Rescue(const std::shared_ptr<Run>& run, Interaction finished, const Error& error);
  // Another process holds the run now, and shows the rest of it.
  void Abandon(const std::shared_ptr<Run>& run);
  void Complete(const std::shared_ptr<Run>& run, InteractionStatus status);

  enum class RecoveredAs { kNothing, kWaiting, kFailed };
  void TakeUp(AbandonedRun run, Engine::Recovered& recovered);
  // If `may_wait`, a run that waited for an answer may go on waiting.
  Result<RecoveredAs> RecoverOne(const InteractionRef& ref, const std::shared_ptr<RunHold>& hold, bool may_wait);
  Result<void> SaveInterrupted(RunHold& hold, const Interaction& ended);
  Result<void> AskAgain(const std::shared_ptr<RunHold>& hold, InterruptedRun interrupted, AgentState state,
                        const ModelDirectory::Resolved& model, std::shared_ptr<const WorkspaceParts> workspace,
                        OpenQuestions questions, const JournalContent& content);

  EngineServices& services_;
  BusyChats& busy_;
  Interactions& interactions_;
  StartPoints& start_points_;
  RepeatedRequests& repeated_;
  WorkspaceMoves& workspace_;
  const std::function<void(const Interaction&)> saved_;  // called before the work of a run ends, or of its recovery
};

}  // namespace reprise
