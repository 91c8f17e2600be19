#pragma once

#include <condition_variable>
#include <mutex>

// Locks whose use clang checks when it compiles (-Wthread-safety, scripts/lint): a GUARDED_BY member is touched only
// with that mutex held, and a function that REQUIRES a mutex is called only with it. Other compilers check nothing. A
// std::condition_variable_any waits with a MutexLock, and its predicate is annotated too:
// `[this]() REQUIRES(mutex_) { return !jobs_.empty(); }`.
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
  std::mutex mutex_;
};

// Holds a mutex during its life, except between `unlock` and `lock`.
class REPRISE_CHECKED(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) REPRISE_CHECKED(acquire_capability(mutex)) : lock_(mutex) {}
  // Adopts a mutex that this thread holds through `try_lock`.
  MutexLock(Mutex& mutex, std::adopt_lock_t adopt) REQUIRES(mutex) : lock_(mutex, adopt) {}
  ~MutexLock() REPRISE_CHECKED(release_capability()) = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() REPRISE_CHECKED(acquire_capability()) { lock_.lock(); }
  void unlock() REPRISE_CHECKED(release_capability()) { lock_.unlock(); }

 private:
  std::unique_lock<Mutex> lock_;
};

}  // namespace reprise
