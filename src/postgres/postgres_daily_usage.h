#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/random.h"
#include "postgres/tenant_database.h"
#include "reprise/daily_usage.h"

namespace reprise {

// A row per day for each object, which holds what this one has counted: so that a statement may be sent twice, and
// processes do not wait for each other. Days are those of UTC.
class PostgresDailyUsage final : public DailyUsage {
 public:
  // `database` must outlive the object.
  PostgresDailyUsage(Database& database, std::string tenant) : database_(database, std::move(tenant)) {}

  // What could not be read counts as what was known last.
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

}  // namespace reprise
