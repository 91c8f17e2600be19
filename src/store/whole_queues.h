#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "reprise/queue.h"

namespace reprise {

// The functions of QueueStore for a store of one process that keeps the messages of a chat as a whole. Keeps each queue
// that was read once in memory, and writes all of it at every change. Thread-safe; its lock is held while a queue is
// read or written.
class WholeQueues {
 public:
  using Messages = std::vector<QueuedMessage>;
  // `write` replaces the messages that `read` returns, durably.
  WholeQueues(std::function<Result<Messages>(const ChatId&)> read,
              std::function<Result<void>(const ChatId&, const Messages&)> write)
      : read_(std::move(read)), write_(std::move(write)) {}

  // As the functions of QueueStore.
  Result<std::vector<WaitingMessage>> Load(const ChatId& chat);
  Result<void> Add(const ChatId& chat, const QueuedMessage& message);
  Result<void> Change(const ChatId& chat, std::string_view id, const std::string& user_message);
  Result<void> Remove(const ChatId& chat, std::string_view id);
  Result<void> NoteFailure(const ChatId& chat, std::string_view id, const Error& failure);
  Result<void> Take(const ChatId& chat, std::string_view id);
  Result<void> Clear(const ChatId& chat);
  // Call it when a chat's name may go to another chat.
  void Forget(const ChatId& chat);

 private:
  using Queue = std::vector<WaitingMessage>;

  Result<Queue*> Find(const ChatId& chat) REQUIRES(mutex_);
  Result<void> Write(const ChatId& chat, const Queue& queue) REQUIRES(mutex_);
  // Writes `changed` and then makes it the queue.
  Result<void> Replace(const ChatId& chat, Queue changed) REQUIRES(mutex_);
  static Queue::iterator Find(Queue& queue, std::string_view id);

  const std::function<Result<Messages>(const ChatId&)> read_;
  const std::function<Result<void>(const ChatId&, const Messages&)> write_;
  Mutex mutex_;
  std::unordered_map<ChatId, Queue> queues_ GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> taken_ GUARDED_BY(mutex_);  // while their queue could not be read
};

// Whether so many messages with so many bytes of text may wait. kUnavailable (reason "queue_full").
Result<void> CheckQueueHasRoom(std::size_t messages, std::size_t bytes);

}  // namespace reprise
