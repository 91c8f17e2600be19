#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "postgres/postgres_store.h"
#include "postgres/tenant_database.h"
#include "reprise/audit_log.h"
#include "store/audit_file.h"

namespace reprise {

// A tenant's audit log as rows: one chain, to which all processes add, each line behind the last one there is. Lines,
// numbers, digests and MACs are those of files (store/audit_file), and DatabaseFiles shows them as one: so whoever
// checks a folder's log checks this too.
class PostgresAuditLog final : public AuditLog {
 public:
  // Both must outlive the object. Asks nobody before the first entry.
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
  std::uint64_t last_ GUARDED_BY(mutex_) = 0;         // the number of the last line that is known
  std::string last_digest_ GUARDED_BY(mutex_);
  std::uint64_t gap_ GUARDED_BY(mutex_) = 0;  // up to here lines may be gone: as it was found when it was opened
  std::string gap_digest_ GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point sealed_at_ GUARDED_BY(mutex_);
};

}  // namespace reprise
