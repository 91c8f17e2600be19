#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "reprise/interaction_store.h"
#include "reprise/run_store.h"

namespace reprise {

// The runs of one process, over a store that no other process writes to. A map tracks the holds; journals and
// checkpoints are the store's. `done` is called within Append. Thread-safe; mutex_ is a leaf and held for map
// operations only.
class LocalRunStore final : public RunStore {
 public:
  // `store` must outlive it.
  explicit LocalRunStore(InteractionStore& store) : store_(store) {}

  Result<std::unique_ptr<RunHold>> Begin(const RunBeginning& beginning) override;
  Result<std::vector<AbandonedRun>> ClaimAbandoned(std::size_t most) override;

 private:
  class Hold;
  struct Abandoned {
    InteractionRef ref;
    bool is_last = true;
  };

  Result<void> Claim(const ChatId& chat);
  void NoteNumber(const InteractionRef& ref);
  void Free(const ChatId& chat);
  Result<std::unique_ptr<RunHold>> BeginClaimed(const RunBeginning& beginning);
  Result<void> CheckWaits(const ChatId& chat, const QueuedRef& queued);
  // Finds the runs that earlier processes left, once, before the first run of this one begins.
  Result<void> FindAbandoned();

  InteractionStore& store_;
  Mutex find_mutex_;  // held while the store is asked; taken before mutex_
  bool found_ GUARDED_BY(find_mutex_) = false;
  Mutex mutex_;
  // By chat; nullopt: a run that is about to begin and has no number yet.
  std::unordered_map<ChatId, std::optional<InteractionId>> held_ GUARDED_BY(mutex_);
  std::deque<Abandoned> abandoned_ GUARDED_BY(mutex_);
};

}  // namespace reprise
