#pragma once

#include <memory>
#include <string>

#include "base/mutex.h"
#include "crypto/key_set.h"
#include "postgres/database.h"
#include "postgres/lease.h"
#include "postgres/postgres_question_store.h"
#include "postgres/postgres_run_store.h"
#include "postgres/postgres_store.h"
#include "reprise/file_store.h"
#include "reprise/result.h"

namespace reprise {

// What a server keeps in a database, over two connections: one for all that is read and written, one for the lease.
class PostgresParts {
 public:
  struct Options {
    std::string url;
    std::shared_ptr<const KeySet> keys;  // null: plain
    FileLimits files{};
    std::string version{};  // of the program
  };
  ~PostgresParts() { Tell(nullptr); }

  // Connects, and takes a lease. kConflict if the tables are not those that this program needs.
  static Result<std::unique_ptr<PostgresParts>> Open(Options options);

  PostgresStore& store() { return *store_; }
  PostgresRunStore& runs() { return *runs_; }
  PostgresQuestionStore& questions() { return *questions_; }
  FileStore& files() { return *files_; }
  // kUnavailable if nothing could be kept now.
  Result<void> CheckReady();
  // The database is not waited for any more than a few seconds.
  void BeginStop();

 private:
  PostgresParts() = default;
  void Tell(Lease* lease);
  void Look();

  std::unique_ptr<Database> database_, lease_database_;
  Mutex told_mutex_;
  Lease* told_ GUARDED_BY(told_mutex_) = nullptr;  // of notifications; null: there is none yet, or it goes
  std::unique_ptr<PostgresStore> store_;
  std::unique_ptr<FileStore> files_;
  std::unique_ptr<Lease> lease_;
  std::unique_ptr<PostgresRunStore> runs_;
  std::unique_ptr<PostgresQuestionStore> questions_;
};

}  // namespace reprise
