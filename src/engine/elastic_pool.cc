#include "engine/elastic_pool.h"

#include <utility>

namespace reprise {

ElasticPool::~ElasticPool() {
  std::unique_lock lock(mutex_);
  closing_ = true;
  wake_.notify_all();
  while (!threads_.empty() || !ended_.empty()) {
    Threads joinable = std::exchange(ended_, {});
    joinable.splice(joinable.end(), threads_, threads_.begin(), threads_.end());
    lock.unlock();
    for (std::thread& thread : joinable) thread.join();
    lock.lock();
  }
}

void ElasticPool::AddThread() {
  threads_.emplace_front();
  try {
    threads_.front() = std::thread([this, self = threads_.begin()] { Work(self); });
  } catch (...) {
    threads_.pop_front();
    if (threads_.empty()) throw;
  }
}

void ElasticPool::StartFirstThread() {
  const std::lock_guard lock(mutex_);
  if (threads_.empty()) AddThread();
}

void ElasticPool::Submit(std::function<void()> job) {
  Threads ended;
  {
    const std::lock_guard lock(mutex_);
    if (idle_ <= jobs_.size()) AddThread();
    jobs_.push_back(std::move(job));
    ended.swap(ended_);
  }
  wake_.notify_one();  // after the lock is released: who wakes would only wait for it
  for (std::thread& thread : ended) thread.join();
}

void ElasticPool::Work(Threads::iterator self) {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    const bool has_work = wake_.wait_for(lock, idle_limit_, [this] { return closing_ || !jobs_.empty(); });
    --idle_;
    if (jobs_.empty()) {
      if (closing_) return;  // the destructor joins
      if (has_work || threads_.size() == 1) continue;
      ended_.splice(ended_.end(), threads_, self);
      return;
    }
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    job = nullptr;  // what it holds is released before the lock is taken
    lock.lock();
  }
}

}  // namespace reprise
