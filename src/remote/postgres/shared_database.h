#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/local_signals.h"
#include "base/mutex.h"
#include "crypto/key_set.h"
#include "remote/postgres/database.h"
#include "remote/postgres/lease.h"
#include "remote/postgres/run_tail.h"
#include "remote/postgres/signals.h"
#include "remote/postgres/tenant_database.h"
#include "reprise/principal.h"
#include "reprise/result.h"
#include "reprise/signals.h"

namespace reprise {

// What a server has once of its database, for all tenants: one connection for journals and what else nobody waits for,
// one over which runs are finished, some more for statements that somebody waits for, one for the lease, and who the
// tenants are. Thread-safe.
class SharedDatabase {
 public:
  struct Options {
    std::string url;
    Signals* signals = nullptr;  // to other servers; null: there are none. Must outlive the object
    std::string version{};       // of the program
  };
  // Connects, and takes a lease. kConflict if the tables are not those that this program needs.
  static Result<std::unique_ptr<SharedDatabase>> Open(Options options);
  ~SharedDatabase();

  Database& database() { return *database_; }
  // Over which runs are finished.
  Database& finishes() { return *finishes_; }
  Lease& lease() { return *lease_; }
  RunSignals& run_signals() { return *run_signals_; }
  Signals& signals() { return *signals_; }
  // On which changes of this database are told. Several databases may share one Redis.
  const std::string& topic_of_changes() const { return topic_of_changes_; }
  const std::shared_ptr<JournalWriter>& journal_writer() const { return journal_writer_; }
  // Called by the lease's thread as long as what is returned lives, which this object must outlive. Must not wait.
  std::shared_ptr<void> EverySecond(std::function<void()> call);
  // kUnavailable if nothing could be kept now.
  Result<void> CheckReady();
  // The database is not waited for any more than a few seconds.
  void BeginStop();

  // Makes it known that there is this tenant. kCorruption (reason "integrity_swap") if it is known as somebody else.
  Result<void> NoteTenant(const std::string& tenant, const Principal& principal);
  Result<std::vector<Principal>> ListTenants();
  // The key that is kept for the org: `fresh`, if there was none. Empty: there is none, and users of the org have what
  // none of `operators` opens.
  Result<std::string> OrgKey(const std::string& org, const std::string& fresh, const KeySet& operators);
  // Those who have left something to be taken up: runs that nobody has, or messages that wait.
  Result<std::vector<Principal>> ListLeft();
  // Called, by the lease's thread, for a tenant that has left runs and has no engine here. Null: nobody wants to know.
  void WatchLeft(std::function<void(const Principal&)> left);

 private:
  SharedDatabase() = default;
  Result<std::vector<Principal>> ReadTenants(Statement statement);

  std::unique_ptr<Database> database_, finishes_, lease_database_;
  std::unique_ptr<TenantDatabase> all_;
  LocalSignals no_signals_;
  Signals* signals_ = &no_signals_;
  std::string topic_of_changes_;
  std::unique_ptr<Lease> lease_;
  std::shared_ptr<RunSignals> run_signals_;
  std::shared_ptr<JournalWriter> journal_writer_;
  Mutex every_second_mutex_;
  std::list<std::function<void()>> every_second_ GUARDED_BY(every_second_mutex_);
};

}  // namespace reprise
