#include "engine/call_rate.h"

namespace reprise {
namespace {

constexpr std::chrono::minutes kWindow{1};

}  // namespace

std::optional<std::chrono::seconds> CallRate::Take(const ChatId& chat, Clock::time_point now) {
  const MutexLock lock(mutex_);
  const auto is_over = [now](Clock::time_point call) { return now - call >= kWindow; };
  if (!made_.contains(chat)) {
    std::erase_if(made_, [&](const auto& each) { return is_over(each.second.back()); });
  }
  auto& calls = made_[chat];
  while (!calls.empty() && is_over(calls.front())) calls.pop_front();
  if (calls.size() >= max_) return std::chrono::ceil<std::chrono::seconds>(calls.front() + kWindow - now);
  calls.push_back(now);
  return std::nullopt;
}

}  // namespace reprise
