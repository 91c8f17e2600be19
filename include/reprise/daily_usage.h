#pragma once

#include <cstdint>

#include "reprise/result.h"

namespace reprise {

// A user's tokens of today (UTC), including those of deleted chats. Thread-safe.
class DailyUsage {
 public:
  virtual ~DailyUsage() = default;
  virtual std::int64_t Today() = 0;
  // When this returns ok, the tokens survive the process. Failures are the disk's; the tokens count all the same.
  virtual Result<void> Add(std::int64_t tokens) = 0;
};

}  // namespace reprise
