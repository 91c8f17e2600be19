#include "base/queues.h"

#include "base/logging.h"

namespace reprise {

void SerialQueue::Post(std::function<void()> job) {
  {
    const MutexLock lock(mutex_);
    if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void SerialQueue::Run(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  while (wake_.wait(lock, stop, [this]() REQUIRES(mutex_) { return !jobs_.empty(); })) {
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    Guarded("a job of a queue", job);
    job = nullptr;  // what it holds is released before the lock is taken
    lock.lock();
  }
}

TimedQueue::TimedQueue() : thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void TimedQueue::After(std::chrono::milliseconds delay, std::function<void()> job) {
  const MutexLock lock(mutex_);
  const auto added = jobs_.emplace(Clock::now() + delay, std::move(job));
  if (added == jobs_.begin()) wake_.notify_one();
}

void TimedQueue::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void TimedQueue::Run(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    if (jobs_.empty()) {
      wake_.wait(lock, stop, [this]() REQUIRES(mutex_) { return !jobs_.empty(); });
      continue;
    }
    const auto due = jobs_.begin()->first;
    if (Clock::now() < due) {
      wake_.wait_until(lock, stop, due, [this, due]() REQUIRES(mutex_) { return jobs_.begin()->first < due; });
      continue;
    }
    std::function<void()> job = std::move(jobs_.begin()->second);
    jobs_.erase(jobs_.begin());
    lock.unlock();
    Guarded("a timer", job);
    job = nullptr;  // what it holds is released before the lock is taken
    lock.lock();
  }
}

}  // namespace reprise
