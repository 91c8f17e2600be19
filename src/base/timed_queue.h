#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <stop_token>
#include <thread>

#include "base/mutex.h"

namespace reprise {

// Runs jobs one after the other, at once or later, on a thread of its own, which sleeps until the next one is due.
// Thread-safe.
class TimedQueue {
 public:
  TimedQueue();
  ~TimedQueue() { Stop(); }
  TimedQueue(const TimedQueue&) = delete;
  TimedQueue& operator=(const TimedQueue&) = delete;

  // `job` must not throw. Jobs of the same time run in the order they were posted.
  void Post(std::function<void()> job) { After({}, std::move(job)); }
  void After(std::chrono::milliseconds delay, std::function<void()> job);
  // Drops what has not run; returns when the job that runs has ended. Not for the queue's own thread.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  void Run(const std::stop_token& stop);

  Mutex mutex_;
  std::condition_variable_any wake_;
  std::multimap<Clock::time_point, std::function<void()>> jobs_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last, so that it ends before what it uses is gone
};

}  // namespace reprise
