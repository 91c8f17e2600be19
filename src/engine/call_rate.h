#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <unordered_map>

#include "base/mutex.h"
#include "reprise/ids.h"

namespace reprise {

// How many tool calls each chat may make in a minute, any minute. Thread-safe; forgets with the process.
class CallRate {
 public:
  using Clock = std::chrono::steady_clock;
  explicit CallRate(int max_per_minute) : max_(static_cast<std::size_t>(max_per_minute)) {}

  // Counts a call that is made now; or, if it is one too many, says how long to wait and counts nothing.
  std::optional<std::chrono::seconds> Take(const ChatId& chat, Clock::time_point now = Clock::now());

 private:
  const std::size_t max_;  // above 0
  Mutex mutex_;
  std::unordered_map<ChatId, std::deque<Clock::time_point>> made_ GUARDED_BY(mutex_);  // in the last minute
};

}  // namespace reprise
