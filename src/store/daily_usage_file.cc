#include "store/daily_usage_file.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/logging.h"
#include "reprise/timestamp.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMostBytes = 4096;

std::chrono::sys_days DayNow() { return std::chrono::floor<std::chrono::days>(Now()); }

}  // namespace

DailyUsageFile::DailyUsageFile(FileSystem& file_system, std::string path)
    : file_system_(file_system), path_(std::move(path)), day_(DayNow()) {
  const auto text = file_system_.ReadFile(path_, kMostBytes);
  if (!text && text.error().code == ErrorCode::kNotFound) return;
  const auto json = text ? ParseJson(*text) : Fail(text.error());
  const auto day = json ? ParseTimestamp(TextMember(*json, "day")) : Fail(json.error());
  if (!day || !MemberOf(*json, "tokens").is_number_unsigned()) {
    LogWarning("what was used today is not known: it counts from now on");
  } else if (std::chrono::floor<std::chrono::days>(*day) == day_) {
    tokens_ = MemberOf(*json, "tokens").get<std::int64_t>();
  }
}

void DailyUsageFile::BeginDay() {
  const auto today = DayNow();
  if (today == day_) return;
  day_ = today;
  tokens_ = 0;
}

std::int64_t DailyUsageFile::Today() {
  const MutexLock lock(mutex_);
  BeginDay();
  return tokens_;
}

Result<void> DailyUsageFile::Add(std::int64_t tokens) {
  const MutexLock lock(mutex_);
  BeginDay();
  tokens_ += tokens;
  return ReplaceFile(file_system_, path_, DumpJson({{"day", FormatTimestamp(day_)}, {"tokens", tokens_}}) + "\n",
                     Durability::kUnsynced);
}

}  // namespace reprise
