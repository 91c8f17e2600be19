#include "store/state_cache.h"

#include <algorithm>
#include <utility>

namespace reprise {

std::optional<KnownState> StateCache::Find(const std::string& digest) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Named& each) { return each.digest == digest; });
  if (found == entries_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found);
  return found->known;
}

void StateCache::Put(const std::string& digest, AgentState state, StateTotals totals) {
  if (totals.bytes > capacity_) return;
  std::list<Named> dropped;  // destroyed without the lock
  auto shared = std::make_shared<const AgentState>(std::move(state));
  const std::lock_guard lock(mutex_);
  const auto known =
      std::find_if(entries_.begin(), entries_.end(), [&](const Named& each) { return each.digest == digest; });
  if (known != entries_.end()) return;
  bytes_ += totals.bytes;
  entries_.push_front({.digest = digest, .known = {.totals = std::move(totals), .state = std::move(shared)}});
  while (bytes_ > capacity_) {
    bytes_ -= entries_.back().known.totals.bytes;
    dropped.splice(dropped.end(), entries_, std::prev(entries_.end()));
  }
}

}  // namespace reprise
