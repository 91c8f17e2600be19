#include "engine/timer.h"

#include <utility>

namespace reprise {

Timer::Timer() : thread_([this](std::stop_token stop) { Loop(std::move(stop)); }) {}

void Timer::After(std::chrono::milliseconds delay, std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  const auto added = calls_.emplace(Clock::now() + delay, std::move(call));
  if (added == calls_.begin()) wake_.notify_one();
}

void Timer::Loop(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (calls_.empty()) {
      wake_.wait(lock, stop, [this] { return !calls_.empty(); });
      continue;
    }
    const auto due = calls_.begin()->first;
    if (Clock::now() < due) {
      wake_.wait_until(lock, stop, due, [this, due] { return calls_.begin()->first < due; });
      continue;
    }
    std::function<void()> call = std::move(calls_.begin()->second);
    calls_.erase(calls_.begin());
    lock.unlock();
    call();
    call = nullptr;
    lock.lock();
  }
}

}  // namespace reprise
