#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/system.h"
#include "crypto/key_set.h"
#include "people/api_tokens.h"
#include "remote/postgres/database.h"
#include "remote/postgres/postgres_queue.h"
#include "remote/postgres/postgres_run_store.h"
#include "remote/postgres/postgres_store.h"
#include "remote/postgres/shared_database.h"
#include "remote/postgres/signals.h"
#include "reprise/audit_log.h"
#include "reprise/blob_store.h"
#include "reprise/daily_usage.h"
#include "reprise/file_store.h"
#include "reprise/grant_store.h"
#include "reprise/question_store.h"
#include "reprise/result.h"
#include "store/audit_file.h"
#include "store/object_store.h"

namespace reprise {

// Questions as rows. A question takes the first answer before its expiry, by the database's clock. Questions and
// answers are sealed; the owner of the run gets a signal. Thread-safe.
class PostgresQuestionStore final : public QuestionStore {
 public:
  // All must outlive it.
  PostgresQuestionStore(Database& database, PostgresStore& store, RunSignals& signals, std::string instance)
      : database_(database, store.tenant()), store_(store), signals_(signals), instance_(std::move(instance)) {}

  Result<void> Open(const std::vector<PendingQuestion>& questions) override;
  Result<PendingQuestion> Find(const std::string& id) override;
  Result<std::vector<PendingQuestion>> Waiting() override;
  Result<void> Answer(const InteractionRef& run, const std::string& id, const GivenAnswer& answer) override;
  Result<std::vector<std::pair<std::string, GivenAnswer>>> Answered(const InteractionRef& run) override;

 private:
  Result<PendingQuestion> OpenRow(const Rows& rows, std::size_t row);

  TenantDatabase database_;
  PostgresStore& store_;
  RunSignals& signals_;
  const std::string instance_;  // of this process, which asks only in runs that it holds
};

// Each object has a row per day with its own count, so that a statement may be sent twice, and processes do not wait
// for each other. Days are in UTC.
class PostgresDailyUsage final : public DailyUsage {
 public:
  // `database` must outlive the object.
  PostgresDailyUsage(Database& database, std::string tenant) : database_(database, std::move(tenant)) {}

  // The last known number, if the rows cannot be read.
  std::int64_t Today() override;
  Result<void> Add(std::int64_t tokens) override;

 private:
  TenantDatabase database_;
  const std::string source_ = RandomHex(16);
  Mutex mutex_;
  std::string day_ GUARDED_BY(mutex_);       // of own_
  std::int64_t own_ GUARDED_BY(mutex_) = 0;  // counted here that day
  std::int64_t last_known_ GUARDED_BY(mutex_) = 0;
};

// Standing grants as rows, one each, sealed if there are keys. A grant or revocation by one process counts for all at
// once, because grants are looked up at each call.
class PostgresGrantStore final : public GrantStore {
 public:
  // `database` must outlive the object; `keys` may be null: plain.
  PostgresGrantStore(Database& database, std::string tenant, std::shared_ptr<const KeySet> keys)
      : database_(database, std::move(tenant)), keys_(std::move(keys)) {}

  Result<bool> Add(const StandingGrant& grant) override;
  Result<void> Remove(std::string_view id) override;
  Result<std::vector<StandingGrant>> List() override;
  std::vector<Grant> For(const Grant& call) override;
  void NoteUse(const std::vector<std::string>& ids) override;

 private:
  Result<std::string> Seal(const StandingGrant& grant) const;
  Result<StandingGrant> Open(std::string_view id, std::string_view record) const;

  TenantDatabase database_;
  const std::shared_ptr<const KeySet> keys_;
};

// A tenant's audit log as rows: one chain, to which all processes append. Lines, numbers, digests and MACs are those of
// files (store/audit_file), and DatabaseFiles shows them as one, so that the checks of a folder's log check this, too.
class PostgresAuditLog final : public AuditLog {
 public:
  // Both must outlive the object. Sends nothing to the database before the first call.
  PostgresAuditLog(Database& database, PostgresStore& store) : database_(database, store.tenant()), store_(store) {}
  ~PostgresAuditLog() override;

  Result<void> Append(const AuditEntry& entry) override;
  Result<Page> Read(std::uint64_t after, std::size_t limit) const override;

 private:
  Result<Page> ReadLines(std::uint64_t after, std::size_t limit) const;
  Result<void> Open() REQUIRES(mutex_);
  Result<void> FindEnd() REQUIRES(mutex_);
  Result<bool> Insert(const std::string& line) REQUIRES(mutex_);
  Result<void> Seal() REQUIRES(mutex_);

  mutable TenantDatabase database_;
  PostgresStore& store_;
  Mutex mutex_;
  std::optional<AuditHead> head_ GUARDED_BY(mutex_);  // nullopt: not read yet
  std::uint64_t last_ GUARDED_BY(mutex_) = 0;         // the number of the last known line
  std::string last_digest_ GUARDED_BY(mutex_);
  std::uint64_t gap_ GUARDED_BY(mutex_) = 0;  // lines up to here may be gone, as Open has found
  std::string gap_digest_ GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point sealed_at_ GUARDED_BY(mutex_);
};

// API tokens as rows, which any number of processes add, revoke and check. A new token counts at once, a revoked one
// for another second at most.
class PostgresApiTokens final : public ApiTokenStore {
 public:
  static constexpr std::chrono::seconds kKnownFor{1};

  // `database` must outlive the object.
  explicit PostgresApiTokens(Database& database) : database_(database) {}

  Version Look() const override;
  bool is_exact() const override { return false; }
  Result<Content> Read() override;
  Result<Made> Add(Principal principal, std::string name, std::optional<Timestamp> expires_at) override;
  Result<ApiToken> Revoke(std::string_view id) override;
  TokenUses ReadUses() override;
  Result<void> WriteUses(const TokenUses& uses) override;

 private:
  Result<Version> ReadVersion();
  bool IsKnown() const REQUIRES(mutex_) { return std::chrono::steady_clock::now() - asked_at_ < kKnownFor; }

  Database& database_;
  mutable Mutex mutex_;
  std::chrono::steady_clock::time_point asked_at_ GUARDED_BY(mutex_){};  // when the database was asked last
  Result<Content> content_ GUARDED_BY(mutex_) = Content();               // its answer
  Mutex uses_mutex_;
  TokenUses written_ GUARDED_BY(uses_mutex_);
};

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
