#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "reprise/message.h"

namespace reprise {

// What the state takes, about: its objects and the texts in them.
std::size_t MemoryOf(const AgentState& state);

// The states that were used last, by name, so that the next turn of a chat need not make them anew from its files.
// `State` is what is kept of one. Thread-safe.
template <typename State>
class StateCache {
 public:
  // So many of an owner's are kept.
  static constexpr std::ptrdiff_t kOfOwner = 3;

  // In bytes, as `Put` counts them.
  explicit StateCache(std::size_t capacity) : capacity_(capacity) {}

  std::optional<State> Find(const std::string& name) {
    const MutexLock lock(mutex_);
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return std::nullopt;
    entries_.splice(entries_.begin(), entries_, found->second);
    found->second->used = ++uses_;
    return found->second->state;
  }

  // All that belong to it. They do not count as used by that.
  std::vector<State> FindAll(const std::string& owner) const {
    std::vector<State> all;
    const MutexLock lock(mutex_);
    const auto [first, last] = by_owner_.equal_range(owner);
    for (auto one = first; one != last; ++one) all.push_back(one->second->state);
    return all;
  }

  // The same as Find, and forgets it.
  std::optional<State> Take(const std::string& name) {
    Entries taken;  // destroyed without the lock
    const MutexLock lock(mutex_);
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return std::nullopt;
    Remove(found->second, taken);
    return std::move(taken.front().state);
  }

  // Takes the place of what had the name. A state beyond the capacity is not kept. Of those with the same owner (unless
  // that is empty) the kOfOwner that were used last are.
  void Put(const std::string& name, State state, std::size_t bytes, const std::string& owner = {}) {
    Entries dropped;  // destroyed without the lock
    const MutexLock lock(mutex_);
    if (const auto found = by_name_.find(name); found != by_name_.end()) Remove(found->second, dropped);
    if (bytes > capacity_) return;
    if (!owner.empty()) DropOldest(owner, dropped);
    entries_.push_front({.name = name, .owner = owner, .state = std::move(state), .bytes = bytes, .used = ++uses_});
    by_name_.emplace(name, entries_.begin());
    if (!owner.empty()) by_owner_.emplace(owner, entries_.begin());
    bytes_ += bytes;
    while (bytes_ > capacity_) Remove(std::prev(entries_.end()), dropped);
  }

  // Forgets all that belong to it.
  void Drop(const std::string& owner) {
    Entries dropped;  // destroyed without the lock
    const MutexLock lock(mutex_);
    for (auto one = by_owner_.find(owner); one != by_owner_.end(); one = by_owner_.find(owner)) {
      Remove(one->second, dropped);
    }
  }

  // What is kept, as `Put` counts it.
  std::size_t bytes() const {
    const MutexLock lock(mutex_);
    return bytes_;
  }

 private:
  struct Entry {
    std::string name, owner;
    State state;
    std::size_t bytes;
    std::uint64_t used;  // in the order of this
  };
  using Entries = std::list<Entry>;

  // Leaves one.
  void DropOldest(const std::string& owner, Entries& to) REQUIRES(mutex_) {
    const auto [first, last] = by_owner_.equal_range(owner);
    if (std::distance(first, last) < kOfOwner) return;
    const auto oldest =
        std::min_element(first, last, [](const auto& a, const auto& b) { return a.second->used < b.second->used; });
    Remove(oldest->second, to);
  }

  void Remove(typename Entries::iterator entry, Entries& to) REQUIRES(mutex_) {
    by_name_.erase(entry->name);
    auto [owned, last] = by_owner_.equal_range(entry->owner);
    while (owned != last && owned->second != entry) ++owned;
    if (owned != last) by_owner_.erase(owned);
    bytes_ -= entry->bytes;
    to.splice(to.end(), entries_, entry);
  }

  const std::size_t capacity_;
  mutable Mutex mutex_;
  Entries entries_ GUARDED_BY(mutex_);  // used last comes first
  std::unordered_map<std::string, typename Entries::iterator> by_name_ GUARDED_BY(mutex_);
  std::unordered_multimap<std::string, typename Entries::iterator> by_owner_ GUARDED_BY(mutex_);
  std::size_t bytes_ GUARDED_BY(mutex_) = 0;
  std::uint64_t uses_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
