#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "remote/postgres/database.h"
#include "reprise/result.h"

namespace reprise {

// This instance's sign of life in the database: renewed by the database's clock, over a connection of its own, so that
// nothing delays it. It also declares instances dead whose lease has ended, and tells when runs are abandoned.
// Thread-safe.
class Lease {
 public:
  static constexpr std::chrono::seconds kRenewal{3}, kLook{1}, kStale{7}, kSweep{10};
  static constexpr const char* kLength = "10 seconds";
  // How long it waits, after it could not renew its own lease, before it judges others.
  static constexpr std::chrono::steady_clock::duration kGrace = kRenewal + std::chrono::seconds(2);

  // A fresh id for an instance.
  static std::string MakeInstance();

  // Takes the lease; `database` must outlive it. `version`: the program's, for people who look at the instances.
  static Result<std::unique_ptr<Lease>> Take(Database& database, std::string instance, std::string version);
  // Ends the lease: its runs are abandoned at once.
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  const std::string& instance() const { return instance_; }
  // False: it was not renewed for so long that others may soon take over its runs. Then no tool is started.
  bool is_fresh() const;
  // How often others declared it dead: runs that it held before may be theirs since.
  int deaths() const { return deaths_.load(); }
  // Marks the run of this token (32 hexadecimal digits) as one of this process while the returned object lives, which
  // the lease must outlive. A run of this instance without a mark is given back, for example if its beginning or claim
  // was committed and the answer was lost. REQUIRES: the database does not know the token yet.
  std::shared_ptr<void> Keep(const std::string& token);
  // `look` is called by the lease's thread while the tenant has abandoned runs or messages to start, or others want
  // something from its runs here. Not any more when another one, or none, has been set for it.
  void Watch(const std::string& tenant, std::function<void()> look);
  // `look` is called likewise for each tenant without a Watch. Must be quick.
  void WatchOthers(std::function<void(const std::string& tenant)> look);
  // `call` is called likewise, every second. Must not wait.
  void EverySecond(std::function<void()> call);
  // Makes the thread look at once.
  void LookNow();
  // For an instance whose process has certainly ended. Best effort: else its lease ends by itself.
  void DeclareDead(const std::string& instance);
  // Removes the remains of runs that ended over a minute ago, and other expired rows. Best effort; the lease's thread
  // does it from time to time, too.
  void Sweep();

 private:
  Lease(Database& database, std::string instance, std::string version);
  void Work();
  void Renew();
  void GiveBackForgotten();
  void Look();
  void DeclareDeadWhoseLeaseHasEnded();
  static std::int64_t Ticks() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

  TenantDatabase database_;
  const std::string instance_, version_;
  std::atomic<std::int64_t> renewed_at_;  // when the last successful renewal was sent
  std::atomic<int> deaths_{0};
  std::int64_t judges_from_ = 0;  // used by the thread only

  Mutex mutex_;
  Condition changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool look_now_ GUARDED_BY(mutex_) = false;
  // Guarded by mutex_, which is held while one is called.
  std::map<std::string, std::function<void()>> watchers_{};
  std::function<void(const std::string&)> others_{};
  std::function<void()> every_second_{};
  Mutex tokens_mutex_;
  std::set<std::string> tokens_ GUARDED_BY(tokens_mutex_);
  std::thread thread_;  // last
};

}  // namespace reprise
