#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

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

}  // namespace reprise
