#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "reprise/result.h"

namespace reprise {

// Runs jobs one after the other on its own thread, which the first job starts. Thread-safe.
class SerialQueue {
 public:
  SerialQueue() = default;
  ~SerialQueue() = default;  // runs the queued jobs first
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

// Runs jobs one after the other, at once or after a delay, on its own thread, which sleeps until the next one is due.
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
  // Drops pending jobs and waits for the running one. Not for the queue's own thread.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  void Run(const std::stop_token& stop);

  Mutex mutex_;
  std::condition_variable_any wake_;
  std::multimap<Clock::time_point, std::function<void()>> jobs_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last, so that it ends before what it uses is gone
};

// Sleeps for `pause`. False if `stop` was requested, perhaps before.
inline bool Pause(std::chrono::milliseconds pause, const std::stop_token& stop) {
  Mutex mutex;
  std::condition_variable_any never;
  MutexLock lock(mutex);
  never.wait_for(lock, stop, pause, [] { return false; });
  return !stop.stop_requested();
}

// Progress and cancellation of a long piece of work. The worker counts its steps; each function that takes a counter
// defines its step. Thread-safe; a step costs one atomic addition.
class WorkCounter {
 public:
  WorkCounter() = default;
  // Counts separately, but shares the stop request with others.
  explicit WorkCounter(std::stop_source stop) : stop_(std::move(stop)) {}

  std::uint64_t done() const { return done_.load(std::memory_order_relaxed); }
  void Add(std::uint64_t steps) { done_.fetch_add(steps, std::memory_order_relaxed); }
  // Starts another piece of work, counted from 0.
  void Restart() { done_.store(0, std::memory_order_relaxed); }

  // Ends the work at its next step with kCancelled, leaving nothing half-made.
  void RequestStop() { stop_.request_stop(); }
  bool stop_requested() const { return stop_.stop_requested(); }
  std::stop_token stop_token() const { return stop_.get_token(); }
  const std::stop_source& stop_source() const { return stop_; }

 private:
  std::atomic<std::uint64_t> done_ = 0;
  std::stop_source stop_;
};

// Counts one finished step. kCancelled if a stop was requested. Null is work without progress or cancellation.
inline Result<void> CountStep(WorkCounter* counter) {
  if (counter == nullptr) return {};
  counter->Add(1);
  if (counter->stop_requested()) return Fail(ErrorCode::kCancelled, "it was interrupted");
  return {};
}

}  // namespace reprise
