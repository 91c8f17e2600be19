#include "engine/elastic_pool.h"

#include <cstddef>
#include <deque>
#include <list>
#include <system_error>
#include <thread>

#include "base/logging.h"
#include "base/mutex.h"
#include "base/system.h"

namespace reprise {

struct ElasticPool::State {
  using Threads = std::list<std::thread>;
  explicit State(std::chrono::milliseconds limit) : idle_limit(limit) {}
  void AddThread() REQUIRES(mutex);
  void Work(Threads::iterator self);

  const std::chrono::milliseconds idle_limit;
  Mutex mutex;
  Condition wake;
  std::deque<std::function<void()>> jobs GUARDED_BY(mutex);
  std::size_t idle GUARDED_BY(mutex) = 0;  // threads that will take the next jobs, including new ones
  bool closing GUARDED_BY(mutex) = false;
  Threads threads GUARDED_BY(mutex);
  Threads ended GUARDED_BY(mutex);  // the next caller joins them
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
  const std::shared_ptr<State> state = state_;  // the job may end the wait of the pool's owner
  State::Threads ended;
  {
    const MutexLock lock(state->mutex);
    if (state->idle <= state->jobs.size()) state->AddThread();
    state->jobs.push_back(std::move(job));
    ended.swap(state->ended);
  }
  state->wake.notify_one();  // after the unlock, so that the woken thread need not wait for the lock
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
    job = nullptr;  // releases its captures before the lock is taken
    lock.lock();
    ++idle;
  }
}

namespace {

using Clock = std::chrono::steady_clock;

Error Unavailable(Error error) {
  error.code = ErrorCode::kUnavailable;
  error.retryable = true;
  return error;
}

}  // namespace

struct Readiness::State {
  const std::function<Result<void>()> probe;
  Mutex mutex{};
  Condition answered{};
  bool asked GUARDED_BY(mutex) = false;  // and not answered yet
  Clock::time_point asked_at GUARDED_BY(mutex){};
  Clock::time_point good_until GUARDED_BY(mutex){};
  Result<void> answer GUARDED_BY(mutex){};
};

Readiness::Readiness(std::function<Result<void>()> probe, Limits limits)
    : limits_(limits), state_(new State{.probe = std::move(probe)}) {}

Result<void> Readiness::Check() {
  State& state = *state_;
  MutexLock lock(state.mutex);
  if (!state.asked && Clock::now() < state.good_until) return state.answer;
  if (!state.asked) {
    state.asked = true;
    state.asked_at = Clock::now();
    lock.unlock();
    try {
      pool_.Submit([state = state_, limits = limits_] {
        Result<void> answer = Fail(ErrorCode::kInternal, "the probe of the data folder failed");
        Guarded("a probe", [&] { answer = state->probe(); });  // another one may follow
        const MutexLock answering(state->mutex);
        state->good_until = Clock::now() + (answer ? limits.keep : limits.keep_failure);
        state->answer = answer ? std::move(answer) : Fail(Unavailable(std::move(answer.error())));
        state->asked = false;
        state->answered.notify_all();
      });
    } catch (const std::system_error& error) {
      lock.lock();
      state.asked = false;
      return Fail(SystemError(error.code().value(), "thread"));
    }
    lock.lock();
  }
  if (state.answered.wait_until(lock, state.asked_at + limits_.wait,
                                [&]() REQUIRES(state.mutex) { return !state.asked; })) {
    return state.answer;
  }
  return Fail(limits_.silent);
}

Error Readiness::DiskSilent() {
  return Refused(Reason::kDiskNotResponding, "the disk of the data folder does not respond");
}

}  // namespace reprise
