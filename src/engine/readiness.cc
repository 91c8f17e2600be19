#include "engine/readiness.h"

#include <condition_variable>
#include <optional>
#include <system_error>
#include <utility>

#include "base/mutex.h"
#include "base/system_error.h"

namespace reprise {
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
  std::condition_variable_any answered{};
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
        auto answer = state->probe();
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
  return {.code = ErrorCode::kUnavailable,
          .reason = "disk_not_responding",
          .message = "the disk of the data folder does not respond",
          .retryable = true};
}

}  // namespace reprise
