#include "tools/network/tunnel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/logging.h"

namespace reprise {

namespace {

constexpr int kPipeBytes = 1024 * 1024;

// One direction of a tunnel. The bytes stay in the kernel.
class Flow {
 public:
  Flow(int from, int to) : from_(from), to_(to) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
    out_ = UniqueFd(ends[0]);
    in_ = UniqueFd(ends[1]);
    ::fcntl(in_.get(), F_SETPIPE_SZ, kPipeBytes);  // a smaller one works too
  }
  bool ok() const { return static_cast<bool>(in_) && !broken_; }
  bool has_ended() const { return ended_ && held_ == 0; }
  std::uint64_t total() const { return total_; }
  // The descriptor that this waits for; -1: none.
  pollfd Awaited() const {
    if (held_ > 0) return {to_, POLLOUT, 0};
    return {ended_ ? -1 : from_, POLLIN, 0};
  }
  void Move() {
    for (bool moves = true; moves && ok();) {
      moves = false;
      if (!ended_) {
        const ssize_t got = ::splice(from_, nullptr, in_.get(), nullptr, kPipeBytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (got > 0) held_ += static_cast<std::size_t>(got);
        moves = got > 0;
        if (got == 0) ended_ = true;
        if (got < 0) broken_ = errno != EAGAIN && errno != EINTR;
      }
      if (held_ > 0) {
        const ssize_t sent = ::splice(out_.get(), nullptr, to_, nullptr, held_, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (sent > 0) held_ -= static_cast<std::size_t>(sent), total_ += static_cast<std::uint64_t>(sent), moves = true;
        if (sent < 0) broken_ = errno != EAGAIN && errno != EINTR;
      }
    }
    if (has_ended() && !std::exchange(told_, true)) ::shutdown(to_, SHUT_WR);
  }

 private:
  const int from_, to_;
  UniqueFd in_, out_;
  std::size_t held_ = 0;  // bytes in the pipe
  std::uint64_t total_ = 0;
  bool ended_ = false, told_ = false, broken_ = false;
};

}  // namespace

Passed PassBothWays(int client, int server, int stop) {
  Flow there(client, server), back(server, client);
  while (there.ok() && back.ok()) {
    there.Move();
    back.Move();
    if (there.has_ended() && back.has_ended()) break;
    std::array<pollfd, 3> waits{there.Awaited(), back.Awaited(), {stop, POLLIN, 0}};
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) break;
    if (waits[2].revents != 0) break;
  }
  return {there.total(), back.total()};
}

UniqueFd AcceptClient(int listener, int stop) {
  constexpr int kPauseMs = 100;
  UniqueFd client(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  pollfd wait{stop, POLLIN, 0};
  if (!client && errno != EAGAIN && errno != ECONNABORTED) ::poll(&wait, 1, kPauseMs);
  return client;
}

void ConnectionThreads::Serve(UniqueFd client, std::function<void(int client)> handle) {
  connections_.remove_if([](const Connection& each) { return each.ended.load(); });
  if (connections_.size() >= most_) return;
  Connection& connection = connections_.emplace_back();
  connection.client = std::move(client);
  const auto count = [this](bool begins) {
    const MutexLock lock(mutex_);
    begins ? ++active_ : --active_;
    one_ended_.notify_all();
  };
  count(true);
  try {
    connection.thread = std::jthread([count, &connection, handle = std::move(handle)] {
      handle(connection.client.get());
      ::shutdown(connection.client.get(), SHUT_RDWR);
      count(false);
      connection.ended = true;
    });
  } catch (const std::system_error& error) {
    LogWarning("the system has no thread for a connection of a command", {{"detail", error.what()}});
    count(false);
    connections_.pop_back();
  }
}

void ConnectionThreads::AwaitEnd(std::chrono::steady_clock::time_point until) {
  const MutexLock lock(mutex_);
  while (active_ > 0 && one_ended_.wait_until(mutex_, until) != std::cv_status::timeout) {
  }
}

}  // namespace reprise
