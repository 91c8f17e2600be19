#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "engine/elastic_pool.h"
#include "reprise/interaction.h"
#include "reprise/interaction_store.h"
#include "reprise/run_store.h"

namespace reprise {

// Saves finished interactions. Neither a cancellation nor a hanging disk can stop a save half-way (specification
// section 7.3). Thread-safe.
class CheckpointSaver {
 public:
  // Called once with the outcome: on the calling thread or a store's, where it must be quick, or on another one when
  // the limit has passed because the disk hangs.
  using Done = std::function<void(Result<void>)>;

  // All must outlive the saver and its attempts. A `time_limit` of 0 means none.
  CheckpointSaver(std::vector<InteractionStore*> fallbacks, ElasticPool& pool, Timer& timer,
                  std::chrono::milliseconds time_limit)
      : fallbacks_(std::move(fallbacks)), pool_(pool), timer_(timer), time_limit_(time_limit) {}
  // Waits for attempts under way.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;

  // Finishes the run, with files on the calling thread. A write that hangs in the kernel cannot be interrupted, so that
  // thread is then given up, and `done` gets kDeadlineExceeded (reason "save_timeout") on another. The attempt may
  // still succeed later, which is harmless because an interaction may be saved twice.
  void Save(std::shared_ptr<RunHold> hold, std::shared_ptr<const Interaction> interaction, Done done);

  // Saves to the first fallback that takes it, each within the limit; the last error if none does.
  void SaveToFallback(std::shared_ptr<const Interaction> interaction, Done done);

 private:
  class Finishing;
  Done Limited(Done done);
  void TryFallback(std::size_t index, std::shared_ptr<const Interaction> interaction, Done done);

  const std::vector<InteractionStore*> fallbacks_;
  ElasticPool& pool_;
  Timer& timer_;
  const std::chrono::milliseconds time_limit_;
  Mutex mutex_;
  Condition ended_;
  std::size_t under_way_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
