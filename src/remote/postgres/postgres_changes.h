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
#include "remote/postgres/tenant_database.h"
#include "reprise/chat_changes.h"
#include "reprise/signals.h"

namespace reprise {

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
