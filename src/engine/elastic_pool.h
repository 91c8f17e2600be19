#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace reprise {

// Threads for jobs that may block for long (a run waits for people): a job never waits for another one to end. Threads
// without work leave after a while, all but one. Thread-safe.
class ElasticPool {
 public:
  explicit ElasticPool(std::chrono::milliseconds idle_limit = std::chrono::seconds(10));
  // Waits for all jobs. Whoever submitted one of them may still be on its way out of Submit.
  ~ElasticPool();
  ElasticPool(const ElasticPool&) = delete;
  ElasticPool& operator=(const ElasticPool&) = delete;

  // Throws std::system_error if there is no thread and the system has none left.
  void StartFirstThread();
  // Whether a job that came now would find a thread. Makes one if there is none to spare and the system has it.
  bool HasThreadToSpare();
  // Starts `job` now: on an idle thread, or else on a new one. If the system has no more threads it waits for the next
  // that is free. Throws only what StartFirstThread would.
  void Submit(std::function<void()> job);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace reprise
