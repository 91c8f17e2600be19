#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace reprise {

// The states that were used last, so that the next turn of a chat need not read them again. Named by the digest of the
// record that ends in them: another record, another state. `State` is what is kept of one. Thread-safe.
template <typename State>
class StateCache {
 public:
  // In bytes, as `Put` counts them.
  explicit StateCache(std::size_t capacity) : capacity_(capacity) {}

  std::optional<State> Find(const std::string& digest) {
    const std::lock_guard lock(mutex_);
    const auto found = by_digest_.find(digest);
    if (found == by_digest_.end()) return std::nullopt;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->state;
  }

  // The same, and forgets it.
  std::optional<State> Take(const std::string& digest) {
    Entries taken;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    const auto found = by_digest_.find(digest);
    if (found == by_digest_.end()) return std::nullopt;
    Remove(found->second, taken);
    return std::move(taken.front().state);
  }

  // A state beyond the capacity is not kept.
  void Put(const std::string& digest, State state, std::size_t bytes) {
    if (bytes > capacity_) return;
    Entries dropped;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    if (by_digest_.contains(digest)) return;
    entries_.push_front({.digest = digest, .state = std::move(state), .bytes = bytes});
    by_digest_.emplace(digest, entries_.begin());
    bytes_ += bytes;
    while (bytes_ > capacity_) Remove(std::prev(entries_.end()), dropped);
  }

 private:
  struct Entry {
    std::string digest;
    State state;
    std::size_t bytes;
  };
  using Entries = std::list<Entry>;

  void Remove(typename Entries::iterator entry, Entries& to) {
    by_digest_.erase(entry->digest);
    bytes_ -= entry->bytes;
    to.splice(to.end(), entries_, entry);
  }

  const std::size_t capacity_;
  std::mutex mutex_;
  Entries entries_;                                                        // guarded by mutex_; used last comes first
  std::unordered_map<std::string, typename Entries::iterator> by_digest_;  // guarded by mutex_
  std::size_t bytes_ = 0;                                                  // guarded by mutex_
};

}  // namespace reprise
