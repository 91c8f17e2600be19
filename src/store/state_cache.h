#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>

#include "reprise/message.h"
#include "store/linked_state.h"

namespace reprise {

// The long states that were used last, so that the next turn of a chat need not put them together again from many
// files. Named by the digest of the record that ends in them: another record, another state. Thread-safe.
class StateCache {
 public:
  // In bytes of the states as JSON; a state beyond it is not kept.
  explicit StateCache(std::size_t capacity) : capacity_(capacity) {}

  std::optional<KnownState> Find(const std::string& digest);
  void Put(const std::string& digest, AgentState state, StateTotals totals);

 private:
  struct Named {
    std::string digest;
    KnownState known;
  };
  const std::size_t capacity_;
  std::mutex mutex_;
  std::list<Named> entries_;  // guarded by mutex_; used last comes first
  std::size_t bytes_ = 0;     // guarded by mutex_
};

}  // namespace reprise
