#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "remote/postgres/tenant_database.h"
#include "reprise/result.h"

namespace reprise {

// That this instance lives, as the database sees it: renewed by the database's clock, over a connection of its own, so
// that nothing stands before it. It also declares others dead whose lease has ended, and tells when runs are abandoned.
// Thread-safe.
class Lease {
 public:
  static constexpr std::chrono::seconds kRenewal{3}, kLook{1}, kStale{7}, kSweep{10};
  static constexpr const char* kLength = "10 seconds";
  // After it could not renew its own lease it waits so long before it judges others.
  static constexpr std::chrono::steady_clock::duration kGrace = kRenewal + std::chrono::seconds(2);

  // A fresh id for an instance.
  static std::string MakeInstance();

  // Takes the lease; `database` must outlive it. `version`: the program's, for people who look at the instances.
  static Result<std::unique_ptr<Lease>> Take(Database& database, std::string instance, std::string version);
  // Ends the lease: what it held is abandoned at once.
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  const std::string& instance() const { return instance_; }
  // False: it was not renewed for so long that others may soon take over what it holds. Then no tool is begun.
  bool is_fresh() const;
  // How often others took it for dead: what it held before may be theirs since.
  int deaths() const { return deaths_.load(); }
  // That somebody in this process has the run of this token, or is about to: 32 hexadecimal digits, known here before
  // the database knows them. A run of this instance that nobody here has is given back: one whose beginning or claim
  // was committed and never told, say. Until what is returned is gone; the lease must outlive that.
  std::shared_ptr<void> Keep(const std::string& token);
  // Called by the lease's thread while there are abandoned runs of the tenant, or others want something of this
  // instance's runs of it. Not any more when another one, or none, has been set for it.
  void Watch(const std::string& tenant, std::function<void()> look);
  // Called likewise for each tenant that nobody watches for. Must be quick.
  void WatchOthers(std::function<void(const std::string& tenant)> look);
  // Called by the lease's thread every second; likewise. Must not wait.
  void EverySecond(std::function<void()> call);
  // Looks at once.
  void LookNow();
  // Of an instance whose process has ended for sure. Best effort: else its lease ends by itself.
  void DeclareDead(const std::string& instance);
  // Removes what is left of runs that ended a minute ago, and more that has had its time. Best effort; also done by the
  // lease's thread, from time to time.
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
  std::atomic<std::int64_t> renewed_at_;  // when the last renewal that counted was sent
  std::atomic<int> deaths_{0};
  std::int64_t judges_from_ = 0;  // used by the thread only

  Mutex mutex_;
  std::condition_variable_any changed_;
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
