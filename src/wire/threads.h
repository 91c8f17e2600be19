#pragma once

#include <chrono>
#include <condition_variable>
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

// One thread that waits for sockets and timers and runs what they are waited for with. Everything of a connection
// happens on it, one thing at a time; nothing that runs on it may block.
class IoLoop {
 public:
  using Task = std::function<void()>;

  IoLoop();
  ~IoLoop();  // Stop
  IoLoop(const IoLoop&) = delete;
  IoLoop& operator=(const IoLoop&) = delete;

  void Start();
  // Ends the thread after the task it is in; what still waits is dropped by the destructor. Not from the loop's own
  // thread.
  void Stop();

  // Runs `task` on the loop's thread. Any thread.
  void Post(Task task);
  // Runs `task` once, later; replaces the one set before. The loop's thread only.
  void After(std::chrono::milliseconds delay, Task task);

  // A socket that the loop waits for. The loop's thread only; not destroyed after the loop.
  class Socket {
   public:
    // Takes over `fd`, which must be non-blocking.
    Socket(IoLoop& loop, int fd);
    ~Socket();  // closes
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    int fd() const;  // -1 once closed
    // Runs `task` once, when there is something to read (the end and errors included) or room to write. Dropped by
    // Close.
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
