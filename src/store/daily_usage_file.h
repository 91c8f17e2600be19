#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/mutex.h"
#include "reprise/daily_usage.h"
#include "reprise/file_system.h"

namespace reprise {

// Keeps the day and its tokens in a file of the data folder (schemas/FILES.md).
class DailyUsageFile final : public DailyUsage {
 public:
  // `file_system` must outlive the object. A file that cannot be read counts as nothing used.
  DailyUsageFile(FileSystem& file_system, std::string path);

  std::int64_t Today() override;
  Result<void> Add(std::int64_t tokens) override;

 private:
  void BeginDay() REQUIRES(mutex_);

  FileSystem& file_system_;
  const std::string path_;
  Mutex mutex_;
  std::chrono::sys_days day_ GUARDED_BY(mutex_);
  std::int64_t tokens_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
