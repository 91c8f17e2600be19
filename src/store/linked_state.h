#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/mutex.h"
#include "reprise/interaction.h"
#include "reprise/message.h"
#include "reprise/result.h"

// Long states on disk (schemas/FILES.md). A chat's state grows with every turn, and every checkpoint has it. Written in
// full each time, it would take disk space with the square of the chat's length. So a checkpoint of a long chat holds
// only the additions to its parent's state, with full states at growing distances.

namespace reprise {

// States up to this size are always written in full.
inline constexpr std::uint64_t kFullStateBytes = 64 * 1024;

// The facts about a state that the next checkpoint needs.
struct StateTotals {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;       // of the messages as JSON
  std::string digest;            // names the messages and their order
  std::uint64_t full_bytes = 0;  // size of the last state in its history that was written in full
  std::uint64_t files = 0;       // the number of files that have added to it since
};
StateTotals TotalsOf(const AgentState& state);

// Whether `state` begins with the state of these totals, byte for byte according to the digest.
bool BeginsWith(const AgentState& state, const StateTotals& totals);

// A state that was written as its additions.
struct StateLink {
  std::uint64_t kept = 0;  // the number of the parent's messages that come first
  StateTotals totals;
};

// A state that another one may continue, as far as it is known.
struct KnownState {
  StateTotals totals;
  std::shared_ptr<const AgentState> state;  // null: only the totals are known
};

// The link for writing `state` as additions to its parent's. nullopt: write it in full, because it is short, does not
// continue the parent's, or a full one is due.
std::optional<StateLink> LinkTo(const KnownState& parent, const AgentState& state);

// The JSON of an interaction whose state is written with this link.
Json ToLinkedJson(const Interaction& interaction, const StateLink& link);

// The totals of a state that continues the parent's with these messages.
StateTotals Continued(StateTotals parent, const Messages& added);
// The JSON of an interaction whose state was given as its additions. No text is replaced by a reference.
Json ToLinkedJson(const AddedInteraction& added, const StateTotals& totals);
// The same as a file has it. `added` has the messages that its state adds.
Json ToStoredJson(const Interaction& added, const StateLink& link);

// Whether an interaction's JSON text has such a link.
bool HasLinkedState(std::string_view interaction);

// Removes the link again; the state keeps the messages that were added. nullopt: it was written in full. kCorruption
// if ToLinkedJson does not write such a link.
Result<std::optional<StateLink>> UnlinkState(Json& interaction);

// The approximate memory of a state: its objects and the texts in them.
std::size_t MemoryOf(const AgentState& state);

// The last used states, by name, so that the next turn of a chat need not rebuild them from its files. `State` is the
// form in which one is kept. Thread-safe.
template <typename State>
class StateCache {
 public:
  // The number of states that are kept of one owner.
  static constexpr std::ptrdiff_t kOfOwner = 3;

  // `capacity` is in bytes, as counted by the callers of `Put`.
  explicit StateCache(std::size_t capacity) : capacity_(capacity) {}

  std::optional<State> Find(const std::string& name) {
    const MutexLock lock(mutex_);
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return std::nullopt;
    entries_.splice(entries_.begin(), entries_, found->second);
    found->second->used = ++uses_;
    return found->second->state;
  }

  // All states of an owner. This does not count as a use.
  std::vector<State> FindAll(const std::string& owner) const {
    std::vector<State> all;
    const MutexLock lock(mutex_);
    const auto [first, last] = by_owner_.equal_range(owner);
    for (auto one = first; one != last; ++one) all.push_back(one->second->state);
    return all;
  }

  // The same as Find, and removes the state.
  std::optional<State> Take(const std::string& name) {
    Entries taken;  // destroyed without the lock
    const MutexLock lock(mutex_);
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return std::nullopt;
    Remove(found->second, taken);
    return std::move(taken.front().state);
  }

  // Replaces the state of this name. A state larger than the capacity is not kept. Of those with the same owner (unless
  // that is empty), the last used kOfOwner are kept.
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

  // Removes all states of an owner.
  void Drop(const std::string& owner) {
    Entries dropped;  // destroyed without the lock
    const MutexLock lock(mutex_);
    for (auto one = by_owner_.find(owner); one != by_owner_.end(); one = by_owner_.find(owner)) {
      Remove(one->second, dropped);
    }
  }

  // The bytes of all states, as counted by the callers of `Put`.
  std::size_t bytes() const {
    const MutexLock lock(mutex_);
    return bytes_;
  }

 private:
  struct Entry {
    std::string name, owner;
    State state;
    std::size_t bytes;
    std::uint64_t used;  // number of the last use
  };
  using Entries = std::list<Entry>;

  // Makes room for one more of this owner.
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
  Entries entries_ GUARDED_BY(mutex_);  // the last used first
  std::unordered_map<std::string, typename Entries::iterator> by_name_ GUARDED_BY(mutex_);
  std::unordered_multimap<std::string, typename Entries::iterator> by_owner_ GUARDED_BY(mutex_);
  std::size_t bytes_ GUARDED_BY(mutex_) = 0;
  std::uint64_t uses_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
