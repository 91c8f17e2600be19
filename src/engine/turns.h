#pragma once

#include <memory>
#include <string>

#include "engine/busy_chats.h"
#include "engine/interactions.h"
#include "engine/message_queue.h"
#include "engine/recovery.h"
#include "engine/repeated_requests.h"
#include "engine/services.h"
#include "engine/start_point.h"
#include "engine/workspace_moves.h"

namespace reprise {

// The life of a run, from the request to the free chat: it is started or waits its turn, is saved when its agent has
// ended, and lets the chat go. What a process left unfinished goes on here too. Thread-safe.
class Turns {
 public:
  Turns(EngineServices& services, BusyChats& busy, Interactions& interactions, StartPoints& start_points,
        RepeatedRequests& repeated, WorkspaceMoves& workspace)
      : services_(services),
        busy_(busy),
        interactions_(interactions),
        start_points_(start_points),
        repeated_(repeated),
        workspace_(workspace) {}

  // As Engine::Start, Edit, Regenerate and Resume.
  Result<EventSubscription> Start(const ChatId& chat, const StartPoint& from, StartRequest request);
  // Begins what waits in `chat`, if that is free.
  void StartNext(const ChatId& chat);
  // The same, when the chat is occupied for it.
  void LaunchNext(const ChatId& chat);
  Result<Engine::Recovered> Recover();
  // Takes up what other processes have left, while this one works: runs, and messages that wait.
  void TakeUpAbandoned();
  // Other processes have changed the chat's queue, or their run in the chat has ended.
  void LookAtQueue(const ChatId& chat);

 private:
  // Its client is told why, or, without one, it stays in the queue.
  void CannotBegin(QueuedRun& waiting, const Error& why);
  // What a run that waited has besides.
  struct Waited {
    std::optional<QueuedRef> queued{};
    std::shared_ptr<EventLog> log{};
  };
  // REQUIRES: the chat is occupied.
  Result<std::shared_ptr<Run>> Make(const ChatId& chat, const StartPoint& from, const StartRequest& request,
                                    const Waited& waited);
  Result<std::shared_ptr<Run>> MakeFrom(Result<Beginning> beginning, const ChatId& chat, const StartPoint& from,
                                        const StartRequest& request, const Waited& waited);
  // What a run will need is there, as far as can be told before. `has_thread`: it is made on one of the pool.
  Result<void> CheckResources(bool has_thread);
  Result<AgentGuards> GuardsFor(const ChatId& chat, const std::string& model, const TokenUsage& used_before);
  std::optional<InteractionId> HeadOf(const ChatId& chat) const;
  std::shared_ptr<Run> NewRun(Run::Plan plan, const std::string& instructions = {});
  Span BeginSpan(const TraceContext& parent) const {
    return Span::Begin(services_.parts.telemetry, "invoke_agent reprise", parent);
  }

  // The request waits for the chat's run to end.
  Result<EventSubscription> Wait(const ChatId& chat, const StartPoint& from, StartRequest request);
  Result<void> Interrupt(const std::shared_ptr<QueuedRun>& waiting);
  void ClientLeft(const std::shared_ptr<QueuedRun>& waiting);
  // Its client has gone: it is taken from the queue, unless it was to go on without one.
  void GiveUp(const std::shared_ptr<QueuedRun>& waiting);
  // It waits for another process: its turn is looked for again in a moment.
  void TryAgain(const std::shared_ptr<QueuedRun>& waiting);
  std::shared_ptr<Run> MakeQueued(const std::shared_ptr<QueuedRun>& waiting);

  void Execute(const std::shared_ptr<Run>& run);
  void Save(const std::shared_ptr<Run>& run);
  void Rescue(const std::shared_ptr<Run>& run, Interaction finished, const Error& error);
  // Somebody else holds the run now, and shows what becomes of it.
  void Abandon(const std::shared_ptr<Run>& run);
  void Complete(const std::shared_ptr<Run>& run, InteractionStatus status);

  enum class RecoveredAs { kNothing, kWaiting, kFailed };
  void TakeUp(AbandonedRun run, Engine::Recovered& recovered);
  // `may_wait`: a run that waited for an answer may go on waiting.
  Result<RecoveredAs> RecoverOne(const InteractionRef& ref, const std::shared_ptr<RunHold>& hold, bool may_wait);
  Result<void> SaveInterrupted(RunHold& hold, const Interaction& ended);
  Result<void> AskAgain(const std::shared_ptr<RunHold>& hold, InterruptedRun interrupted, AgentState state,
                        const ModelDirectory::Resolved& model, OpenQuestions questions, const JournalContent& content);

  EngineServices& services_;
  BusyChats& busy_;
  Interactions& interactions_;
  StartPoints& start_points_;
  RepeatedRequests& repeated_;
  WorkspaceMoves& workspace_;
};

}  // namespace reprise
