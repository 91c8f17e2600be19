#include "engine/readiness.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

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
  std::mutex mutex{};
  std::condition_variable answered{};
  bool asked = false;  // and not answered yet; this and what follows is guarded by mutex
  Clock::time_point asked_at{};
  Clock::time_point good_until{};
  Result<void> answer{};
};

Readiness::Readiness(std::function<Result<void>()> probe, Limits limits)
    : limits_(limits), state_(new State{.probe = std::move(probe)}) {}

Result<void> Readiness::Check() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (!state.asked && Clock::now() < state.good_until) return state.answer;
  if (!state.asked) {
    state.asked = true;
    state.asked_at = Clock::now();
    lock.unlock();
    try {
      pool_.Submit([state = state_, limits = limits_] {
        auto answer = state->probe();
        const std::lock_guard answering(state->mutex);
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
  if (state.answered.wait_until(lock, state.asked_at + limits_.wait, [&] { return !state.asked; })) {
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
