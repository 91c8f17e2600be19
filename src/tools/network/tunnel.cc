#include "tools/network/tunnel.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/logging.h"
#include "base/public_address.h"
#include "base/try.h"
#include "tools/network/listening_sockets.h"
#include "tools/shell/command_runner.h"

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
  MutexLock lock(mutex_);
  while (active_ > 0 && one_ended_.wait_until(lock, until) != std::cv_status::timeout) {
  }
}

namespace {

namespace fs = std::filesystem;

constexpr const char* kResolver = "/usr/bin/getent";
constexpr std::chrono::seconds kMaxResolving{10};
constexpr int kMaxConnectingMs = 15'000;

Error Unreachable(int error) {
  return MakeError(ErrorCode::kUnavailable, "it cannot be reached: " + std::generic_category().message(error));
}

const sockaddr* Raw(const Destination& destination) { return reinterpret_cast<const sockaddr*>(&destination.address); }

std::uint16_t PortOf(const Destination& destination) {
  return ntohs(destination.address.ss_family == AF_INET
                   ? reinterpret_cast<const sockaddr_in*>(&destination.address)->sin_port
                   : reinterpret_cast<const sockaddr_in6*>(&destination.address)->sin6_port);
}

// Whether it is an address of this machine: only those can be bound.
bool IsHere(Destination destination) {
  if (destination.address.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&destination.address)->sin_port = 0;
  } else {
    reinterpret_cast<sockaddr_in6*>(&destination.address)->sin6_port = 0;
  }
  const UniqueFd probe(::socket(destination.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return probe && ::bind(probe.get(), Raw(destination), destination.size) == 0;
}

// "0.0.0.0" and "::", which lead to this machine, and addresses of many machines.
bool IsNoHost(const Destination& destination) {
  if (destination.address.ss_family == AF_INET) {
    const std::uint32_t address = ntohl(reinterpret_cast<const sockaddr_in*>(&destination.address)->sin_addr.s_addr);
    return address >> 24 == 0 || address >> 28 >= 0xE;
  }
  const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(&destination.address)->sin6_addr;
  return IN6_IS_ADDR_UNSPECIFIED(&address) || IN6_IS_ADDR_MULTICAST(&address) || IN6_IS_ADDR_V4COMPAT(&address) ||
         IN6_IS_ADDR_V4MAPPED(&address);
}

// The sockets that listen at this port of the machine, as links in /proc name them.
std::set<std::string> ListenersAt(std::uint16_t port) {
  std::set<std::string> sockets;
  for (const ListeningSocket& each : ListeningSocketsHere()) {
    if (each.port == port) sockets.insert(each.name);
  }
  return sockets;
}

// Whether a process is this program, perhaps another version of it.
bool IsReprise(const fs::path& process) {
  std::error_code error;
  const std::string program = fs::read_symlink(process / "exe", error).filename().string();
  return program == "reprise" || program == "reprise (deleted)" ||
         process == fs::path("/proc") / std::to_string(::getpid());
}

bool LeadsToReprise(std::uint16_t port) {
  const std::set<std::string> listeners = ListenersAt(port);
  std::error_code error;
  for (auto at = fs::directory_iterator("/proc", error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.find_first_not_of("0123456789") != name.npos || !IsReprise(at->path())) continue;
    std::error_code closed;
    auto held = fs::directory_iterator(at->path() / "fd", closed);
    if (closed) return true;  // another user's server: it cannot be told which ports it has
    for (; !closed && held != fs::directory_iterator(); held.increment(closed)) {
      std::error_code gone;
      if (listeners.contains(fs::read_symlink(held->path(), gone).string())) return true;
    }
  }
  return false;
}

bool IsSameAddress(const Destination& a, const Destination& b) {
  return a.size == b.size && std::memcmp(&a.address, &b.address, a.size) == 0;
}

bool LeadsToClosed(const Destination& destination, const std::vector<HostPort>& closed, bool is_here,
                   const std::stop_token& stop) {
  for (const HostPort& endpoint : closed) {
    if (endpoint.port != PortOf(destination)) continue;
    const auto addresses = Resolve(endpoint, stop);
    if (!addresses) return true;  // it cannot be told
    for (const Destination& address : *addresses) {
      if (IsSameAddress(address, destination) || (is_here && IsHere(address))) return true;
    }
  }
  return false;
}

}  // namespace

Destination AddressOf(const std::string& text, std::uint16_t port) {
  Destination destination;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&destination.address, &v4, sizeof v4);
    destination.size = sizeof v4;
  } else if (::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    std::memcpy(&destination.address, &v6, sizeof v6);
    destination.size = sizeof v6;
  }
  return destination;
}

Result<std::vector<Destination>> Resolve(const HostPort& target, const std::stop_token& stop) {
  if (IsAddress(target.host)) return std::vector{AddressOf(target.host, target.port)};
  if (IsLocalName(target.host)) {
    return std::vector{AddressOf("127.0.0.1", target.port), AddressOf("::1", target.port)};
  }
  // A process of its own, because a resolver in this one cannot be stopped.
  const Command command{.argv = {kResolver, "ahosts", "--", target.host},
                        .environment = {"LC_ALL=C"},
                        .directory = "/",
                        .confined = true};
  const auto result = RunCommandOn({}, command, {.timeout = kMaxResolving}, stop);
  std::vector<Destination> found;
  std::istringstream lines(result ? result->output : std::string());
  for (std::string line; std::getline(lines, line);) {
    const Destination address = AddressOf(line.substr(0, line.find(' ')), target.port);
    if (address.size == 0 || line.find("STREAM") == line.npos) continue;
    found.push_back(address);
  }
  if (found.empty()) return Fail(ErrorCode::kUnavailable, "the name " + target.host + " has no address");
  return found;
}

std::string WhyClosed(const Destination& destination, const HostRules::Answer& rule,
                      const std::vector<HostPort>& closed, const std::stop_token& stop) {
  if (destination.size == 0 || IsNoHost(destination)) return "that is no address of one host";
  const bool is_here = IsHere(destination);
  if (is_here && LeadsToReprise(PortOf(destination))) return "a server of Reprise is there";
  if (LeadsToClosed(destination, closed, is_here, stop)) return "Reprise keeps its own data there";
  if (IsPublicAddress(Raw(destination), destination.size) && !is_here) return {};
  if (!rule.names_host) return "its address is private; a rule must name this very host";
  if (is_here && !rule.names_port) return "it is this machine; a rule must name host and port";
  return {};
}

Result<void> ConnectTo(int socket, const Destination& destination, int stop) {
  if (::connect(socket, Raw(destination), destination.size) != 0) {
    if (errno != EINPROGRESS) return Fail(Unreachable(errno));
    std::array<pollfd, 2> waits{{{socket, POLLOUT, 0}, {stop, POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), kMaxConnectingMs) <= 0 || waits[1].revents != 0)
      return Fail(Unreachable(ETIMEDOUT));
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return Fail(Unreachable(error));
  }
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return {};
}

Result<UniqueFd> Connect(const Destination& destination, int stop) {
  UniqueFd socket(::socket(destination.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Fail(Unreachable(errno));
  TRY(ConnectTo(socket.get(), destination, stop));
  return socket;
}

}  // namespace reprise
