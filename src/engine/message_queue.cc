#include "engine/message_queue.h"

#include <algorithm>
#include <utility>

#include "base/logging.h"
#include "base/try.h"

namespace reprise {
namespace {

Error Dequeued() { return Refused(Reason::kDequeued, "the message was removed from the queue"); }

// The other servers took this one for dead meanwhile.
Error BegunElsewhere(InteractionId id) {
  return Refused(Reason::kBegunElsewhere, "another server has begun this message, as " + id.str() + "; follow that");
}

Error StoppingWithQueue() {
  return Refused(Reason::kStopping, "the server is stopping; queued messages run when it starts again");
}

tl::unexpected<Error> NoneWaits() { return Fail(ErrorCode::kNotFound, "no such message waits in this chat"); }

}  // namespace

// --- a queued run ----------------------------------------------------------------------------------------------------

Result<InteractionId> QueuedRun::outcome() const {
  const MutexLock lock(mutex_);
  if (began_as_) return *began_as_;
  return Fail(ended_.value_or(Dequeued()));
}

void QueuedRun::ClientCame() {
  const MutexLock lock(mutex_);
  had_client_ = listening_ = true;
}

QueuedRun::Left QueuedRun::ClientLeft() {
  const MutexLock lock(mutex_);
  listening_ = false;
  return {.hold = std::exchange(hold_, nullptr), .waits = !began_as_ && !ended_};
}

std::shared_ptr<void> QueuedRun::Began(InteractionId id, std::shared_ptr<void> hold) {
  const MutexLock lock(mutex_);
  began_as_ = id;
  if (!listening_) return hold;
  hold_ = std::move(hold);
  return nullptr;
}

bool QueuedRun::End(const Error& error) {
  {
    const MutexLock lock(mutex_);
    if (ended_ || began_as_) return false;
    ended_ = error;
    if (!listening_) return false;
  }
  log->Append(0, event::Failed{error.reason, error.message, error.retryable});
  log->Close();
  return true;
}

bool QueuedRun::had_client() const {
  const MutexLock lock(mutex_);
  return had_client_;
}

bool QueuedRun::has_left() const {
  const MutexLock lock(mutex_);
  return had_client_ && !listening_ && !began_as_ && !ended_;
}

// --- all queues ------------------------------------------------------------------------------------------------------

// A starting run ends in its own way.
bool MessageQueues::IsStarting(const std::shared_ptr<QueuedRun>& run) {
  return run->state_ == QueuedRun::State::kStarting;
}

MessageQueues::Queue MessageQueues::Merge(const ChatId& chat, const Queue& known, std::vector<WaitingMessage> stored,
                                          Queue& gone, std::vector<std::string>& left) {
  using State = QueuedRun::State;
  Queue now;
  std::unordered_map<std::string, std::shared_ptr<QueuedRun>> by_id;
  for (const auto& run : known) run->durable() ? void(by_id.emplace(run->id, run)) : now.push_back(run);
  for (WaitingMessage& each : stored) {
    if (erased_.contains(each.message.id)) {
      left.push_back(std::move(each.message.id));
      continue;
    }
    std::shared_ptr<QueuedRun> run;
    if (const auto found = by_id.find(each.message.id); found != by_id.end()) {
      run = std::move(found->second);
      by_id.erase(found);
    } else {
      run = std::make_shared<QueuedRun>(chat, each.message, nullptr);
    }
    now.push_back(run);
    if (run->state_ == State::kStarting) continue;
    run->message_ = std::move(each.message);
    run->version_ = each.version;
    run->is_others_ = each.is_others;
    run->error_ = std::move(each.failure);
    if (run->error_) run->state_ = State::kStuck;
    if (!run->error_ && run->state_ != State::kPaused) run->state_ = State::kWaiting;
  }
  for (const auto& run : known) {
    const auto missing = by_id.find(run->id);
    if (missing == by_id.end()) continue;
    if (run->state_ == State::kStarting) {
      now.push_front(run);
    } else {
      gone.push_back(run);
    }
  }
  return now;
}

Result<void> MessageQueues::Read(const ChatId& chat) {
  auto stored = TRY(store_.LoadQueue(chat));
  Queue gone;
  std::vector<std::string> left;
  {
    const MutexLock lock(mutex_);
    const auto known = queues_.find(chat);
    if (known == queues_.end() && stored.empty()) return {};
    Queue now = Merge(chat, known == queues_.end() ? Queue() : known->second, std::move(stored), gone, left);
    if (now.empty()) {
      queues_.erase(chat);
    } else {
      queues_.insert_or_assign(chat, std::move(now));
    }
  }
  for (const std::string& id : left) {
    if (!store_.RemoveQueued(chat, id)) continue;  // the next read tries again
    const MutexLock lock(mutex_);
    erased_.erase(id);
  }
  for (const auto& run : gone) TellGone(*run);
  return {};
}

void MessageQueues::TellGone(QueuedRun& run) {
  std::optional<InteractionId> begun;
  if (run.had_client()) begun = store_.BegunElsewhere(run.chat_id, run.queue_id()).value_or(std::nullopt);
  run.End(begun ? BegunElsewhere(*begun) : Dequeued());
}

Result<void> MessageQueues::Refresh(const ChatId& chat) {
  const MutexLock store_lock(store_mutex_);
  return Read(chat);
}

bool MessageQueues::Knows(const ChatId& chat) const {
  const MutexLock lock(mutex_);
  return queues_.contains(chat);
}

Result<void> MessageQueues::Add(const std::shared_ptr<QueuedRun>& run) {
  const MutexLock store_lock(store_mutex_);
  auto added = store_.AddQueued(run->chat_id, run->message_);
  {
    const MutexLock lock(mutex_);
    // It may have been stored although the call failed, so the next read removes it.
    if (!added && added.error().Is(Reason::kDatabaseUnavailable)) erased_.insert(run->id);
    if (!added) return added;
    queues_[run->chat_id].push_back(run);
    run->state_ = QueuedRun::State::kWaiting;
  }
  EndIfStopping(*run);
  TellChanged(run->chat_id);
  // Messages of other processes may come first. The new one is stored even if this read fails.
  if (auto read = Read(run->chat_id); !read) {
    LogWarning("a queue could not be read", {{"chat", run->chat_id.str()}, {"detail", read.error().detail}});
  }
  return {};
}

void MessageQueues::AddFirst(const std::shared_ptr<QueuedRun>& run) {
  const MutexLock lock(mutex_);
  Queue& queue = queues_[run->chat_id];
  const auto place = std::ranges::find_if(queue, [](const auto& each) { return each->durable(); });
  queue.insert(place, run);
  run->state_ = QueuedRun::State::kWaiting;
}

// A message that waits for something else or for another process blocks those after it; only stuck ones are skipped.
std::shared_ptr<QueuedRun> MessageQueues::Next(const ChatId& chat) const {
  const auto found = queues_.find(chat);
  if (found == queues_.end() || held_.contains(chat)) return nullptr;
  for (const auto& run : found->second) {
    if (run->state_ == QueuedRun::State::kStuck) continue;
    return run->state_ == QueuedRun::State::kWaiting && !run->is_others_ ? run : nullptr;
  }
  return nullptr;
}

bool MessageQueues::HasNext(const ChatId& chat) const {
  const MutexLock lock(mutex_);
  return Next(chat) != nullptr;
}

std::shared_ptr<QueuedRun> MessageQueues::TakeNext(const ChatId& chat) {
  const MutexLock lock(mutex_);
  auto run = Next(chat);
  if (run) run->state_ = QueuedRun::State::kStarting;
  return run;
}

// Not during a read of the queue, which may still have seen the message.
void MessageQueues::Begun(QueuedRun& run) {
  const MutexLock store_lock(store_mutex_);
  const MutexLock lock(mutex_);
  EraseHeld(run);
  if (run.durable()) TellChanged(run.chat_id);
}

void MessageQueues::Gone(QueuedRun& run) {
  {
    const MutexLock lock(mutex_);
    EraseHeld(run);
  }
  TellGone(run);
}

void MessageQueues::Drop(QueuedRun& run) {
  {
    const MutexLock lock(mutex_);
    EraseHeld(run);
    if (run.durable()) erased_.insert(run.id);
  }
  if (!run.durable()) return;
  if (auto removed = RemoveErased(run); !removed) {
    LogError("a message that could not begin could not be taken from the queue",
             {{"chat", run.chat_id.str()}, {"code", removed.error().reason}, {"detail", removed.error().detail}});
  }
}

void MessageQueues::PutBack(QueuedRun& run) { WaitAs(run, QueuedRun::State::kWaiting); }

void MessageQueues::Pause(QueuedRun& run) { WaitAs(run, QueuedRun::State::kPaused); }

void MessageQueues::WaitAs(QueuedRun& run, QueuedRun::State state) {
  {
    const MutexLock lock(mutex_);
    run.state_ = state;
  }
  EndIfStopping(run);
}

// For a message that was added, or was about to begin, while the others were told.
void MessageQueues::EndIfStopping(QueuedRun& run) {
  {
    const MutexLock lock(mutex_);
    if (!stopping_) return;
  }
  run.End(StoppingWithQueue());
  if (run.durable()) store_.LeaveQueues();
}

void MessageQueues::GoOn(const ChatId& chat) {
  const MutexLock lock(mutex_);
  const auto found = queues_.find(chat);
  if (found == queues_.end()) return;
  for (const auto& run : found->second) {
    if (run->state_ == QueuedRun::State::kPaused) run->state_ = QueuedRun::State::kWaiting;
  }
}

void MessageQueues::Stuck(QueuedRun& run, Error error) {
  const MutexLock store_lock(store_mutex_);
  if (auto noted = store_.FailQueued(run.chat_id, run.id, error); !noted) {
    LogWarning("the failure of a message could not be recorded in its queue",
               {{"chat", run.chat_id.str()}, {"detail", noted.error().detail}});
  }
  const MutexLock lock(mutex_);
  run.state_ = QueuedRun::State::kStuck;
  run.error_ = std::move(error);
  TellChanged(run.chat_id);
}

Result<std::optional<ClientRequest>> MessageQueues::RequestOf(const ChatId& chat, const std::string& key) {
  const auto is_meant = [&](const QueuedMessage& message) { return message.request && message.request->key == key; };
  {
    const MutexLock lock(mutex_);  // here are also those that are about to begin, and are no longer stored
    if (const auto found = queues_.find(chat); found != queues_.end()) {
      for (const auto& run : found->second) {
        if (is_meant(run->message_)) return run->message_.request;
      }
    }
  }
  for (const WaitingMessage& each : TRY(store_.LoadQueue(chat))) {
    if (is_meant(each.message)) return each.message.request;
  }
  return std::nullopt;
}

QueuedMessage MessageQueues::message(const QueuedRun& run) const {
  const MutexLock lock(mutex_);
  return run.message_;
}

QueuedRef MessageQueues::reference(const QueuedRun& run) const {
  const MutexLock lock(mutex_);
  return {.id = run.id, .version = run.version_};
}

std::shared_ptr<QueuedRun> MessageQueues::Find(const ChatId& chat, std::string_view id) const {
  const auto found = queues_.find(chat);
  if (found == queues_.end()) return nullptr;
  const auto place = std::ranges::find_if(found->second, [&](const auto& run) {
    return run->durable() && run->id == id && run->state_ != QueuedRun::State::kStarting;
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
  const MutexLock store_lock(store_mutex_);
  TRY(Read(chat));
  std::vector<QueueEntry> entries;
  const MutexLock lock(mutex_);
  const auto found = queues_.find(chat);
  if (found == queues_.end()) return entries;
  for (const auto& run : found->second) {
    if (run->durable() && run->state_ != QueuedRun::State::kStarting) entries.push_back({run->message_, run->error_});
  }
  return entries;
}

// A message that begins here at this moment must not change, although it is still in the store. If it begins between
// the check and the change, the store decides who was first.
Result<QueueEntry> MessageQueues::Change(const ChatId& chat, std::string_view id, const std::string& user_message) {
  const MutexLock store_lock(store_mutex_);
  TRY(Read(chat));
  QueueEntry entry;
  {
    const MutexLock lock(mutex_);
    const auto run = Find(chat, id);
    if (!run) return NoneWaits();
    entry.message = run->message_;
  }
  TRY(store_.ChangeQueued(chat, id, user_message));
  TellChanged(chat);
  TRY(Read(chat));
  entry.message.user_message = user_message;
  return entry;
}

Result<void> MessageQueues::Remove(const ChatId& chat, std::string_view id) {
  std::shared_ptr<QueuedRun> run;
  {
    const MutexLock store_lock(store_mutex_);
    if (auto read = Read(chat); !read) return read;
    {
      const MutexLock lock(mutex_);
      run = Find(chat, id);
      if (!run) return NoneWaits();
    }
    if (auto removed = store_.RemoveQueued(chat, id); !removed) return removed;
    const MutexLock lock(mutex_);
    EraseHeld(*run);
  }
  TellChanged(chat);
  run->End(Dequeued());
  return {};
}

bool MessageQueues::Erase(QueuedRun& run) {
  const MutexLock lock(mutex_);
  if (run.state_ == QueuedRun::State::kStarting || !EraseHeld(run)) return false;
  if (run.durable()) erased_.insert(run.id);
  return true;
}

Result<void> MessageQueues::RemoveErased(const QueuedRun& run) {
  const MutexLock store_lock(store_mutex_);
  auto removed = store_.RemoveQueued(run.chat_id, run.id);
  if (!removed && !IsNotFound(removed.error())) return removed;  // the next read removes it
  {
    const MutexLock lock(mutex_);
    erased_.erase(run.id);
  }
  TellChanged(run.chat_id);
  return {};
}

std::shared_ptr<void> MessageQueues::Hold(const ChatId& chat) {
  const MutexLock lock(mutex_);
  held_.insert(chat);
  return {nullptr, [this, chat](void*) {
            const MutexLock again(mutex_);
            held_.erase(held_.find(chat));
          }};
}

// The queue goes first, because a chat that comes back from the trash must begin nothing.
Result<void> MessageQueues::RemoveWith(const ChatId& chat, const std::function<Result<void>()>& remove_chat) {
  Queue removed;
  Result<void> done;
  {
    const MutexLock store_lock(store_mutex_);
    const auto stored = store_.LoadQueue(chat);
    TRY(store_.ClearQueue(chat));
    done = remove_chat();
    if (!done && !IsNotFound(done.error())) {
      if (stored) PutBackAll(chat, *stored);
      return done;
    }
    const MutexLock lock(mutex_);
    if (const auto found = queues_.find(chat); found != queues_.end()) {
      TellChanged(chat);
      // A run that is about to begin notices when it begins, or at the next read of the queue.
      Queue starting;
      for (auto& run : found->second) (IsStarting(run) ? starting : removed).push_back(std::move(run));
      found->second = std::move(starting);
      if (found->second.empty()) queues_.erase(found);
    }
  }
  for (const auto& run : removed) run->End(Dequeued());
  return done;
}

void MessageQueues::PutBackAll(const ChatId& chat, const std::vector<WaitingMessage>& stored) {
  for (const WaitingMessage& each : stored) {
    auto back = store_.AddQueued(chat, each.message);
    if (back && each.failure) back = store_.FailQueued(chat, each.message.id, *each.failure);
    if (!back) {
      LogError("a message that waits could not be kept",
               {{"chat", chat.str()}, {"code", back.error().reason}, {"detail", back.error().detail}});
    }
  }
  static_cast<void>(Read(chat));
}

void MessageQueues::TellStopping() {
  std::vector<std::shared_ptr<QueuedRun>> all;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (const auto& [chat, queue] : queues_) all.insert(all.end(), queue.begin(), queue.end());
    std::erase_if(all, IsStarting);
  }
  for (const auto& run : all) run->End(StoppingWithQueue());
  if (!all.empty()) store_.LeaveQueues();
}

Result<std::vector<ChatId>> MessageQueues::RefreshAll() {
  auto chats = store_.ListQueues();
  if (!chats) return chats;
  {
    const MutexLock lock(mutex_);
    for (const auto& [chat, queue] : queues_) {
      if (std::ranges::find(*chats, chat) == chats->end()) chats->push_back(chat);
    }
  }
  std::erase_if(*chats, [&](const ChatId& chat) {
    const auto read = Refresh(chat);
    if (!read) {
      LogError("a chat's queue cannot be read; it is left as it is",
               {{"chat", chat.str()}, {"code", read.error().reason}, {"detail", read.error().detail}});
    }
    return !read;
  });
  return chats;
}

}  // namespace reprise
