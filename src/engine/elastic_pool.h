#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "base/queues.h"
#include "reprise/result.h"

namespace reprise {

// Calls functions later. What is not due yet when it goes is dropped.
using Timer = TimedQueue;

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

// Whether the data folder can be written, or something else be used, asked of a probe that may block. An answer holds
// for a while, and nobody waits long for one. Thread-safe.
class Readiness {
 public:
  struct Limits {
    std::chrono::milliseconds keep{2000}, keep_failure{500};
    std::chrono::milliseconds wait{1000};
    Error silent = DiskSilent();  // what is said if the probe does not answer
  };
  static Error DiskSilent();
  // What `probe` uses must outlive the object.
  explicit Readiness(std::function<Result<void>()> probe) : Readiness(std::move(probe), Limits()) {}
  Readiness(std::function<Result<void>()> probe, Limits limits);

  // kUnavailable, with the probe's reason; by default "disk_not_responding" without one.
  Result<void> Check();

 private:
  struct State;
  const Limits limits_;
  const std::shared_ptr<State> state_;
  ElasticPool pool_;  // last: it waits for the probe
};

}  // namespace reprise
