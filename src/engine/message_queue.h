#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reprise/chat_changes.h"
#include "reprise/engine.h"
#include "reprise/interaction_store.h"

namespace reprise {

class Run;

// A run that waits until its chat is free: a message in the chat's queue, or what has cancelled the run before it.
class QueuedRun final : public WaitingRun {
 public:
  using MakeRun = std::function<Result<std::shared_ptr<Run>>(QueuedRun&)>;
  // `make` is null for a message in the queue, which is kept on disk and starts at the head.
  QueuedRun(ChatId chat, QueuedMessage message, MakeRun make_run)
      : chat_id(std::move(chat)), make(std::move(make_run)), message_(std::move(message)) {}

  const ChatId chat_id;
  const MakeRun make;
  const std::shared_ptr<EventLog> log = std::make_shared<EventLog>();
  // The span of whoever asked for it. Set before it is added; a message that another process has queued has none.
  TraceContext trace_parent{};

  bool durable() const { return make == nullptr; }
  std::string queue_id() const override { return durable() ? message_.id : std::string(); }
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

 private:
  friend class MessageQueues;
  enum class State { kSaving, kWaiting, kPaused, kStuck, kStarting };

  // Guarded by the mutex of MessageQueues.
  QueuedMessage message_;
  State state_ = State::kSaving;
  std::optional<Error> error_;

  mutable std::mutex mutex_;
  bool had_client_ = false, listening_ = false;  // guarded by mutex_
  std::shared_ptr<void> hold_;                   // guarded by mutex_
  std::optional<InteractionId> began_as_;        // guarded by mutex_
  std::optional<Error> ended_;                   // guarded by mutex_
};

inline constexpr std::size_t kMaxQueued = 100;                   // messages in a chat
inline constexpr std::size_t kMaxQueuedBytes = 8 * 1024 * 1024;  // of their text

// What waits in each chat. Thread-safe. Queues are read from the store when they are first used.
class MessageQueues {
 public:
  // `changes`, if there are any, learn of every change of a queue.
  explicit MessageQueues(QueueStore& store, ChatChanges* changes = nullptr) : store_(store), changes_(changes) {}

  // At the end of its chat's queue, durably. kUnavailable (reason "queue_full"), or why it could not be kept.
  Result<void> Add(const std::shared_ptr<QueuedRun>& run);
  // Before all messages, behind others that were added so.
  void AddFirst(const std::shared_ptr<QueuedRun>& run);
  // The one whose turn it is. It is the caller's now to begin, and nobody else's to change or remove.
  bool HasNext(const ChatId& chat) const;
  std::shared_ptr<QueuedRun> TakeNext(const ChatId& chat);
  // And then one of these: it has begun (which its journal tells too), it waits on, or it could not begin and nobody
  // was told: so it stays until somebody looks.
  void Begun(QueuedRun& run);
  void PutBack(QueuedRun& run);
  // Or it waits for something else before it is put back.
  void Pause(QueuedRun& run);
  // Puts those of the chat back that wait for something else, which has come.
  void GoOn(const ChatId& chat);
  void Stuck(QueuedRun& run, Error error);
  QueuedMessage message(const QueuedRun& run) const;
  // The request that has brought the message of this Idempotency-Key, if it waits.
  std::optional<ClientRequest> RequestOf(const ChatId& chat, const std::string& key);

  Result<std::vector<QueueEntry>> List(const ChatId& chat);
  Result<QueueEntry> Change(const ChatId& chat, std::string_view id, const std::string& user_message);
  Result<void> Remove(const ChatId& chat, std::string_view id);
  // Takes it out; Save makes that durable. False: it has begun, or is out already.
  bool Erase(QueuedRun& run);
  Result<void> Save(const ChatId& chat);
  // Removes all that wait, and tells their clients.
  Result<void> Clear(const ChatId& chat);
  // Tells all clients that the server stops. What is durable stays so.
  void TellStopping();

  // A message that has begun in an earlier process, as a journal says: not to begin again.
  void Forget(const std::string& id);
  // The chats in which messages wait, read from the store.
  Result<std::vector<ChatId>> LoadAll();

 private:
  using Queue = std::deque<std::shared_ptr<QueuedRun>>;

  // REQUIRES: files_mutex_ is held.
  Result<void> Load(const ChatId& chat);
  Result<void> SaveHeld(const ChatId& chat);
  // REQUIRES: mutex_ is held.
  std::shared_ptr<QueuedRun> Find(const ChatId& chat, std::string_view id) const;  // null: none that may be changed
  bool EraseHeld(const QueuedRun& run);
  void TellChanged(const ChatId& chat) const {
    if (changes_) changes_->Add(ChatChange::Kind::kQueueChanged, chat);
  }
  static bool IsStarting(const std::shared_ptr<QueuedRun>& run);

  QueueStore& store_;
  ChatChanges* const changes_;
  std::mutex files_mutex_;           // held while a queue is read or written; taken before mutex_
  std::set<ChatId> loaded_;          // guarded by files_mutex_
  std::set<std::string> forgotten_;  // guarded by files_mutex_
  mutable std::mutex mutex_;
  std::unordered_map<ChatId, Queue> queues_;  // guarded by mutex_; without the empty ones
};

}  // namespace reprise
