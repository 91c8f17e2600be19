#include "engine/elastic_pool.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <list>
#include <system_error>
#include <thread>
#include <utility>

#include "base/guarded.h"
#include "base/mutex.h"

namespace reprise {

struct ElasticPool::State {
  using Threads = std::list<std::thread>;
  explicit State(std::chrono::milliseconds limit) : idle_limit(limit) {}
  void AddThread() REQUIRES(mutex);
  void Work(Threads::iterator self);

  const std::chrono::milliseconds idle_limit;
  Mutex mutex;
  std::condition_variable_any wake;
  std::deque<std::function<void()>> jobs GUARDED_BY(mutex);
  std::size_t idle GUARDED_BY(mutex) = 0;  // threads that will take the next jobs, also those that are just starting
  bool closing GUARDED_BY(mutex) = false;
  Threads threads GUARDED_BY(mutex);
  Threads ended GUARDED_BY(mutex);  // to be joined by the next caller
};

ElasticPool::ElasticPool(std::chrono::milliseconds idle_limit) : state_(std::make_shared<State>(idle_limit)) {}

ElasticPool::~ElasticPool() {
  State& state = *state_;
  MutexLock lock(state.mutex);
  state.closing = true;
  state.wake.notify_all();
  while (!state.threads.empty() || !state.ended.empty()) {
    State::Threads joinable = std::exchange(state.ended, {});
    joinable.splice(joinable.end(), state.threads, state.threads.begin(), state.threads.end());
    lock.unlock();
    for (std::thread& thread : joinable) thread.join();
    lock.lock();
  }
}

void ElasticPool::StartFirstThread() {
  const MutexLock lock(state_->mutex);
  if (state_->threads.empty()) state_->AddThread();
}

bool ElasticPool::HasThreadToSpare() {
  const MutexLock lock(state_->mutex);
  try {
    if (state_->idle <= state_->jobs.size()) state_->AddThread();
  } catch (const std::system_error&) {
    return false;
  }
  return state_->idle > state_->jobs.size();
}

void ElasticPool::Submit(std::function<void()> job) {
  const std::shared_ptr<State> state = state_;  // the job may be what the pool's owner waits for
  State::Threads ended;
  {
    const MutexLock lock(state->mutex);
    if (state->idle <= state->jobs.size()) state->AddThread();
    state->jobs.push_back(std::move(job));
    ended.swap(state->ended);
  }
  state->wake.notify_one();  // after the lock is released: who wakes would only wait for it
  for (std::thread& thread : ended) thread.join();
}

void ElasticPool::State::AddThread() {
  threads.emplace_front();
  try {
    threads.front() = std::thread([this, self = threads.begin()] { Work(self); });
    ++idle;
  } catch (...) {
    threads.pop_front();
    if (threads.empty()) throw;
  }
}

void ElasticPool::State::Work(Threads::iterator self) {
  MutexLock lock(mutex);
  for (;;) {
    const bool has_work =
        wake.wait_for(lock, idle_limit, [this]() REQUIRES(mutex) { return closing || !jobs.empty(); });
    if (jobs.empty()) {
      if (closing) return;  // the destructor joins
      if (has_work || threads.size() == 1) continue;
      --idle;
      ended.splice(ended.end(), threads, self);
      return;
    }
    --idle;
    std::function<void()> job = std::move(jobs.front());
    jobs.pop_front();
    lock.unlock();
    Guarded("a job of a run", job);
    job = nullptr;  // what it holds is released before the lock is taken
    lock.lock();
    ++idle;
  }
}

}  // namespace reprise
