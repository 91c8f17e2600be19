#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "engine/elastic_pool.h"
#include "reprise/interaction.h"
#include "reprise/interaction_store.h"

namespace reprise {

// Saves finished interactions so that nothing can stop it half-way: not a cancellation, not a disk that hangs (specification
// section 7.3). Thread-safe.
class CheckpointSaver {
 public:
  // All must outlive the saver.
  CheckpointSaver(InteractionStore& store, std::vector<InteractionStore*> fallbacks, ElasticPool& pool,
                  std::chrono::milliseconds time_limit)
      : store_(store), fallbacks_(std::move(fallbacks)), pool_(pool), time_limit_(time_limit) {}

  // Saves to the store. kDeadlineExceeded (reason "save_timeout") if it takes longer than the limit: the attempt then goes
  // on in the background and may still succeed, which does no harm (the same interaction may be saved twice).
  Result<void> Save(std::shared_ptr<const Interaction> interaction);

  // Saves to the first fallback that takes it, each within the limit. The last error if none does.
  Result<void> SaveToFallback(std::shared_ptr<const Interaction> interaction);

 private:
  Result<void> SaveTo(InteractionStore& store, std::shared_ptr<const Interaction> interaction);

  InteractionStore& store_;
  const std::vector<InteractionStore*> fallbacks_;
  ElasticPool& pool_;
  const std::chrono::milliseconds time_limit_;
};

}  // namespace reprise
