#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace reprise {

// One thread that waits for sockets and timers and runs their tasks. All work on a connection happens on it, one task
// at a time. No task may block.
class IoLoop {
 public:
  using Task = std::function<void()>;

  IoLoop();
  ~IoLoop();  // calls Stop
  IoLoop(const IoLoop&) = delete;
  IoLoop& operator=(const IoLoop&) = delete;

  void Start();
  // Ends the thread after its current task; the destructor drops the tasks that still wait. Not to be called on the
  // loop's thread.
  void Stop();

  // Runs `task` on the loop's thread. Callable from any thread.
  void Post(Task task);
  // Runs `task` once, after `delay`, in place of the task set before. On the loop's thread only.
  void After(std::chrono::milliseconds delay, Task task);

  // A socket that the loop waits for. Used on the loop's thread only, and destroyed before the loop.
  class Socket {
   public:
    // Owns `fd`, which must be non-blocking.
    Socket(IoLoop& loop, int fd);
    ~Socket();  // closes
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    int fd() const;  // -1 once closed
    // Runs `task` once, when there is input (or the end, or an error) or room for output. Close drops it.
    void WhenReadable(Task task);
    void WhenWritable(Task task);
    void Close();

   private:
    class Impl;
    std::unique_ptr<Impl> impl_;
  };

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Threads for work that may block. The work of each person waits in a line of its own and gets `share` threads at most.
// A person with fewer gets a thread at once: an additional one if all are busy, up to `most`. So no person waits for
// another's long work. Beyond `most` the lines take turns. Additional threads end after some idle time. Thread-safe.
class WorkerPool {
 public:
  explicit WorkerPool(std::size_t share, std::size_t most = 64);
  ~WorkerPool();  // calls Join
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // `whose` names the line.
  void Post(const std::string& whose, std::function<void()> task);
  // Waits for the tasks that have begun. Drops those that wait, and all that are posted later.
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
  Condition changed_;
  Lines lines_ GUARDED_BY(mutex_);                       // those with tasks that wait or run
  std::list<Lines::iterator> turns_ GUARDED_BY(mutex_);  // those with tasks that wait
  std::size_t idle_ GUARDED_BY(mutex_) = 0;
  bool joining_ GUARDED_BY(mutex_) = false;
  std::list<std::thread> threads_ GUARDED_BY(mutex_);
  std::vector<std::thread> ended_ GUARDED_BY(mutex_);  // finished, to be joined
};

}  // namespace reprise
