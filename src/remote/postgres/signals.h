#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/local_signals.h"
#include "base/mutex.h"
#include "remote/postgres/database.h"
#include "reprise/ids.h"
#include "reprise/run_store.h"
#include "reprise/signals.h"

namespace reprise {

// Signals through NOTIFY and LISTEN, over a connection of its own, so that no transaction that saves something waits
// for another one's notifications. Signals that come while a statement is under way go with the next one. Thread-safe.
class NotifySignals final : public Signals {
 public:
  // `url`: of the database itself, because LISTEN does not work through a pooler.
  static Result<std::unique_ptr<NotifySignals>> Open(std::string url);
  ~NotifySignals() override;

  void Publish(std::string_view topic, std::string_view payload) override;
  std::shared_ptr<void> Subscribe(const std::string& topic, Heard heard) override;

 private:
  NotifySignals() = default;
  void ListenToAll();
  void Listen(const std::string& topic, const std::string& statement);
  // REQUIRES: is_sending_, set by the caller.
  void SendWhatWaits();

  Subscribers subscribers_;
  Mutex mutex_;
  // Statements by topic; they stay, because the database may still need them.
  std::map<std::string, std::string> listening_ GUARDED_BY(mutex_);
  std::deque<std::pair<std::string, std::string>> waiting_ GUARDED_BY(mutex_);  // channel and payload
  bool is_sending_ GUARDED_BY(mutex_) = false;
  std::unique_ptr<Database> database_;  // last: its thread uses the others
};

class RunTail;

// Names a run in the whole database.
struct RunKey {
  std::string tenant;
  InteractionRef run;
  bool operator<(const RunKey& other) const {
    return std::tie(tenant, run.chat_id, run.interaction_id) <
           std::tie(other.tenant, other.run.chat_id, other.run.interaction_id);
  }
};

// The instances that follow a run of this one. Thread-safe.
class RunFollowers {
 public:
  // Counts for some seconds, unless it is repeated. True if the instance is a new one.
  bool Add(const std::string& instance);
  std::vector<std::string> Fresh() const;
  bool any() const;

 private:
  using Clock = std::chrono::steady_clock;
  mutable Mutex mutex_;
  std::map<std::string, Clock::time_point> until_ GUARDED_BY(mutex_);
  std::atomic<Clock::rep> latest_ = 0;
};

// The signals between the instances of one database about their runs. Each instance listens to a topic of its own, so
// that it is subscribed long before it follows a run. What a lost signal said is found in the database a second later.
// Thread-safe.
class RunSignals : public std::enable_shared_from_this<RunSignals> {
 public:
  // All must outlive it. `look`: called when others may want something from any run of this instance. Must be owned by
  // a shared_ptr.
  RunSignals(Database& database, Signals& signals, std::string instance, std::function<void()> look);

  const std::string& instance() const { return instance_; }
  // --- to others
  void TellStop(const std::string& owner, const RunKey& key);
  void TellAnswer(const std::string& owner, const RunKey& key);
  void TellFollowed(const std::string& owner, const RunKey& key);
  // Sends a record that was kept of a run of this instance, as it stands in the journal's row.
  void TellRecord(const RunFollowers& followers, const RunKey& key, int epoch, int row, std::string_view bytes);
  // Makes the followers look into the database.
  void TellNews(const RunFollowers& followers, const RunKey& key);

  // --- from others
  // `watcher` is told what others want from a tenant's runs. Not any more when another one, or none, has been set.
  void Watch(const std::string& tenant, std::function<void(const Wanted&)> watcher);
  // The run counts as one of this instance's as long as the returned object lives.
  std::shared_ptr<RunFollowers> Own(const RunKey& key);
  void Follow(const std::shared_ptr<RunTail>& tail);
  // Makes up for lost signals. Does not wait.
  void LookEverySecond();

 private:
  void Hear(std::string_view payload);
  void HearOf(std::string_view kind, const RunKey& key, std::string_view content);
  void HearOfFollower(const RunKey& key, const std::string& instance);
  std::vector<std::shared_ptr<RunTail>> Tails(const RunKey* key = nullptr);
  void TellWatcher(const RunKey& key, Wanted::Kind kind);
  void LookForFollowers();
  void LookAtFollowed();

  TenantDatabase database_;  // all tenants
  Signals& signals_;
  const std::string instance_;
  const std::function<void()> look_;
  Mutex mutex_;
  std::map<RunKey, std::weak_ptr<RunFollowers>> owned_ GUARDED_BY(mutex_);
  std::multimap<RunKey, std::weak_ptr<RunTail>> tails_ GUARDED_BY(mutex_);
  Mutex watchers_mutex_;  // held while one is called
  std::map<std::string, std::function<void(const Wanted&)>> watchers_ GUARDED_BY(watchers_mutex_);
  std::shared_ptr<void> subscription_;  // last: it uses the others
};

}  // namespace reprise
