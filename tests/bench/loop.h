#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::bench {

// CLOCK_MONOTONIC in nanoseconds, which is the same in every process, so a chunk can carry its own time.
std::int64_t Now();

// A single-threaded epoll loop with timers. All three programs use a single thread, so that they do not limit what is
// measured.
class Loop {
 public:
  using Handler = std::function<void(std::uint32_t events)>;
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;

  void Watch(int fd, std::uint32_t events, Handler handler);
  void Change(int fd, std::uint32_t events);
  void Unwatch(int fd);
  void At(std::int64_t when, std::function<void()> what);
  void Run();
  void Stop() { running_ = false; }

 private:
  struct Timer {
    std::int64_t when;
    std::function<void()> what;
    bool operator<(const Timer& other) const { return when > other.when; }
  };
  void RunTimers();

  const int epoll_;
  bool running_ = false;
  std::vector<std::shared_ptr<Handler>> handlers_;  // by descriptor
  std::priority_queue<Timer> timers_;
};

// Loopback sockets. These functions exit with a message if the system refuses.
int Listen(int port, int& bound_port);
int Connect(int port);
int Accept(int listener);  // -1 if none waits
void RaiseDescriptorLimit();
[[noreturn]] void Die(const std::string& what);

// A socket with a buffer for bytes that could not be sent at once.
class Peer {
 public:
  Peer(Loop& loop, int fd, std::function<void()> on_readable, std::function<void()> on_drained);
  ~Peer();
  Peer(const Peer&) = delete;

  // Appends received bytes. False if the other side is gone.
  bool Receive(std::string& into);
  void Send(std::string_view data);
  bool backed_up() const { return !unsent_.empty(); }

 private:
  void OnEvent(std::uint32_t events);
  void Flush();

  Loop& loop_;
  const int fd_;
  const std::function<void()> on_readable_, on_drained_;
  std::string unsent_;
};

// Takes one whole request (head and Content-Length body) from the front of `buffer`; empty if it is incomplete.
struct Request {
  std::string head, body;
};
bool TakeRequest(std::string& buffer, Request& request);

}  // namespace reprise::bench
