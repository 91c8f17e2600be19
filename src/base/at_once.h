#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace reprise {

// Calls `work` with 0 to `count` - 1, on so many threads at once, until a call returns false. The calling thread is one
// of them. Returns when all calls have ended.
inline void EachAtOnce(std::size_t threads, std::size_t count, const std::function<bool(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      if (!work(i)) next = count;
    }
  };
  std::vector<std::jthread> others;  // joined at the end
  while (others.size() + 1 < std::min(threads, count)) others.emplace_back(take);
  take();
}

}  // namespace reprise
