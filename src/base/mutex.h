#pragma once

#include <condition_variable>
#include <mutex>

// Locks whose use clang checks when it compiles (-Wthread-safety, scripts/lint): a GUARDED_BY member is touched only
// with that mutex held, and a function that REQUIRES a mutex is called only with it. Other compilers check nothing. The
// predicate of a wait is annotated too: `[this]() REQUIRES(mutex_) { return !jobs_.empty(); }`.
#ifdef __clang__
#define REPRISE_CHECKED(attribute) __attribute__((attribute))
#else
#define REPRISE_CHECKED(attribute)
#endif
#define GUARDED_BY(mutex) REPRISE_CHECKED(guarded_by(mutex))
#define REQUIRES(...) REPRISE_CHECKED(requires_capability(__VA_ARGS__))

namespace reprise {

class REPRISE_CHECKED(capability("mutex")) Mutex {
 public:
  void lock() REPRISE_CHECKED(acquire_capability()) { mutex_.lock(); }
  bool try_lock() REPRISE_CHECKED(try_acquire_capability(true)) { return mutex_.try_lock(); }
  void unlock() REPRISE_CHECKED(release_capability()) { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex during its life, except between `unlock` and `lock`.
class REPRISE_CHECKED(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) REPRISE_CHECKED(acquire_capability(mutex)) : lock_(mutex.mutex_) {}
  // Adopts a mutex that this thread holds through `try_lock`.
  MutexLock(Mutex& mutex, std::adopt_lock_t adopt) REQUIRES(mutex) : lock_(mutex.mutex_, adopt) {}
  ~MutexLock() REPRISE_CHECKED(release_capability()) = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() REPRISE_CHECKED(acquire_capability()) { lock_.lock(); }
  void unlock() REPRISE_CHECKED(release_capability()) { lock_.unlock(); }

 private:
  friend class Condition;
  std::unique_lock<std::mutex> lock_;
};

// What another thread changes under the mutex is waited for here. A std::condition_variable_any waits for a
// std::stop_token as well, and has a mutex of its own, for which each woken thread has to wait.
class Condition {
 public:
  template <typename... Until>
  auto wait(MutexLock& lock, Until... until) {
    return condition_.wait(lock.lock_, until...);
  }
  template <typename Duration, typename... Until>
  auto wait_for(MutexLock& lock, Duration limit, Until... until) {
    return condition_.wait_for(lock.lock_, limit, until...);
  }
  template <typename Time, typename... Until>
  auto wait_until(MutexLock& lock, Time limit, Until... until) {
    return condition_.wait_until(lock.lock_, limit, until...);
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace reprise
