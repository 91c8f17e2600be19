#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace reprise {

// Threads for jobs that may block for long (a run waits for people): a job never waits for another one to end. Threads
// without work leave after a while, all but one. Thread-safe.
class ElasticPool {
 public:
  explicit ElasticPool(std::chrono::milliseconds idle_limit = std::chrono::seconds(10)) : idle_limit_(idle_limit) {}
  ~ElasticPool();  // waits for all jobs
  ElasticPool(const ElasticPool&) = delete;
  ElasticPool& operator=(const ElasticPool&) = delete;

  // Throws std::system_error if there is no thread and the system has none left.
  void StartFirstThread();
  // Starts `job` now: on an idle thread, or else on a new one. If the system has no more threads it waits for the next that is
  // free. Throws only what StartFirstThread would.
  void Submit(std::function<void()> job);

 private:
  using Threads = std::list<std::thread>;
  void AddThread();  // with mutex_ held
  void Work(Threads::iterator self);

  const std::chrono::milliseconds idle_limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;  // guarded by mutex_
  std::size_t idle_ = 0;                    // guarded by mutex_
  bool closing_ = false;                    // guarded by mutex_
  Threads threads_;                         // guarded by mutex_
  Threads ended_;                           // guarded by mutex_; to be joined by the next caller
};

}  // namespace reprise
