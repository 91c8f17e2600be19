#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "reprise/chat_changes.h"
#include "reprise/engine.h"
#include "reprise/queue.h"
#include "reprise/run_store.h"

namespace reprise {

class Run;

// A run that waits until its chat is free: a message in the chat's queue, or what has cancelled the run before it.
class QueuedRun final : public WaitingRun {
 public:
  using MakeRun = std::function<Result<std::shared_ptr<Run>>(QueuedRun&)>;
  // `make` is null for a message in the queue, which is kept on disk and starts at the head.
  QueuedRun(ChatId chat, QueuedMessage message, MakeRun make_run)
      : chat_id(std::move(chat)), id(message.id), make(std::move(make_run)), message_(std::move(message)) {}

  const ChatId chat_id;
  const std::string id;  // of the message
  const MakeRun make;
  const std::shared_ptr<EventLog> log = std::make_shared<EventLog>();
  // The span of whoever asked for it. Set before it is added; a message that another process has queued has none.
  TraceContext trace_parent{};

  bool durable() const { return make == nullptr; }
  std::string queue_id() const override { return durable() ? id : std::string(); }
  Result<InteractionId> outcome() const override;

  // --- its client
  void ClientCame();
  // What the client held of the run, if it has begun. True in `waits` if it has not, and has not ended either.
  struct Left {
    std::shared_ptr<void> hold;
    bool waits = false;
  };
  Left ClientLeft();
  // It has become an interaction. `hold` is kept for the client, or given back if that has gone.
  std::shared_ptr<void> Began(InteractionId id, std::shared_ptr<void> hold);
  // It never will: tells the client, if there is one. False: there is none, or it was told before.
  bool End(const Error& error);
  bool had_client() const;
  // Its client has gone while it waited.
  bool has_left() const;

 private:
  friend class MessageQueues;
  enum class State { kNew, kWaiting, kPaused, kStuck, kStarting };

  // Guarded by the mutex of MessageQueues.
  QueuedMessage message_;
  std::int64_t version_ = 0;  // of the message, as the store has it
  bool is_others_ = false;    // another process sees to it
  State state_ = State::kNew;
  std::optional<Error> error_;

  mutable Mutex mutex_;
  bool had_client_ GUARDED_BY(mutex_) = false, listening_ GUARDED_BY(mutex_) = false;
  std::shared_ptr<void> hold_ GUARDED_BY(mutex_);
  std::optional<InteractionId> began_as_ GUARDED_BY(mutex_);
  std::optional<Error> ended_ GUARDED_BY(mutex_);
};

// What waits in each chat. The store has it; here is what was last seen of it, with the clients of this process.
// Thread-safe.
class MessageQueues {
 public:
  // `changes`, if there are any, learn of every change of a queue.
  explicit MessageQueues(QueueStore& store, ChatChanges* changes = nullptr) : store_(store), changes_(changes) {}

  // At the end of its chat's queue, durably. kUnavailable (reason "queue_full"), or why it could not be kept.
  Result<void> Add(const std::shared_ptr<QueuedRun>& run);
  // Before all messages, behind others that were added so.
  void AddFirst(const std::shared_ptr<QueuedRun>& run);
  // The one whose turn it is, if that is this process's to begin. It is the caller's now, and nobody else's to change
  // or remove.
  bool HasNext(const ChatId& chat) const;
  std::shared_ptr<QueuedRun> TakeNext(const ChatId& chat);
  // And then one of these: it has begun, and is not in the store any more (RunBeginning::queued); it could not, and its
  // client knows; it waits on; or it could not begin and nobody was told: so it stays until somebody looks.
  void Begun(QueuedRun& run);
  void Drop(QueuedRun& run);
  // Or the store has it no more: its client is told what became of it.
  void Gone(QueuedRun& run);
  void PutBack(QueuedRun& run);
  // Or it waits for something else before it is put back.
  void Pause(QueuedRun& run);
  // Puts those of the chat back that wait for something else, which has come.
  void GoOn(const ChatId& chat);
  void Stuck(QueuedRun& run, Error error);
  QueuedMessage message(const QueuedRun& run) const;
  QueuedRef reference(const QueuedRun& run) const;
  // The request that has brought the message of this Idempotency-Key, if it waits.
  std::optional<ClientRequest> RequestOf(const ChatId& chat, const std::string& key);

  Result<std::vector<QueueEntry>> List(const ChatId& chat);
  Result<QueueEntry> Change(const ChatId& chat, std::string_view id, const std::string& user_message);
  Result<void> Remove(const ChatId& chat, std::string_view id);
  // Takes it out here; RemoveErased takes it out of the store. False: it has begun, or is out already.
  bool Erase(QueuedRun& run);
  Result<void> RemoveErased(const QueuedRun& run);
  // Removes all that wait, and tells their clients.
  Result<void> Clear(const ChatId& chat);
  // Tells all clients that the server stops. What is durable stays so, for whoever looks next.
  void TellStopping();

  // Whether anything is known to wait in the chat.
  bool Knows(const ChatId& chat) const;
  // Looks at what the store has of the chat: other processes may have changed it.
  Result<void> Refresh(const ChatId& chat);
  // The same for all chats in which this process may have to begin something; these.
  Result<std::vector<ChatId>> RefreshAll();

 private:
  using Queue = std::deque<std::shared_ptr<QueuedRun>>;

  Result<void> Read(const ChatId& chat) REQUIRES(store_mutex_);
  void TellGone(QueuedRun& run);
  void WaitAs(QueuedRun& run, QueuedRun::State state);
  void EndIfStopping(QueuedRun& run);
  // What is there now, of what is stored and what is known here; `gone` is what does not wait any more, and `left` what
  // was to be removed.
  Queue Merge(const ChatId& chat, const Queue& known, std::vector<WaitingMessage> stored, Queue& gone,
              std::vector<std::string>& left) REQUIRES(mutex_);
  // Null: none that may be changed.
  std::shared_ptr<QueuedRun> Find(const ChatId& chat, std::string_view id) const REQUIRES(mutex_);
  std::shared_ptr<QueuedRun> Next(const ChatId& chat) const REQUIRES(mutex_);
  bool EraseHeld(const QueuedRun& run) REQUIRES(mutex_);
  void TellChanged(const ChatId& chat) const {
    if (changes_) changes_->Add(ChatChange::Kind::kQueueChanged, chat);
  }
  static bool IsStarting(const std::shared_ptr<QueuedRun>& run);

  QueueStore& store_;
  ChatChanges* const changes_;
  Mutex store_mutex_;  // held while a queue is read or written; taken before mutex_
  mutable Mutex mutex_;
  std::unordered_map<ChatId, Queue> queues_ GUARDED_BY(mutex_);  // without the empty ones
  std::set<std::string> erased_ GUARDED_BY(mutex_);              // that are in the store still
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
