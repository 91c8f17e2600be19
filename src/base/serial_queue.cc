#include "base/serial_queue.h"

#include <utility>

#include "base/guarded.h"

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

}  // namespace reprise
