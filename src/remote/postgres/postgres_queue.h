#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "remote/postgres/database.h"
#include "reprise/chat_changes.h"
#include "reprise/ids.h"
#include "reprise/queue.h"
#include "reprise/result.h"
#include "reprise/signals.h"
#include "store/chat_files.h"

namespace reprise {

// Messages that wait, a row each, in the order in which they were committed. An instance starts those that it has
// added, because it has their clients, and those whose instance is dead or has left them. A message that has begun
// leaves a row without text for some minutes, so that it is not added twice and its client can be told. Thread-safe.
class PostgresQueue final : public QueueStore {
 public:
  struct Options {
    Database& database;      // both must outlive it
    const ChatFiles& files;  // seals the messages
    std::string tenant;
    std::string instance;  // empty: a command, whose messages any instance may start
  };
  explicit PostgresQueue(Options options);

  Result<std::vector<WaitingMessage>> LoadQueue(const ChatId& chat) override;
  Result<void> AddQueued(const ChatId& chat, const QueuedMessage& message) override;
  Result<void> ChangeQueued(const ChatId& chat, std::string_view id, const std::string& user_message) override;
  Result<void> RemoveQueued(const ChatId& chat, std::string_view id) override;
  Result<void> FailQueued(const ChatId& chat, std::string_view id, const Error& failure) override;
  Result<void> TakeQueued(const ChatId&, std::string_view) override { return {}; }  // PostgresRunStore::Begin does it
  Result<void> ClearQueue(const ChatId& chat) override;
  Result<std::vector<ChatId>> ListQueues() override;
  Result<std::optional<InteractionId>> BegunElsewhere(const ChatId& chat, std::string_view id) override;
  void LeaveQueues() override;

 private:
  Result<Rows> ReadRows(const ChatId& chat);
  Result<WaitingMessage> ReadRow(const ChatId& chat, const Rows& rows, std::size_t row);
  Result<QueuedMessage> OpenOne(const ChatId& chat, std::string_view id, std::string_view record) const;
  // Splits a queue that an earlier version kept as a whole into rows.
  Result<void> Split(const ChatId& chat, std::string_view record);

  const Options options_;
  TenantDatabase database_;
  const SqlValue instance_;
};

// SQLSTATEs of begin_queued_turn: the message does not wait any more; it is not the next one, or was changed.
inline constexpr std::string_view kDequeuedState = "RP002", kNotNextState = "RP003";

// Changes as rows, which stay for some minutes, and as signals, which are quicker. They name chats and requests and
// have none of their content. Thread-safe.
class PostgresChanges final : public SharedChanges, public std::enable_shared_from_this<PostgresChanges> {
 public:
  struct Options {
    Database& database;  // both must outlive it
    Signals& signals;
    std::string topic;  // the database's own
    std::string tenant;
    std::string instance;
  };
  static std::shared_ptr<PostgresChanges> Make(Options options);
  ~PostgresChanges() override { SendWhatWaits(); }
  PostgresChanges(const PostgresChanges&) = delete;

  void Tell(const ChatChange& change) override;
  void Hear(std::function<void(std::optional<ChatChange>)> heard) override;
  // Reads the rows whose signals were lost. Does not wait.
  void LookEverySecond();

 private:
  using Clock = std::chrono::steady_clock;
  explicit PostgresChanges(Options options)
      : options_(std::move(options)), database_(options_.database, options_.tenant) {}

  void SendWhatWaits();
  void HearSignal(std::string_view payload);
  void TakeRows(const Rows& rows);
  // Passes the change on, unless it was taken before.
  void Take(std::int64_t id, std::string_view text) REQUIRES(mutex_);

  const Options options_;
  TenantDatabase database_;
  Mutex sending_mutex_;
  std::vector<std::string> waiting_ GUARDED_BY(sending_mutex_);
  bool is_sending_ GUARDED_BY(sending_mutex_) = false;
  Mutex mutex_;  // held while a change is passed on
  std::function<void(std::optional<ChatChange>)> heard_ GUARDED_BY(mutex_);
  std::map<std::int64_t, Clock::time_point> taken_ GUARDED_BY(mutex_);  // of the last seconds
  std::optional<std::string> looked_at_ GUARDED_BY(mutex_);             // by the database's clock
  std::shared_ptr<void> subscription_;                                  // last: it uses the others
};

}  // namespace reprise
