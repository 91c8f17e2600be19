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

// Something that a list of all chats shows has changed. It tells what to look at again, not what is there now.
struct ChatChange {
  enum class Kind {
    kChatCreated,  // also by a fork, an import, from the trash, or by its first message
    kChatRenamed,
    kChatDeleted,
    kHeadMoved,  // by hand, or by a change that is an interaction of its own (tasks, a revoked grant)
    kInteractionStarted,
    kInteractionEnded,  // its checkpoint is on disk
    kApprovalOpened,
    kApprovalClosed,  // answered, expired, or its run was stopped
    kInputOpened,
    kInputClosed,
    kQueueChanged,
  };
  std::uint64_t number = 0;  // from 1, without gaps
  Kind kind = Kind::kChatCreated;
  ChatId chat_id;
  std::optional<InteractionId> interaction_id{};
  std::string request_id{};  // of an approval or a question
};

// "chat_created", as GET /events names it.
std::string_view ToString(ChatChange::Kind kind);

// The last few thousand changes of one process. Thread-safe; its lock is a leaf, and adding costs no more than that.
//
//   std::uint64_t seen = changes.last();
//   while (changes.AwaitAfter(seen, changes.interrupts())) {
//     for (const ChatChange& change : *changes.After(seen)) seen = change.number, Show(change);
//   }
class ChatChanges {
 public:
  void Add(ChatChange::Kind kind, const ChatId& chat, std::optional<InteractionId> interaction = std::nullopt,
           std::string request_id = {});
  // One that was made in another process.
  void AddFromOthers(ChatChange change);
  // Some were made in others, and nobody knows which: whoever asks for what comes after an earlier number is told that
  // it is forgotten.
  void Forget();
  // Told of each that Add adds, by whoever adds it, under whatever locks that has: must be quick. To be set before the
  // first is added.
  void OnAdded(std::function<void(const ChatChange&)> call) { on_added_ = std::move(call); }

  // The number of the newest; 0: there is none.
  std::uint64_t last() const;
  // Those with a number above `number`, oldest first. nullopt: some of them are forgotten, or there never was such a
  // number.
  std::optional<std::vector<ChatChange>> After(std::uint64_t number) const;
  // Waits until there is one with a number above, or there have been more than so many interrupts. False: there is
  // none.
  bool AwaitAfter(std::uint64_t number, std::uint64_t interrupts);
  // Whoever waits goes on, and so does who is about to wait with a count from before this.
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

// Passes changes on between processes that use the same chats. One that is lost on its way comes a second later.
// Thread-safe.
class SharedChanges {
 public:
  virtual ~SharedChanges() = default;
  // To all other processes. Does not wait.
  virtual void Tell(const ChatChange& change) = 0;
  // Calls `heard` with those of other processes, each once, in no certain order; nullopt: some are lost for good. By
  // any thread, never after Hear({}) has returned; must be quick.
  virtual void Hear(std::function<void(std::optional<ChatChange>)> heard) = 0;
};

}  // namespace reprise
