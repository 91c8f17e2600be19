#include "tools/network/inner_network.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <utility>

#include "process/listeners.h"
#include "tools/network/tunnel.h"

namespace reprise {

namespace {

constexpr std::size_t kMaxList = 512 * 1024;
constexpr int kLookAgainMs = 10, kMaxLooks = 500;

// A connected socket is free again, in the same network.
bool Disconnect(int socket) {
  const sockaddr nowhere{.sa_family = AF_UNSPEC, .sa_data = {}};
  return ::connect(socket, &nowhere, sizeof nowhere) == 0;
}

// Disconnecting drops what has not arrived, and the kernel does not tell when it has.
void AwaitArrival(int socket, int stop) {
  int left = 0;
  for (int i = 0; i < kMaxLooks && ::ioctl(socket, SIOCOUTQ, &left) == 0 && left > 0; ++i) {
    pollfd wait{stop, POLLIN, 0};
    if (::poll(&wait, 1, kLookAgainMs) != 0) return;
  }
}

std::string ReachableFrom(const std::string& address) {
  return address == "0.0.0.0" ? "127.0.0.1" : address == "::" ? "::1" : address;
}

}  // namespace

InnerNetwork::InnerNetwork() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
  inner_ = UniqueFd(ends[0]);
  outer_ = UniqueFd(ends[1]);
}

void InnerNetwork::TakeLists() {
  if (lists_.empty()) lists_ = TakeWayIn(outer_.get());
}

void InnerNetwork::End() {
  const MutexLock lock(mutex_);
  inner_.Reset();
  outer_.Reset();
  lists_.clear();
  free_.clear();
}

std::vector<ListeningSocket> InnerNetwork::Listening() {
  const MutexLock lock(mutex_);
  TakeLists();
  std::vector<ListeningSocket> all;
  for (const UniqueFd& list : lists_) {
    for (ListeningSocket& each : ListeningSocketsIn(list.get(), kMaxList)) all.push_back(std::move(each));
  }
  return all;
}

Result<InnerNetwork::Way> InnerNetwork::Connect(std::uint16_t port, int stop) {
  const std::vector<ListeningSocket> listening = Listening();  // the lists come before the ways
  Way way;
  {
    const MutexLock lock(mutex_);
    if (!free_.empty()) {
      way = std::move(free_.back());
      free_.pop_back();
    } else {
      std::vector<UniqueFd> sockets = TakeWayIn(outer_.get());
      if (lists_.empty() || sockets.empty()) {
        return Fail(ErrorCode::kUnavailable, "there are too many connections to this job");
      }
      way.v4 = std::move(sockets.front());
      if (sockets.size() > 1) way.v6 = std::move(sockets.back());
    }
  }
  for (const ListeningSocket& each : listening) {
    if (each.port != port) continue;
    const Destination there = AddressOf(ReachableFrom(each.address), port);
    const int socket = (there.address.ss_family == AF_INET ? way.v4 : way.v6).get();
    if (socket < 0) continue;
    if (ConnectTo(socket, there, stop)) {
      way.used = socket;
      return way;
    }
    Disconnect(socket);
  }
  const MutexLock lock(mutex_);
  free_.push_back(std::move(way));
  return Fail(Reason::kNotListening, "the job does not listen on port " + std::to_string(port));
}

void InnerNetwork::GiveBack(Way way, int stop) {
  AwaitArrival(way.used, stop);
  if (!Disconnect(std::exchange(way.used, -1))) return;
  const MutexLock lock(mutex_);
  free_.push_back(std::move(way));
}

}  // namespace reprise
