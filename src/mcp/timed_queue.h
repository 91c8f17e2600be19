#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>

namespace reprise {

// Runs jobs one after the other, at once or later, on a thread of its own. Thread-safe.
class TimedQueue {
 public:
  TimedQueue();
  ~TimedQueue() { Stop(); }
  TimedQueue(const TimedQueue&) = delete;
  TimedQueue& operator=(const TimedQueue&) = delete;

  // `job` must not throw. Jobs of the same time run in the order they were posted.
  void Post(std::function<void()> job, std::chrono::milliseconds delay = {});
  // Drops what has not run; returns when the job that runs has ended. Not for the queue's own thread.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  void Run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::multimap<Clock::time_point, std::function<void()>> jobs_;  // guarded by mutex_
  std::jthread thread_;                                           // last, so that it ends before what it uses is gone
};

}  // namespace reprise
