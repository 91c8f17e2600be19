#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace reprise {

// A shorter secret would match by chance.
inline constexpr std::size_t kShortestSecret = 8;

// Secrets that become known while the program works, such as a key that a person types. None is forgotten. Thread-safe.
class LearnedSecrets {
 public:
  // No effect if it is too short, or known.
  void Add(const std::string& secret) {
    if (secret.size() < kShortestSecret) return;
    const MutexLock lock(mutex_);
    if (std::ranges::find(*all_, secret) != all_->end()) return;
    auto more = *all_;
    const auto is_longer = [&](const std::string& known) { return known.size() >= secret.size(); };
    more.insert(std::ranges::find_if_not(more, is_longer), secret);
    all_ = std::make_shared<const std::vector<std::string>>(std::move(more));
  }
  // The longest first.
  std::shared_ptr<const std::vector<std::string>> All() const {
    const MutexLock lock(mutex_);
    return all_;
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const std::vector<std::string>> all_ GUARDED_BY(mutex_) =
      std::make_shared<const std::vector<std::string>>();
};

}  // namespace reprise
