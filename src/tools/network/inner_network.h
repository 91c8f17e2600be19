#pragma once

#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "base/system.h"
#include "reprise/result.h"
#include "tools/network/listening_sockets.h"

namespace reprise {

// The network of a sandbox as its maker sees it, by ways in (process/listeners.h). Thread-safe.
class InnerNetwork {
 public:
  InnerNetwork();

  // The Unix socket for the sandbox; close it with ForgetInner once the command has it.
  int inner_socket() const { return inner_.get(); }
  void ForgetInner() { inner_.Reset(); }

  // Ends all ways in, and lets the network go. Nothing is found there afterwards.
  void End();

  // What listens there, as far as the first thousands of them.
  std::vector<ListeningSocket> Listening();

  // A connection that keeps one of the ways in, kMaxWaysIn in all, until GiveBack.
  struct Way {
    UniqueFd v4{}, v6{};
    int used = -1;
  };
  // Connects to a port there. kUnavailable; also if `stop`, a descriptor, becomes readable first.
  Result<Way> Connect(std::uint16_t port, int stop);
  // Ends the connection. What it has sent is delivered first, if the receiver reads.
  void GiveBack(Way way, int stop);

 private:
  void TakeLists() REQUIRES(mutex_);

  UniqueFd inner_, outer_;
  Mutex mutex_;
  std::vector<UniqueFd> lists_ GUARDED_BY(mutex_);
  std::vector<Way> free_ GUARDED_BY(mutex_);
};

}  // namespace reprise
