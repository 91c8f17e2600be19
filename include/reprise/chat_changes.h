#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
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
  mutable std::mutex mutex_;
  std::condition_variable added_;
  std::deque<ChatChange> changes_;  // guarded by mutex_
  std::uint64_t last_ = 0;          // guarded by mutex_
  std::size_t waiting_ = 0;         // guarded by mutex_
  std::uint64_t interrupts_ = 0;    // guarded by mutex_
};

}  // namespace reprise
