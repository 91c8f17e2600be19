#include "mcp/timed_queue.h"

#include <utility>

namespace reprise {

TimedQueue::TimedQueue() : thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void TimedQueue::Post(std::function<void()> job, std::chrono::milliseconds delay) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.emplace(Clock::now() + delay, std::move(job));
  }
  wake_.notify_one();
}

void TimedQueue::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void TimedQueue::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (jobs_.empty()) {
      wake_.wait(lock, stop, [this] { return !jobs_.empty(); });
      continue;
    }
    const auto due = jobs_.begin()->first;
    if (Clock::now() < due) {
      wake_.wait_until(lock, stop, due, [&] { return jobs_.begin()->first < due; });
      continue;
    }
    const std::function<void()> job = std::move(jobs_.begin()->second);
    jobs_.erase(jobs_.begin());
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace reprise
