#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <thread>

#include "base/mutex.h"
#include "base/system.h"

namespace reprise {

// Bytes passed on from a client to a server, and back.
struct Passed {
  std::uint64_t there = 0, back = 0;
};

// Passes bytes on between two connected sockets that never block, until both directions have ended, one fails, or
// `stop`, a descriptor, becomes readable. The bytes stay in the kernel.
Passed PassBothWays(int client, int server, int stop);

// The next client of a listener that poll(2) has named; none if it is gone again. Without a descriptor left, the client
// waits in the queue: then this waits a little for `stop`, because accept would fail at once again.
UniqueFd AcceptClient(int listener, int stop);

// Connections with a thread each. Used by one thread at a time, beside those of the connections.
class ConnectionThreads {
 public:
  explicit ConnectionThreads(std::size_t most) : most_(most) {}

  // Calls `handle` on a new thread and then ends the connection; ends it at once if there are too many.
  void Serve(UniqueFd client, std::function<void(int client)> handle);
  // Waits until all have ended, at most until then.
  void AwaitEnd(std::chrono::steady_clock::time_point until);
  // Waits until all have ended.
  void Join() { connections_.clear(); }

 private:
  struct Connection {
    UniqueFd client{};
    std::atomic<bool> ended = false;
    std::jthread thread{};
  };

  const std::size_t most_;
  Mutex mutex_;
  std::condition_variable_any one_ended_;
  std::size_t active_ GUARDED_BY(mutex_) = 0;
  std::list<Connection> connections_;
};

}  // namespace reprise
