#include "postgres/postgres_daily_usage.h"

#include <chrono>

#include "base/logging.h"
#include "base/try.h"
#include "reprise/timestamp.h"

namespace reprise {

namespace {
// By this machine's clock, as with files.
std::string DayNow() { return FormatTimestamp(std::chrono::floor<std::chrono::days>(Now())).substr(0, 10); }
}  // namespace

std::int64_t PostgresDailyUsage::Today() {
  const auto sum = database_.Execute({.sql = "select coalesce(sum(tokens), 0)::bigint from reprise.day_usage where "
                                             "tenant = $1 and day = $2::date",
                                      .values = {database_.tenant(), DayNow()}});
  const MutexLock lock(mutex_);
  if (!sum) LogWarning("what was used today cannot be read", {{"detail", sum.error().detail}});
  if (sum) last_known_ = sum->number(0, 0);
  return last_known_;
}

Result<void> PostgresDailyUsage::Add(std::int64_t tokens) {
  const MutexLock lock(mutex_);
  const std::string today = DayNow();
  if (today != day_) own_ = 0;
  day_ = today;
  own_ += tokens;
  TRY(database_.Execute({.sql = "insert into reprise.day_usage(tenant, day, source, tokens) values ($1, $2::date, $3, "
                                "$4::bigint) on conflict (tenant, day, source) do update set tokens = "
                                "greatest(reprise.day_usage.tokens, excluded.tokens)",
                         .values = {database_.tenant(), day_, source_, own_}}));
  return {};
}

}  // namespace reprise
