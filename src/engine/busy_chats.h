#pragma once

#include <chrono>
#include <condition_variable>
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

// kConflict (reason "busy", with the run's id, if it is known).
Error Busy(std::optional<InteractionId> run);
Error Busy(const std::shared_ptr<Run>& run);

// Which chats are busy: each has one run, or one change, at a time. Thread-safe; its lock is held for map operations
// only.
class BusyChats {
 public:
  // `start_next` starts what waits for a chat, which is occupied for it.
  BusyChats(EngineServices& services, std::function<void(const ChatId&)> start_next)
      : services_(services), start_next_(std::move(start_next)) {}

  // Takes the chat for one run or one change. kConflict (reason "busy", with the run's id), kUnavailable (reasons
  // "overloaded", "stopping").
  Result<void> Occupy(const ChatId& chat);
  // The run of a chat that was occupied for it is there for everybody.
  void Put(const std::shared_ptr<Run>& run);
  // The chat is free, or that of what has waited for it: nothing comes between.
  void Release(const ChatId& chat);
  // Occupies the chat for what waits for it. False: nothing does, or it is busy. If true, WorkEnded is to be called.
  bool OccupyForNext(const ChatId& chat);
  // What began with Put or OccupyForNext has ended for good.
  void WorkEnded();
  void Count(InteractionStatus ended);

  std::shared_ptr<Run> RunOf(const ChatId& chat) const;  // or null
  std::shared_ptr<Run> RunOf(const ChatId& chat, InteractionId id) const;
  std::vector<std::shared_ptr<Run>> Runs() const;
  // Calls `look` with the run of the chat, or null, before anything else comes: with the lock held.
  Result<void> LookAt(const ChatId& chat, const std::function<void(const std::shared_ptr<Run>&)>& look);

  // `change` is called with the chat kept from starting a run; "busy" if it has one.
  template <typename Change>
  auto WhileIdle(const ChatId& chat, Change change) -> decltype(change()) {
    if (auto occupied = Occupy(chat); !occupied) return Fail(std::move(occupied.error()));
    const std::shared_ptr<void> release(nullptr, [&](void*) { Release(chat); });  // also when it throws
    return change();
  }
  // As Occupy, but ends whatever runs in the chat, also what begins meanwhile, and waits for its end.
  Result<void> OccupyWhenStopped(const ChatId& chat, std::string_view reason);
  // As WhileIdle, likewise.
  template <typename Change>
  auto WhenStopped(const ChatId& chat, std::string_view reason, Change change) -> decltype(change()) {
    if (auto occupied = OccupyWhenStopped(chat, reason); !occupied) return Fail(std::move(occupied.error()));
    const std::shared_ptr<void> release(nullptr, [&](void*) { Release(chat); });
    return change();
  }

  bool is_stopping() const;
  // From now on nothing is occupied; what runs goes on.
  void BeginDrain();
  bool is_draining() const;
  // And nobody waits for anything.
  void BeginStop();
  void AwaitAllWork();
  // And for what is about to start. False: not within `limit`.
  bool AwaitAllWork(std::chrono::nanoseconds limit);
  Engine::Counters counters() const;

 private:
  // One that is just about to start has its id in a moment.
  void AwaitStarted(MutexLock& lock, const ChatId& chat) REQUIRES(mutex_);
  // One that has ended leaves in a moment. Others may have seen its checkpoint already, and believe that the chat is
  // free.
  void AwaitSaved(MutexLock& lock, const ChatId& chat) REQUIRES(mutex_);
  void AwaitEndOf(const Run& run);

  EngineServices& services_;
  const std::function<void(const ChatId&)> start_next_;
  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  // A null run is one that is about to start, or a chat that is being rearranged.
  std::unordered_map<ChatId, std::shared_ptr<Run>> active_ GUARDED_BY(mutex_);
  bool draining_ GUARDED_BY(mutex_) = false;  // also when stopping
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::size_t unfinished_ GUARDED_BY(mutex_) = 0;   // runs whose thread is not done, and what is about to begin
  Engine::Counters counters_ GUARDED_BY(mutex_){};  // the totals only
};

}  // namespace reprise
