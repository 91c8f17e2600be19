#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace reprise {

// Threads for work that may block. The work of each person waits in a line of its own and has `share` threads at most;
// whoever has fewer gets one at once, an additional one if all are busy, up to `most`. So one person's long work makes
// nobody else wait. Beyond that the lines take turns. Additional threads end when they have had nothing to do for a
// while. Thread-safe.
class WorkerPool {
 public:
  explicit WorkerPool(std::size_t share, std::size_t most = 64);
  ~WorkerPool();  // Join
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // `whose`: names the line.
  void Post(const std::string& whose, std::function<void()> task);
  // Waits until what was begun is done. What still waits is dropped, and so is what is posted from now on.
  void Join();

 private:
  struct Line {
    std::deque<std::function<void()>> tasks{};
    std::size_t running = 0;
  };
  using Lines = std::map<std::string, Line>;

  void Work();
  void AddThread() REQUIRES(mutex_);
  std::size_t Startable() const REQUIRES(mutex_);
  std::optional<Lines::iterator> Next() REQUIRES(mutex_);

  const std::size_t share_, most_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  Lines lines_ GUARDED_BY(mutex_);                       // of whom something waits or runs
  std::list<Lines::iterator> turns_ GUARDED_BY(mutex_);  // of whom something waits
  std::size_t idle_ GUARDED_BY(mutex_) = 0;
  bool joining_ GUARDED_BY(mutex_) = false;
  std::list<std::thread> threads_ GUARDED_BY(mutex_);
  std::vector<std::thread> ended_ GUARDED_BY(mutex_);  // to be joined, at once
};

}  // namespace reprise
