#pragma once

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/system.h"
#include "reprise/result.h"
#include "tools/network/host_rules.h"

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
  Condition one_ended_;
  std::size_t active_ GUARDED_BY(mutex_) = 0;
  std::list<Connection> connections_;
};

// Where a target is, and the way there.
struct Destination {
  sockaddr_storage address{};
  socklen_t size = 0;
};

// An IP address; its size is 0 if the text is none.
Destination AddressOf(const std::string& text, std::uint16_t port);

// The addresses of a target, as this machine resolves its name. "localhost" is loopback, whatever the resolver says.
// Blocks; ends when `stop` is requested. kUnavailable if there are none.
Result<std::vector<Destination>> Resolve(const HostPort& target, const std::stop_token& stop);

// Why nothing may go to this address, whatever the name; empty if it may. A private address needs a rule with the
// host's own name, one of this machine also the port. `closed` are endpoints that no rule opens. No rule opens a server
// of Reprise on this machine, at whatever address and port.
std::string WhyClosed(const Destination& destination, const HostRules::Answer& rule,
                      const std::vector<HostPort>& closed, const std::stop_token& stop);

// Connects a socket of the address's family that never blocks. kUnavailable; also if `stop`, a descriptor, becomes
// readable first.
Result<void> ConnectTo(int socket, const Destination& destination, int stop);

// A connection to the address. kUnavailable; also if `stop` is requested first.
Result<UniqueFd> Connect(const Destination& destination, int stop);

}  // namespace reprise
