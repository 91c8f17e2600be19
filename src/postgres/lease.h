#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "postgres/database.h"
#include "reprise/result.h"

namespace reprise {

// That this instance lives, as the database sees it: renewed by the database's clock, over a connection of its own, so
// that nothing stands before it. It also declares others dead whose lease has ended, and tells when runs are abandoned.
// Thread-safe.
class Lease {
 public:
  static constexpr std::chrono::seconds kRenewal{3}, kLook{1}, kStale{7}, kSweep{10};
  static constexpr const char* kLength = "10 seconds";

  // A fresh id for an instance, and the channel on which it is told to look.
  static std::string MakeInstance();
  static std::string ChannelOf(const std::string& instance);

  // Takes the lease; `database` must outlive it. `version`: the program's, for people who look at the instances.
  static Result<std::unique_ptr<Lease>> Take(Database& database, std::string instance, std::string version);
  // Ends the lease: what it held is abandoned at once.
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  const std::string& instance() const { return instance_; }
  // False: it was not renewed for so long that others may soon take over what it holds. Then no tool is begun.
  bool is_fresh() const;
  // Called by the lease's thread while there are abandoned runs, or others want something of this instance's runs.
  // Not any more when another one, or none, has been set.
  void Watch(std::function<void()> look);
  // Looks at once.
  void LookNow();

 private:
  Lease(Database& database, std::string instance, std::string version);
  void Work();
  void Renew();
  void Look();
  void Sweep();
  static std::int64_t Ticks() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

  Database& database_;
  const std::string instance_, version_;
  std::atomic<std::int64_t> renewed_at_;  // when the last renewal that counted was sent

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;            // guarded by mutex_
  bool look_now_ = false;            // guarded by mutex_
  std::function<void()> watcher_{};  // guarded by mutex_, which is held while it is called
  std::thread thread_;               // last
};

}  // namespace reprise
