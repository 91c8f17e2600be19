#pragma once

#include <cstdint>

#include "reprise/result.h"

namespace reprise {

// How many tokens a user has used today (UTC), whatever has become of the chats since. Thread-safe.
class DailyUsage {
 public:
  virtual ~DailyUsage() = default;
  virtual std::int64_t Today() = 0;
  // When this returns ok, they survive the end of the process. A failure is the disk's; they count all the same.
  virtual Result<void> Add(std::int64_t tokens) = 0;
};

}  // namespace reprise
