#pragma once

#include <atomic>
#include <cstdint>
#include <stop_token>
#include <utility>

#include "reprise/result.h"

namespace reprise {

// How far a long piece of work has come, for who watches it, and whether it is still wanted. Who works counts each
// step; what a step is, the function says that counts. Thread-safe; a step costs one atomic addition.
class WorkCounter {
 public:
  WorkCounter() = default;
  // Counts by itself, and is stopped with others.
  explicit WorkCounter(std::stop_source stop) : stop_(std::move(stop)) {}

  std::uint64_t done() const { return done_.load(std::memory_order_relaxed); }
  void Add(std::uint64_t steps) { done_.fetch_add(steps, std::memory_order_relaxed); }
  // Another piece of work begins, whose steps are counted from 0.
  void Restart() { done_.store(0, std::memory_order_relaxed); }

  // The work ends at its next step, with kCancelled, and leaves nothing half-made.
  void RequestStop() { stop_.request_stop(); }
  bool stop_requested() const { return stop_.stop_requested(); }
  std::stop_token stop_token() const { return stop_.get_token(); }
  const std::stop_source& stop_source() const { return stop_; }

 private:
  std::atomic<std::uint64_t> done_ = 0;
  std::stop_source stop_;
};

// One step is done. kCancelled if there is to be no other. Null: nobody watches, and nobody can stop it.
inline Result<void> CountStep(WorkCounter* counter) {
  if (counter == nullptr) return {};
  counter->Add(1);
  if (counter->stop_requested()) return Fail(ErrorCode::kCancelled, "it was interrupted");
  return {};
}

}  // namespace reprise
