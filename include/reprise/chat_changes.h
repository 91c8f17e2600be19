#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/ids.h"

namespace reprise {

// A change of the list of all chats. It says what to read again, not the new state.
struct ChatChange {
  enum class Kind {
    kChatCreated,  // also by a fork, an import, a restore or a first message
    kChatRenamed,  // or another of its settings has changed
    kChatDeleted,
    kHeadMoved,  // by hand, or by an interaction without a run (tasks, a revoked grant)
    kInteractionStarted,
    kInteractionEnded,  // its checkpoint is on disk
    kApprovalOpened,
    kApprovalClosed,  // answered, expired, or its run was stopped
    kInputOpened,
    kInputClosed,
    kQueueChanged,
    kJobsChanged,  // a background job has started or ended
  };
  std::uint64_t number = 0;  // from 1, without gaps
  Kind kind = Kind::kChatCreated;
  ChatId chat_id;
  std::optional<InteractionId> interaction_id{};
  std::string request_id{};  // of an approval or a question
};

// "chat_created", as GET /events names it.
std::string_view ToString(ChatChange::Kind kind);

// The last few thousand changes of one process. Thread-safe; its lock is a leaf, and Add costs little more than that.
//
//   std::uint64_t seen = changes.last();
//   while (changes.AwaitAfter(seen, changes.interrupts())) {
//     const auto news = changes.After(seen);
//     if (!news) seen = changes.last(), ListAgain();  // some are forgotten
//     else for (const ChatChange& change : *news) seen = change.number, Show(change);
//   }
class ChatChanges {
 public:
  void Add(ChatChange::Kind kind, const ChatId& chat, std::optional<InteractionId> interaction = std::nullopt,
           std::string request_id = {});
  // Adds a change of another process.
  void AddFromOthers(ChatChange change);
  // Other processes made unknown changes: After(an earlier number) then returns nullopt.
  void Forget();
  // Sets a callback for each change of Add, on the adding thread and under its locks: must be quick. Set it before the
  // first Add.
  void OnAdded(std::function<void(const ChatChange&)> call) { on_added_ = std::move(call); }

  // The newest number; 0: none.
  std::uint64_t last() const;
  // Changes with a number above `number`, oldest first. nullopt: some of them are forgotten, or the number was never
  // used.
  std::optional<std::vector<ChatChange>> After(std::uint64_t number) const;
  // Waits for a number above `number`, or for more interrupts than `interrupts`. False: there is no such change.
  bool AwaitAfter(std::uint64_t number, std::uint64_t interrupts);
  // Wakes all waiting threads, and threads about to wait with an earlier count.
  void Interrupt();
  std::uint64_t interrupts() const;

 private:
  std::function<void(const ChatChange&)> on_added_{};
  mutable std::mutex mutex_;
  std::condition_variable added_;
  std::deque<ChatChange> changes_;  // guarded by mutex_
  std::uint64_t last_ = 0;          // guarded by mutex_
  std::size_t waiting_ = 0;         // guarded by mutex_
  std::uint64_t interrupts_ = 0;    // guarded by mutex_
};

// Exchanges changes between processes that use the same chats. A lost change arrives a second later. Thread-safe.
class SharedChanges {
 public:
  virtual ~SharedChanges() = default;
  // Sends a change to all other processes. Does not wait.
  virtual void Tell(const ChatChange& change) = 0;
  // Calls `heard` with changes of other processes, each once, in any order; nullopt: some are lost for good. Called by
  // any thread, never after Hear({}) has returned; must be quick.
  virtual void Hear(std::function<void(std::optional<ChatChange>)> heard) = 0;
};

}  // namespace reprise
