#pragma once

#include <chrono>
#include <condition_variable>
#include <stop_token>

#include "base/mutex.h"

namespace reprise {

// Waits as long as that. False: `stop` was requested, perhaps before.
inline bool Pause(std::chrono::milliseconds pause, const std::stop_token& stop) {
  Mutex mutex;
  std::condition_variable_any never;
  MutexLock lock(mutex);
  never.wait_for(lock, stop, pause, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace reprise
