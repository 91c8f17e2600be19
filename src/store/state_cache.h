#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace reprise {

// The states that were used last, by name, so that the next turn of a chat need not make them anew from its files.
// `State` is what is kept of one. Thread-safe.
template <typename State>
class StateCache {
 public:
  // In bytes, as `Put` counts them.
  explicit StateCache(std::size_t capacity) : capacity_(capacity) {}

  std::optional<State> Find(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return std::nullopt;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->state;
  }

  // The same, and forgets it.
  std::optional<State> Take(const std::string& name) {
    Entries taken;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return std::nullopt;
    Remove(found->second, taken);
    return std::move(taken.front().state);
  }

  // Takes the place of what had the name. A state beyond the capacity is not kept.
  void Put(const std::string& name, State state, std::size_t bytes) {
    Entries dropped;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    if (const auto found = by_name_.find(name); found != by_name_.end()) Remove(found->second, dropped);
    if (bytes > capacity_) return;
    entries_.push_front({.name = name, .state = std::move(state), .bytes = bytes});
    by_name_.emplace(name, entries_.begin());
    bytes_ += bytes;
    while (bytes_ > capacity_) Remove(std::prev(entries_.end()), dropped);
  }

 private:
  struct Entry {
    std::string name;
    State state;
    std::size_t bytes;
  };
  using Entries = std::list<Entry>;

  void Remove(typename Entries::iterator entry, Entries& to) {
    by_name_.erase(entry->name);
    bytes_ -= entry->bytes;
    to.splice(to.end(), entries_, entry);
  }

  const std::size_t capacity_;
  std::mutex mutex_;
  Entries entries_;                                                      // guarded by mutex_; used last comes first
  std::unordered_map<std::string, typename Entries::iterator> by_name_;  // guarded by mutex_
  std::size_t bytes_ = 0;                                                // guarded by mutex_
};

}  // namespace reprise
