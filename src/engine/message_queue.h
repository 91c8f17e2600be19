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

// A run that waits for its chat to be free: a queued message, or a message that has cancelled the run before it.
class QueuedRun final : public WaitingRun {
 public:
  using MakeRun = std::function<Result<std::shared_ptr<Run>>(QueuedRun&)>;
  // `make` is null for a queued message, which is on disk and starts at the head.
  QueuedRun(ChatId chat, QueuedMessage message, MakeRun make_run)
      : chat_id(std::move(chat)), id(message.id), make(std::move(make_run)), message_(std::move(message)) {}

  const ChatId chat_id;
  const std::string id;  // of the message
  const MakeRun make;
  const std::shared_ptr<EventLog> log = std::make_shared<EventLog>();
  // The span of the request. Set before the run is added; invalid if another process queued the message.
  TraceContext trace_parent{};

  bool durable() const { return make == nullptr; }
  std::string queue_id() const override { return durable() ? id : std::string(); }
  Result<InteractionId> outcome() const override;

  // --- its client
  void ClientCame();
  // The client's hold on the run, if it has begun. `waits` is true if it has neither begun nor ended.
  struct Left {
    std::shared_ptr<void> hold;
    bool waits = false;
  };
  Left ClientLeft();
  // The message has become an interaction. Keeps `hold` for the client, or returns it if the client has gone.
  std::shared_ptr<void> Began(InteractionId id, std::shared_ptr<void> hold);
  // The message will never begin: tells the client, if any. False if there is none or it was told before.
  bool End(const Error& error);
  bool had_client() const;
  // The client has gone while the message waited.
  bool has_left() const;

 private:
  friend class MessageQueues;
  enum class State { kNew, kWaiting, kPaused, kStuck, kStarting };

  // Guarded by the mutex of MessageQueues.
  QueuedMessage message_;
  std::int64_t version_ = 0;  // of the message in the store
  bool is_others_ = false;    // another process owns it
  State state_ = State::kNew;
  std::optional<Error> error_;

  mutable Mutex mutex_;
  bool had_client_ GUARDED_BY(mutex_) = false, listening_ GUARDED_BY(mutex_) = false;
  std::shared_ptr<void> hold_ GUARDED_BY(mutex_);
  std::optional<InteractionId> began_as_ GUARDED_BY(mutex_);
  std::optional<Error> ended_ GUARDED_BY(mutex_);
};

// The waiting messages of each chat. The store holds them; this keeps the last view of it, with the clients of this
// process. Thread-safe.
class MessageQueues {
 public:
  // `changes` may be null; it hears of every change of a queue.
  explicit MessageQueues(QueueStore& store, ChatChanges* changes = nullptr) : store_(store), changes_(changes) {}

  // Adds durably at the end of the chat's queue. kUnavailable (reason "queue_full"), or the store's failure.
  Result<void> Add(const std::shared_ptr<QueuedRun>& run);
  // Adds before all messages, after others that were added this way.
  void AddFirst(const std::shared_ptr<QueuedRun>& run);
  // TakeNext takes the next message, if this process may begin it; null otherwise. Until the caller reports the
  // outcome, nobody else can change or remove it.
  bool HasNext(const ChatId& chat) const;
  std::shared_ptr<QueuedRun> TakeNext(const ChatId& chat);
  // After TakeNext call exactly one: Begun (started, and gone from the store by RunBeginning::queued), Drop (failed,
  // client told), Gone, PutBack (still waits), Pause or Stuck (failed, nobody told: it stays until it is changed).
  void Begun(QueuedRun& run);
  void Drop(QueuedRun& run);
  // The store no longer has the message; its client is told the outcome.
  void Gone(QueuedRun& run);
  void PutBack(QueuedRun& run);
  // The message waits for something else before GoOn puts it back.
  void Pause(QueuedRun& run);
  // Puts the paused messages of the chat back.
  void GoOn(const ChatId& chat);
  void Stuck(QueuedRun& run, Error error);
  QueuedMessage message(const QueuedRun& run) const;
  QueuedRef reference(const QueuedRun& run) const;
  // The request with this Idempotency-Key that waits or is about to begin, if any.
  Result<std::optional<ClientRequest>> RequestOf(const ChatId& chat, const std::string& key);

  Result<std::vector<QueueEntry>> List(const ChatId& chat);
  Result<QueueEntry> Change(const ChatId& chat, std::string_view id, const std::string& user_message);
  Result<void> Remove(const ChatId& chat, std::string_view id);
  // Takes the message out here; RemoveErased takes it out of the store. False if it has begun or is already out.
  bool Erase(QueuedRun& run);
  Result<void> RemoveErased(const QueuedRun& run);
  // Nothing that waits in the chat begins before this is destroyed.
  [[nodiscard]] std::shared_ptr<void> Hold(const ChatId& chat);
  // Removes the chat's waiting messages together with the chat, and tells their clients. Fails as `remove_chat`; the
  // messages stay then, unless it says kNotFound.
  Result<void> RemoveWith(const ChatId& chat, const std::function<Result<void>()>& remove_chat);
  // Tells all clients that the server stops. Durable messages stay in the store.
  void TellStopping();

  // Whether any message is known to wait in the chat.
  bool Knows(const ChatId& chat) const;
  // Reads the chat's queue from the store, because other processes may have changed it.
  Result<void> Refresh(const ChatId& chat);
  // The same for all chats in which this process may have to begin a message; returns these.
  Result<std::vector<ChatId>> RefreshAll();

 private:
  using Queue = std::deque<std::shared_ptr<QueuedRun>>;

  Result<void> Read(const ChatId& chat) REQUIRES(store_mutex_);
  void PutBackAll(const ChatId& chat, const std::vector<WaitingMessage>& stored) REQUIRES(store_mutex_);
  void TellGone(QueuedRun& run);
  void WaitAs(QueuedRun& run, QueuedRun::State state);
  void EndIfStopping(QueuedRun& run);
  // The queue now, made of the stored and the known messages. `gone` gets those that no longer wait, `left` those that
  // are still to be removed from the store.
  Queue Merge(const ChatId& chat, const Queue& known, std::vector<WaitingMessage> stored, Queue& gone,
              std::vector<std::string>& left) REQUIRES(mutex_);
  // Null if there is none that may be changed.
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
  std::set<std::string> erased_ GUARDED_BY(mutex_);              // still in the store
  std::multiset<ChatId> held_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
