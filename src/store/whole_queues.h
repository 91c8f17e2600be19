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

// The queues of a store of one process that keeps the messages of a chat as a whole. Keeps each queue that was read
// once in memory, and writes all of it at every change. Thread-safe; its lock is held while a queue is read or written.
class WholeQueues final : public QueueStore {
 public:
  using Messages = std::vector<QueuedMessage>;
  struct Source {
    std::function<Result<Messages>(const ChatId&)> read;
    std::function<Result<void>(const ChatId&, const Messages&)> write;  // replaces them, durably
    std::function<Result<std::vector<ChatId>>()> list;                  // as ListQueues
    // Another process writes the queues: nothing is kept in memory, and every change is kForbidden.
    bool is_read_only = false;
  };
  explicit WholeQueues(Source source) : source_(std::move(source)) {}

  Result<std::vector<WaitingMessage>> LoadQueue(const ChatId& chat) override;
  Result<void> AddQueued(const ChatId& chat, const QueuedMessage& message) override;
  Result<void> ChangeQueued(const ChatId& chat, std::string_view id, const std::string& user_message) override;
  Result<void> RemoveQueued(const ChatId& chat, std::string_view id) override;
  Result<void> FailQueued(const ChatId& chat, std::string_view id, const Error& failure) override;
  Result<void> TakeQueued(const ChatId& chat, std::string_view id) override;
  Result<void> ClearQueue(const ChatId& chat) override;
  Result<std::vector<ChatId>> ListQueues() override { return source_.list(); }
  // Call it when a chat's name may go to another chat.
  void Forget(const ChatId& chat);

 private:
  using Queue = std::vector<WaitingMessage>;

  Result<Queue> Read(const ChatId& chat) REQUIRES(mutex_);
  Result<Queue*> Find(const ChatId& chat) REQUIRES(mutex_);
  Result<void> Write(const ChatId& chat, const Queue& queue) REQUIRES(mutex_);
  // Writes `changed` and then makes it the queue.
  Result<void> Replace(const ChatId& chat, Queue changed) REQUIRES(mutex_);
  static Queue::iterator Find(Queue& queue, std::string_view id);

  const Source source_;
  Mutex mutex_;
  std::unordered_map<ChatId, Queue> queues_ GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> taken_ GUARDED_BY(mutex_);  // while their queue could not be read
};

// Whether so many messages with so many bytes of text may wait. kUnavailable (reason "queue_full").
Result<void> CheckQueueHasRoom(std::size_t messages, std::size_t bytes);

}  // namespace reprise
