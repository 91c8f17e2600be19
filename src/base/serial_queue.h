#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <stop_token>
#include <thread>

#include "base/mutex.h"

namespace reprise {

// Runs jobs one after the other on a thread of its own, which the first job starts. Thread-safe.
class SerialQueue {
 public:
  SerialQueue() = default;
  ~SerialQueue() = default;  // after the jobs that are there
  SerialQueue(const SerialQueue&) = delete;
  SerialQueue& operator=(const SerialQueue&) = delete;

  // `job` must not throw. Throws std::system_error, with nothing posted, if the thread cannot be started.
  void Post(std::function<void()> job);

 private:
  void Run(const std::stop_token& stop);

  Mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::function<void()>> jobs_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last, so that it ends before what it uses is gone
};

}  // namespace reprise
