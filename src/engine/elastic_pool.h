#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "base/queues.h"
#include "reprise/result.h"

namespace reprise {

// Calls functions later. Its destructor drops those that are not due yet.
using Timer = TimedQueue;

// Threads for jobs that may block for long (a run waits for people). No job may wait for another to end. Idle threads
// leave after a while, all but one. Thread-safe.
class ElasticPool {
 public:
  explicit ElasticPool(std::chrono::milliseconds idle_limit = std::chrono::seconds(10));
  // Waits for all jobs. A thread that submitted one may still be on its way out of Submit.
  ~ElasticPool();
  ElasticPool(const ElasticPool&) = delete;
  ElasticPool& operator=(const ElasticPool&) = delete;

  // Throws std::system_error if there is no thread and the system refuses one.
  void StartFirstThread();
  // Whether a job submitted now would find a thread. Makes one if none is idle and the system allows it.
  bool HasThreadToSpare();
  // Starts `job` now, on an idle thread or a new one. If the system refuses more threads, the job waits for the next
  // free one. Throws only what StartFirstThread would.
  void Submit(std::function<void()> job);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

// Asks a probe, which may block, whether the data folder (or another resource) works. An answer is kept for a while,
// and callers do not wait long for one. Thread-safe.
class Readiness {
 public:
  struct Limits {
    std::chrono::milliseconds keep{2000}, keep_failure{500};
    std::chrono::milliseconds wait{1000};
    Error silent = DiskSilent();  // the error if the probe does not answer
  };
  static Error DiskSilent();
  // Everything that `probe` uses must outlive this.
  explicit Readiness(std::function<Result<void>()> probe) : Readiness(std::move(probe), Limits()) {}
  Readiness(std::function<Result<void>()> probe, Limits limits);

  // kUnavailable, with the probe's reason, or with Limits::silent ("disk_not_responding") if it does not answer.
  Result<void> Check();

 private:
  struct State;
  const Limits limits_;
  const std::shared_ptr<State> state_;
  ElasticPool pool_;  // last, because it waits for the probe
};

}  // namespace reprise
