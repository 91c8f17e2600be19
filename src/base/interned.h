#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/mutex.h"

namespace reprise {

// Lets equal values share memory: a thousand runs of one agent are told the same. Remembers only the last values, so
// that it stays fast; others are kept each by itself. The last `held` of them stay although nobody uses them.
// Thread-safe.
//
//   static Interned<std::string> texts;
//   std::shared_ptr<const std::string> text = texts.Share("You are...");  // as an equal one that is in use
template <typename T, std::size_t held = 0>
class Interned {
 public:
  // Never null. `value`: what a T equals and is made from.
  template <typename Value = T>
  std::shared_ptr<const T> Share(Value&& value) {
    const MutexLock lock(mutex_);
    for (const std::weak_ptr<const T>& each : lately_) {
      if (auto known = each.lock(); known && *known == value) return known;
    }
    auto shared = std::make_shared<const T>(std::forward<Value>(value));
    if constexpr (held > 0) held_[next_ % held] = shared;
    lately_[next_++ % lately_.size()] = shared;
    return shared;
  }

 private:
  Mutex mutex_;
  std::array<std::weak_ptr<const T>, 16> lately_ GUARDED_BY(mutex_);
  std::array<std::shared_ptr<const T>, held> held_ GUARDED_BY(mutex_);
  std::size_t next_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
