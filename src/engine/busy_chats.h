#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "engine/run.h"
#include "engine/services.h"
#include "reprise/engine.h"
#include "reprise/ids.h"
#include "reprise/result.h"

namespace reprise {

// kConflict (reason "busy", with the run's id if known).
Error Busy(std::optional<InteractionId> run);
Error Busy(const std::shared_ptr<Run>& run);

// Knows which chats are busy: each has one run, or one change, at a time. Thread-safe; its lock is held for map
// operations only.
class BusyChats {
 public:
  // `start_next` starts the next message of a chat that is already occupied for it.
  BusyChats(EngineServices& services, std::function<void(const ChatId&)> start_next)
      : services_(services), start_next_(std::move(start_next)) {}

  // Takes the chat for one run or one change. kConflict (reason "busy", with the run's id), kUnavailable (reasons
  // "overloaded", "stopping").
  Result<void> Occupy(const ChatId& chat);
  // Makes the run of an occupied chat visible to everybody.
  void Put(const std::shared_ptr<Run>& run);
  // Frees the chat, or starts its next message with the chat still occupied.
  void Release(const ChatId& chat);
  // Occupies the chat for its next message. False if none waits or the chat is busy. After true, call WorkEnded.
  bool OccupyForNext(const ChatId& chat);
  // Ends for good what Put or OccupyForNext began.
  void WorkEnded();
  // More work begins, in work that has not ended.
  void WorkBegan();
  void Count(InteractionStatus ended);

  std::shared_ptr<Run> RunOf(const ChatId& chat) const;  // or null
  std::shared_ptr<Run> RunOf(const ChatId& chat, InteractionId id) const;
  // The folder of the chat's run, which may be its first; else as EngineServices::WorkspaceOf.
  Result<std::shared_ptr<const WorkspaceParts>> WorkspaceOf(const ChatId& chat) const;
  std::vector<std::shared_ptr<Run>> Runs() const;
  // Calls `look` with the chat's run, or null, while the lock is held, so that nothing changes meanwhile. kUnavailable
  // when stopping.
  Result<void> LookAt(const ChatId& chat, const std::function<void(const std::shared_ptr<Run>&)>& look);

  // Calls `change` while the chat cannot start a run; "busy" if it has one.
  template <typename Change>
  auto WhileIdle(const ChatId& chat, Change change) -> decltype(change()) {
    if (auto occupied = Occupy(chat); !occupied) return Fail(std::move(occupied.error()));
    const std::shared_ptr<void> release(nullptr, [&](void*) { Release(chat); });  // also when it throws
    return change();
  }
  // Like Occupy, but stops the chat's run, and any that begins meanwhile, and waits for its end.
  Result<void> OccupyWhenStopped(const ChatId& chat, std::string_view reason);
  // Like WhileIdle, with OccupyWhenStopped.
  template <typename Change>
  auto WhenStopped(const ChatId& chat, std::string_view reason, Change change) -> decltype(change()) {
    if (auto occupied = OccupyWhenStopped(chat, reason); !occupied) return Fail(std::move(occupied.error()));
    const std::shared_ptr<void> release(nullptr, [&](void*) { Release(chat); });
    return change();
  }

  bool is_stopping() const;
  // Refuses to occupy chats from now on; runs go on.
  void BeginDrain();
  bool is_draining() const;
  // Also ends all waits for chats.
  void BeginStop();
  void AwaitAllWork();
  // Also waits for runs that are about to start. False if `limit` passed first.
  bool AwaitAllWork(std::chrono::nanoseconds limit);
  Engine::Counters counters() const;

 private:
  // Waits until a run that is about to start has its id, which is soon.
  void AwaitStarted(MutexLock& lock, const ChatId& chat) REQUIRES(mutex_);
  // Waits until a run that has ended leaves, which is soon. Others may have seen its checkpoint already and believe
  // that the chat is free.
  void AwaitSaved(MutexLock& lock, const ChatId& chat) REQUIRES(mutex_);
  void AwaitEndOf(const Run& run);

  EngineServices& services_;
  const std::function<void(const ChatId&)> start_next_;
  mutable Mutex mutex_;
  Condition changed_;
  // Null for a run that is about to start, or for a chat that is being changed.
  std::unordered_map<ChatId, std::shared_ptr<Run>> active_ GUARDED_BY(mutex_);
  bool draining_ GUARDED_BY(mutex_) = false;  // also when stopping
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::size_t unfinished_ GUARDED_BY(mutex_) = 0;       // runs whose thread is not done, and messages about to begin
  std::size_t most_unfinished_ GUARDED_BY(mutex_) = 0;  // since memory was last given back to the system
  Engine::Counters counters_ GUARDED_BY(mutex_){};      // the totals only
};

}  // namespace reprise
