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
#include "reprise/principal.h"
#include "reprise/result.h"
#include "reprise/signals.h"

namespace reprise {

// A server's use of its database for all tenants: one connection for journals and other statements without a waiting
// caller, one that finishes runs, some more for statements with a waiting caller, one for the lease, and the list of
// tenants. Thread-safe.
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
  // The connection that finishes runs.
  Database& finishes() { return *finishes_; }
  Lease& lease() { return *lease_; }
  RunSignals& run_signals() { return *run_signals_; }
  Signals& signals() { return *signals_; }
  // The topic for changes of this database. Several databases may share one Redis.
  const std::string& topic_of_changes() const { return topic_of_changes_; }
  const std::shared_ptr<JournalWriter>& journal_writer() const { return journal_writer_; }
  // Called by the lease's thread as long as the returned object lives, which this one must outlive. Must not wait.
  std::shared_ptr<void> EverySecond(std::function<void()> call);
  // kUnavailable if nothing can be stored now.
  Result<void> CheckReady();
  // From now on no call waits for the database longer than a few seconds.
  void BeginStop();

  // Records the tenant. kCorruption (reason "integrity_swap") if it is recorded for another principal.
  Result<void> NoteTenant(const std::string& tenant, const Principal& principal);
  Result<std::vector<Principal>> ListTenants();
  // The key of the org; `fresh` becomes it if there was none. Empty: there is none, and users of the org have chats
  // that no key of `operators` opens.
  Result<std::string> OrgKey(const std::string& org, const std::string& fresh, const KeySet& operators);
  // The tenants with abandoned runs or messages, which have to be taken up.
  Result<std::vector<Principal>> ListLeft();
  // `left` is called, on the database's thread, for each tenant without an engine here that has runs or messages to be
  // taken up. Null: no callback.
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
