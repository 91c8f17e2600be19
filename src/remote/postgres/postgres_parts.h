#pragma once

#include <memory>
#include <string>

#include "crypto/key_set.h"
#include "remote/postgres/postgres_queue.h"
#include "remote/postgres/postgres_run_store.h"
#include "remote/postgres/postgres_store.h"
#include "remote/postgres/postgres_tenant_stores.h"
#include "remote/postgres/shared_database.h"
#include "reprise/blob_store.h"
#include "reprise/file_store.h"
#include "reprise/result.h"
#include "store/object_store.h"

namespace reprise {

// The stores of one tenant in a database that all tenants share.
class PostgresParts {
 public:
  struct Options {
    std::string tenant{};                // empty: the single user's
    std::shared_ptr<const KeySet> keys;  // null: plain
    FileLimits files{};
    const FileBucket* bucket = nullptr;  // null: files are rows; must outlive the object
  };
  // `shared` must outlive it.
  static Result<std::unique_ptr<PostgresParts>> Open(SharedDatabase& shared, Options options);

  PostgresStore& store() { return *store_; }
  PostgresRunStore& runs() { return *runs_; }
  PostgresQuestionStore& questions() { return *questions_; }
  SharedChanges& changes() { return *changes_; }
  FileStore& files() { return *files_; }
  BlobStore& blobs() { return *blobs_; }
  GrantStore& grants() { return *grants_; }
  PostgresAuditLog& audit() { return *audit_; }
  DailyUsage& usage() { return *usage_; }

 private:
  PostgresParts() = default;

  std::unique_ptr<PostgresStore> store_;
  std::unique_ptr<FileStore> files_;
  std::unique_ptr<BlobStore> blobs_;
  std::shared_ptr<PostgresChanges> changes_;
  std::shared_ptr<void> look_at_changes_;
  std::unique_ptr<PostgresRunStore> runs_;
  std::unique_ptr<PostgresQuestionStore> questions_;
  std::unique_ptr<GrantStore> grants_;
  std::unique_ptr<PostgresAuditLog> audit_;
  std::unique_ptr<DailyUsage> usage_;
};

}  // namespace reprise
