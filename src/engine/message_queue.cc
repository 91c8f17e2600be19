#include "engine/message_queue.h"

#include <algorithm>
#include <utility>

#include "base/logging.h"

namespace reprise {
namespace {

Error Dequeued() {
  return {.code = ErrorCode::kGone, .reason = "dequeued", .message = "the message was removed from the queue"};
}

Error StoppingWithQueue() {
  return {.code = ErrorCode::kUnavailable,
          .reason = "stopping",
          .message = "the server is stopping; a queued message runs after its next start",
          .retryable = true};
}

Error QueueFull() {
  return {.code = ErrorCode::kUnavailable,
          .reason = "queue_full",
          .message = "too many messages wait in this chat",
          .retryable = true};
}

tl::unexpected<Error> NoneWaits() { return Fail(ErrorCode::kNotFound, "no such message waits in this chat"); }

}  // namespace

// --- one -------------------------------------------------------------------------------------------------------------

Result<InteractionId> QueuedRun::outcome() const {
  const std::lock_guard lock(mutex_);
  if (began_as_) return *began_as_;
  return Fail(ended_.value_or(Dequeued()));
}

void QueuedRun::ClientCame() {
  const std::lock_guard lock(mutex_);
  had_client_ = listening_ = true;
}

QueuedRun::Left QueuedRun::ClientLeft() {
  const std::lock_guard lock(mutex_);
  listening_ = false;
  return {.hold = std::exchange(hold_, nullptr), .waits = !began_as_ && !ended_};
}

std::shared_ptr<void> QueuedRun::Began(InteractionId id, std::shared_ptr<void> hold) {
  const std::lock_guard lock(mutex_);
  began_as_ = id;
  if (!listening_) return hold;
  hold_ = std::move(hold);
  return nullptr;
}

bool QueuedRun::End(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || began_as_) return false;
    ended_ = error;
    if (!listening_) return false;
  }
  log->Append(0, event::Failed{error.reason, error.message, error.retryable});
  log->Close();
  return true;
}

bool QueuedRun::had_client() const {
  const std::lock_guard lock(mutex_);
  return had_client_;
}

// --- all -------------------------------------------------------------------------------------------------------------

// It has its own way to end.
bool MessageQueues::IsStarting(const std::shared_ptr<QueuedRun>& run) {
  return run->state_ == QueuedRun::State::kStarting;
}

Result<void> MessageQueues::Load(const ChatId& chat) {
  if (loaded_.contains(chat)) return {};
  auto stored = store_.LoadQueue(chat);
  if (!stored) return Fail(std::move(stored.error()));
  const auto had = stored->size();
  std::erase_if(*stored, [&](const QueuedMessage& message) { return forgotten_.contains(message.id); });
  if (stored->size() < had) {
    if (auto saved = store_.SaveQueue(chat, *stored); !saved) return saved;
  }
  loaded_.insert(chat);
  if (stored->empty()) return {};
  const std::lock_guard lock(mutex_);
  Queue& queue = queues_[chat];
  for (QueuedMessage& message : *stored) {
    auto run = std::make_shared<QueuedRun>(chat, std::move(message), nullptr);
    run->state_ = QueuedRun::State::kWaiting;
    queue.push_back(std::move(run));
  }
  return {};
}

Result<void> MessageQueues::SaveHeld(const ChatId& chat) {
  std::vector<QueuedMessage> messages;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = queues_.find(chat); found != queues_.end()) {
      for (const auto& run : found->second) {
        if (run->durable()) messages.push_back(run->message_);
      }
    }
  }
  auto saved = store_.SaveQueue(chat, messages);
  if (saved) TellChanged(chat);
  return saved;
}

Result<void> MessageQueues::Add(const std::shared_ptr<QueuedRun>& run) {
  const std::lock_guard files_lock(files_mutex_);
  if (auto loaded = Load(run->chat_id); !loaded) return loaded;
  {
    const std::lock_guard lock(mutex_);
    Queue& queue = queues_[run->chat_id];
    std::size_t bytes = run->message_.user_message.size();
    for (const auto& each : queue) bytes += each->message_.user_message.size();
    if (queue.size() >= kMaxQueued || bytes > kMaxQueuedBytes) return Fail(QueueFull());
    queue.push_back(run);
  }
  auto saved = SaveHeld(run->chat_id);
  const std::lock_guard lock(mutex_);
  if (saved) {
    run->state_ = QueuedRun::State::kWaiting;
  } else {
    EraseHeld(*run);
  }
  return saved;
}

void MessageQueues::AddFirst(const std::shared_ptr<QueuedRun>& run) {
  const std::lock_guard lock(mutex_);
  Queue& queue = queues_[run->chat_id];
  const auto place = std::find_if(queue.begin(), queue.end(), [](const auto& each) { return each->durable(); });
  queue.insert(place, run);
  run->state_ = QueuedRun::State::kWaiting;
}

bool MessageQueues::HasNext(const ChatId& chat) const {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(chat);
  return found != queues_.end() && std::any_of(found->second.begin(), found->second.end(), [](const auto& run) {
           return run->state_ == QueuedRun::State::kWaiting;
         });
}

std::shared_ptr<QueuedRun> MessageQueues::TakeNext(const ChatId& chat) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(chat);
  if (found == queues_.end()) return nullptr;
  for (const auto& run : found->second) {
    if (run->state_ != QueuedRun::State::kWaiting) continue;
    run->state_ = QueuedRun::State::kStarting;
    return run;
  }
  return nullptr;
}

void MessageQueues::Begun(QueuedRun& run) {
  {
    const std::lock_guard lock(mutex_);
    EraseHeld(run);
  }
  if (!run.durable()) return;
  if (auto saved = Save(run.chat_id); !saved) {
    LogError("a message that has begun could not be taken from the queue's file; the next change of it does",
             {{"chat", run.chat_id.str()}, {"code", saved.error().reason}, {"detail", saved.error().detail}});
  }
}

void MessageQueues::PutBack(QueuedRun& run) {
  const std::lock_guard lock(mutex_);
  run.state_ = QueuedRun::State::kWaiting;
}

void MessageQueues::Pause(QueuedRun& run) {
  const std::lock_guard lock(mutex_);
  run.state_ = QueuedRun::State::kPaused;
}

void MessageQueues::GoOn(const ChatId& chat) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(chat);
  if (found == queues_.end()) return;
  for (const auto& run : found->second) {
    if (run->state_ == QueuedRun::State::kPaused) run->state_ = QueuedRun::State::kWaiting;
  }
}

void MessageQueues::Stuck(QueuedRun& run, Error error) {
  const std::lock_guard lock(mutex_);
  TellChanged(run.chat_id);
  run.state_ = QueuedRun::State::kStuck;
  run.error_ = std::move(error);
}

std::optional<ClientRequest> MessageQueues::RequestOf(const ChatId& chat, const std::string& key) {
  const std::lock_guard files_lock(files_mutex_);
  if (!Load(chat)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto queue = queues_.find(chat);
  if (queue == queues_.end()) return std::nullopt;
  for (const auto& each : queue->second) {
    if (const auto& request = each->message_.request; request && request->key == key) return request;
  }
  return std::nullopt;
}

QueuedMessage MessageQueues::message(const QueuedRun& run) const {
  const std::lock_guard lock(mutex_);
  return run.message_;
}

std::shared_ptr<QueuedRun> MessageQueues::Find(const ChatId& chat, std::string_view id) const {
  const auto found = queues_.find(chat);
  if (found == queues_.end()) return nullptr;
  const auto place = std::find_if(found->second.begin(), found->second.end(), [&](const auto& run) {
    return run->durable() && run->message_.id == id && run->state_ != QueuedRun::State::kStarting;
  });
  return place == found->second.end() ? nullptr : *place;
}

bool MessageQueues::EraseHeld(const QueuedRun& run) {
  const auto found = queues_.find(run.chat_id);
  if (found == queues_.end()) return false;
  const bool erased = std::erase_if(found->second, [&](const auto& each) { return each.get() == &run; }) > 0;
  if (found->second.empty()) queues_.erase(found);
  return erased;
}

Result<std::vector<QueueEntry>> MessageQueues::List(const ChatId& chat) {
  const std::lock_guard files_lock(files_mutex_);
  if (auto loaded = Load(chat); !loaded) return Fail(std::move(loaded.error()));
  std::vector<QueueEntry> entries;
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(chat);
  if (found == queues_.end()) return entries;
  for (const auto& run : found->second) {
    if (run->durable() && run->state_ != QueuedRun::State::kStarting) entries.push_back({run->message_, run->error_});
  }
  return entries;
}

Result<QueueEntry> MessageQueues::Change(const ChatId& chat, std::string_view id, const std::string& user_message) {
  const std::lock_guard files_lock(files_mutex_);
  if (auto loaded = Load(chat); !loaded) return Fail(std::move(loaded.error()));
  std::shared_ptr<QueuedRun> run;
  std::string before = user_message;
  {
    const std::lock_guard lock(mutex_);
    run = Find(chat, id);
    if (!run) return NoneWaits();
    std::swap(run->message_.user_message, before);
  }
  auto saved = SaveHeld(chat);
  const std::lock_guard lock(mutex_);
  if (!saved) {
    run->message_.user_message = std::move(before);
    return Fail(std::move(saved.error()));
  }
  if (run->state_ == QueuedRun::State::kStuck) {
    run->state_ = QueuedRun::State::kWaiting;
    run->error_.reset();
  }
  return QueueEntry{run->message_, std::nullopt};
}

Result<void> MessageQueues::Remove(const ChatId& chat, std::string_view id) {
  std::shared_ptr<QueuedRun> run;
  {
    const std::lock_guard files_lock(files_mutex_);
    if (auto loaded = Load(chat); !loaded) return loaded;
    {
      const std::lock_guard lock(mutex_);
      run = Find(chat, id);
      if (!run) return NoneWaits();
      EraseHeld(*run);
    }
    if (auto saved = SaveHeld(chat); !saved) return saved;
  }
  run->End(Dequeued());
  return {};
}

bool MessageQueues::Erase(QueuedRun& run) {
  const std::lock_guard lock(mutex_);
  return run.state_ != QueuedRun::State::kStarting && EraseHeld(run);
}

Result<void> MessageQueues::Save(const ChatId& chat) {
  const std::lock_guard files_lock(files_mutex_);
  return SaveHeld(chat);
}

Result<void> MessageQueues::Clear(const ChatId& chat) {
  Queue removed;
  {
    const std::lock_guard files_lock(files_mutex_);
    if (auto saved = store_.SaveQueue(chat, {}); !saved) return saved;
    const std::lock_guard lock(mutex_);
    if (const auto found = queues_.find(chat); found != queues_.end()) {
      TellChanged(chat);
      removed = std::move(found->second);
      queues_.erase(found);
    }
    std::erase_if(removed, IsStarting);
  }
  for (const auto& run : removed) run->End(Dequeued());
  return {};
}

void MessageQueues::TellStopping() {
  std::vector<std::shared_ptr<QueuedRun>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [chat, queue] : queues_) all.insert(all.end(), queue.begin(), queue.end());
    std::erase_if(all, IsStarting);
  }
  for (const auto& run : all) run->End(StoppingWithQueue());
}

void MessageQueues::Forget(const std::string& id) {
  const std::lock_guard lock(files_mutex_);
  forgotten_.insert(id);
}

Result<std::vector<ChatId>> MessageQueues::LoadAll() {
  auto chats = store_.ListQueues();
  if (!chats) return chats;
  std::erase_if(*chats, [&](const ChatId& chat) {
    const std::lock_guard lock(files_mutex_);
    const auto loaded = Load(chat);
    if (!loaded) {
      LogError("a chat's queue cannot be read; it is left as it is",
               {{"chat", chat.str()}, {"code", loaded.error().reason}, {"detail", loaded.error().detail}});
    }
    return !loaded;
  });
  return chats;
}

}  // namespace reprise
