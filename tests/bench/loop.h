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

// CLOCK_MONOTONIC in nanoseconds, which is the same in every process, so that a chunk can carry its time.
std::int64_t Now();

// A single-threaded epoll loop with timers. All three programs have one thread each, so that none of them is the
// bottleneck.
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
  std::vector<std::shared_ptr<Handler>> handlers_;  // index: descriptor
  std::priority_queue<Timer> timers_;
};

// Loopback sockets. These functions exit with a message if the system refuses.
int Listen(int port, int& bound_port);
int Connect(int port);
int Accept(int listener);  // -1 if no connection waits
void RaiseDescriptorLimit();
[[noreturn]] void Die(const std::string& what);

// A socket with a buffer of unsent bytes.
class Peer {
 public:
  Peer(Loop& loop, int fd, std::function<void()> on_readable, std::function<void()> on_drained);
  ~Peer();
  Peer(const Peer&) = delete;

  // Appends the bytes that have arrived. False if the other side is gone.
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

// Takes one whole request (head and Content-Length body) from the front of `buffer`. False if it is not complete yet.
struct Request {
  std::string head, body;
};
bool TakeRequest(std::string& buffer, Request& request);

}  // namespace reprise::bench
