#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "engine/elastic_pool.h"
#include "reprise/result.h"

namespace reprise {

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
