#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>

namespace reprise {

// Calls functions later, on a thread of its own, which sleeps until the next one is due. Thread-safe.
class Timer {
 public:
  Timer();
  ~Timer() = default;  // what is not due yet is dropped
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // `call` must be short and must not throw.
  void After(std::chrono::milliseconds delay, std::function<void()> call);

 private:
  using Clock = std::chrono::steady_clock;
  void Loop(std::stop_token stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::multimap<Clock::time_point, std::function<void()>> calls_;  // guarded by mutex_
  std::jthread thread_;                                            // last, so that it stops before what it uses is gone
};

}  // namespace reprise
