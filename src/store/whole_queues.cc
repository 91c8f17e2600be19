#include "store/whole_queues.h"

#include <algorithm>
#include <utility>

#include "base/try.h"
#include "store/store_errors.h"

namespace reprise {

Result<void> CheckQueueHasRoom(std::size_t messages, std::size_t bytes) {
  if (messages <= kMaxQueued && bytes <= kMaxQueuedBytes) return {};
  return Fail(Reason::kQueueFull, "too many messages wait in this chat");
}

Result<WholeQueues::Queue> WholeQueues::Read(const ChatId& chat) {
  Queue queue;
  bool has_taken = false;
  for (QueuedMessage& message : TRY(source_.read(chat))) {
    if (taken_.contains(message.id)) {
      has_taken = true;
    } else {
      queue.push_back({.message = std::move(message)});
    }
  }
  if (has_taken) TRY(Write(chat, queue));
  return queue;
}

Result<WholeQueues::Queue*> WholeQueues::Find(const ChatId& chat) {
  if (source_.is_read_only) return ReadOnly();
  const auto known = queues_.find(chat);
  if (known != queues_.end()) return &known->second;
  return &queues_.insert_or_assign(chat, TRY(Read(chat))).first->second;
}

WholeQueues::Queue::iterator WholeQueues::Find(Queue& queue, std::string_view id) {
  return std::ranges::find_if(queue, [&](const WaitingMessage& each) { return each.message.id == id; });
}

Result<void> WholeQueues::Write(const ChatId& chat, const Queue& queue) {
  Messages messages;
  for (const WaitingMessage& each : queue) messages.push_back(each.message);
  return source_.write(chat, messages);
}

Result<void> WholeQueues::Replace(const ChatId& chat, Queue changed) {
  TRY(Write(chat, changed));
  queues_.insert_or_assign(chat, std::move(changed));
  return {};
}

Result<std::vector<WaitingMessage>> WholeQueues::LoadQueue(const ChatId& chat) {
  const MutexLock lock(mutex_);
  if (source_.is_read_only) return Read(chat);
  return *TRY(Find(chat));
}

Result<void> WholeQueues::AddQueued(const ChatId& chat, const QueuedMessage& message) {
  const MutexLock lock(mutex_);
  Queue queue = *TRY(Find(chat));
  std::size_t bytes = message.user_message.size();
  for (const WaitingMessage& each : queue) bytes += each.message.user_message.size();
  TRY(CheckQueueHasRoom(queue.size() + 1, bytes));
  queue.push_back({.message = message});
  return Replace(chat, std::move(queue));
}

Result<void> WholeQueues::ChangeQueued(const ChatId& chat, std::string_view id, const std::string& user_message) {
  const MutexLock lock(mutex_);
  Queue queue = *TRY(Find(chat));
  const auto place = Find(queue, id);
  if (place == queue.end()) return NoneWaits();
  place->message.user_message = user_message;
  place->failure.reset();
  ++place->version;
  return Replace(chat, std::move(queue));
}

Result<void> WholeQueues::RemoveQueued(const ChatId& chat, std::string_view id) {
  const MutexLock lock(mutex_);
  Queue queue = *TRY(Find(chat));
  const auto place = Find(queue, id);
  if (place == queue.end()) return NoneWaits();
  queue.erase(place);
  return Replace(chat, std::move(queue));
}

Result<void> WholeQueues::FailQueued(const ChatId& chat, std::string_view id, const Error& failure) {
  const MutexLock lock(mutex_);
  Queue& queue = *TRY(Find(chat));
  const auto place = Find(queue, id);
  if (place == queue.end()) return NoneWaits();
  place->failure = failure;
  return {};
}

Result<void> WholeQueues::TakeQueued(const ChatId& chat, std::string_view id) {
  const MutexLock lock(mutex_);
  auto found = Find(chat);
  if (!found) {
    taken_.emplace(id);
    return Fail(std::move(found.error()));
  }
  const auto place = Find(**found, id);
  if (place == (*found)->end()) return {};
  (*found)->erase(place);
  return Write(chat, **found);
}

Result<void> WholeQueues::ClearQueue(const ChatId& chat) {
  if (source_.is_read_only) return ReadOnly();
  const MutexLock lock(mutex_);
  TRY(source_.write(chat, {}));
  queues_.erase(chat);
  return {};
}

void WholeQueues::Forget(const ChatId& chat) {
  const MutexLock lock(mutex_);
  queues_.erase(chat);
}

}  // namespace reprise
