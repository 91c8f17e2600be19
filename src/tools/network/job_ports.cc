#include "tools/network/job_ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "base/peer_users.h"
#include "base/system.h"
#include "process/listeners.h"
#include "tools/network/listening_sockets.h"
#include "tools/network/tunnel.h"

namespace reprise {

namespace {

constexpr std::size_t kMostPorts = 64, kMostOpen = 8;
constexpr std::chrono::seconds kPeace{1};

Error NotListening(std::uint16_t port) {
  return Refused(Reason::kNotListening, "the job does not listen on port " + std::to_string(port));
}

std::string UrlOf(const std::string& address, std::uint16_t port) {
  const bool is_v6 = address.find(':') != address.npos;
  return "http://" + (is_v6 ? "[" + address + "]" : address) + ":" + std::to_string(port) + "/";
}

// An address of its own for each job: no cookie of this server is sent there, and none of another job.
std::string RandomLoopback(const std::string& own_host) {
  std::string address;
  do {
    std::array<unsigned char, 3> random{};
    FillRandom(random.data(), random.size());
    constexpr int kFirst = 64, kHalf = 64, kHosts = 254;
    address = "127." + std::to_string(kFirst + random[0] % kHalf) + "." + std::to_string(random[1]) + "." +
              std::to_string(1 + random[2] % kHosts);
  } while (address == own_host);
  return address;
}

// No descriptor: it cannot be bound.
UniqueFd ListenAt(const std::string& address, std::uint16_t port) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);  // connections of an earlier one may linger
  const Destination place = AddressOf(address, port);
  const bool ok = listener &&
                  ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&place.address), place.size) == 0 &&
                  ::listen(listener.get(), SOMAXCONN) == 0;
  return ok ? std::move(listener) : UniqueFd();
}

std::uint16_t PortOf(int listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

void Add(const ListeningSocket& socket, std::map<std::uint16_t, JobPort>& ports) {
  JobPort& port = ports[socket.port];
  port.port = socket.port;
  const bool is_known = std::ranges::find(port.addresses, socket.address) != port.addresses.end();
  if (!is_known && port.addresses.size() < kMostPorts) port.addresses.push_back(socket.address);
}

std::vector<JobPort> FirstOf(std::map<std::uint16_t, JobPort> ports) {
  std::vector<JobPort> list;
  for (auto& [number, port] : ports) {
    if (list.size() < kMostPorts || port.state == JobPort::State::kOpen) list.push_back(std::move(port));
  }
  return list;
}

}  // namespace

// --- in the sandbox --------------------------------------------------------------------------------------------------

// An open port with its thread.
class SandboxPorts::Opened {
 public:
  Opened(InnerNetwork& network, UniqueFd listener, std::string url, std::uint16_t port)
      : network_(network),
        port_(port),
        url_(std::move(url)),
        listener_(std::move(listener)),
        stopped_(stop_.get_token()) {
    thread_ = std::jthread([this] { Serve(); });
  }
  ~Opened() { stop_.request_stop(); }

  const std::string& url() const { return url_; }
  void AwaitEnd(std::chrono::steady_clock::time_point until) { connections_.AwaitEnd(until); }

 private:
  void Serve() {
    std::array<pollfd, 2> waits{{{listener_.get(), POLLIN, 0}, {stopped_.fd(), POLLIN, 0}}};
    for (;;) {
      if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) break;
      if (waits[1].revents != 0) break;
      if (waits[0].revents == 0) continue;
      UniqueFd client = AcceptClient(listener_.get(), stopped_.fd());
      // Other users of this machine reach loopback, too.
      if (!client || users_.Identify(client.get()) != Peer::kTrusted) continue;
      connections_.Serve(std::move(client), [this](int fd) { Lead(fd); });
    }
    connections_.Join();
  }
  void Lead(int client) {
    auto way = network_.Connect(port_, stopped_.fd());
    if (!way) return;
    PassBothWays(client, way->used, stopped_.fd());
    network_.GiveBack(*std::move(way), stopped_.fd());
  }

  InnerNetwork& network_;
  const std::uint16_t port_;
  const std::string url_;
  const UniqueFd listener_;
  std::stop_source stop_;
  StopEvent stopped_;
  PeerUsers users_;
  ConnectionThreads connections_{kMaxWaysIn};
  std::jthread thread_;  // last: it uses all others
};

SandboxPorts::SandboxPorts(std::string own_host, std::vector<std::uint16_t> taken)
    : address_(RandomLoopback(own_host)), taken_(std::move(taken)) {}

SandboxPorts::~SandboxPorts() { End(/*in_peace=*/false); }

void SandboxPorts::End(bool in_peace) {
  std::map<std::uint16_t, std::unique_ptr<Opened>> opened;
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    opened = std::move(opened_);
    opened_.clear();
  }
  const auto until = std::chrono::steady_clock::now() + kPeace;
  for (const auto& [port, each] : opened) {
    if (in_peace) each->AwaitEnd(until);
  }
  opened.clear();  // their connections use the network
  network_.End();
}

std::map<std::uint16_t, JobPort> SandboxPorts::Listening() const {
  std::map<std::uint16_t, JobPort> ports;
  for (const ListeningSocket& each : network_.Listening()) {
    const bool is_ours = each.address == "127.0.0.1" && std::ranges::find(taken_, each.port) != taken_.end();
    if (!is_ours) Add(each, ports);
  }
  return ports;
}

std::vector<JobPort> SandboxPorts::List() const {
  std::map<std::uint16_t, JobPort> ports = Listening();
  const MutexLock lock(mutex_);
  if (ended_) return {};
  for (const auto& [number, opened] : opened_) {
    JobPort& port = ports[number];
    port.port = number;
    port.state = JobPort::State::kOpen;
    port.url = opened->url();
  }
  return FirstOf(std::move(ports));
}

Result<JobPort> SandboxPorts::Open(std::uint16_t port) {
  std::map<std::uint16_t, JobPort> ports = Listening();
  const auto found = ports.find(port);
  const MutexLock lock(mutex_);
  if (ended_) return Fail(Reason::kNotListening, "the job has ended");
  if (found == ports.end()) return Fail(NotListening(port));
  auto& opened = opened_[port];
  if (!opened) {
    const auto refuse = [&](Reason reason, std::string why) {
      opened_.erase(port);
      return Fail(reason, std::move(why));
    };
    if (opened_.size() > kMostOpen) return refuse(Reason::kTooManyPorts, "the job has 8 open ports, close one first");
    UniqueFd listener = ListenAt(address_, port);
    if (!listener) listener = ListenAt(address_, 0);  // the number is taken, or too low
    if (!listener) return refuse(Reason::kUnavailable, "the system opens no port at " + address_);
    std::string url = UrlOf(address_, PortOf(listener.get()));
    try {
      opened = std::make_unique<Opened>(network_, std::move(listener), std::move(url), port);
    } catch (const std::system_error&) {
      return refuse(Reason::kUnavailable, "the system has no thread left to open a port");
    }
  }
  found->second.state = JobPort::State::kOpen;
  found->second.url = opened->url();
  return std::move(found->second);
}

bool SandboxPorts::Close(std::uint16_t port) {
  std::unique_ptr<Opened> closed;  // destroyed without the lock, because it waits for its threads
  const MutexLock lock(mutex_);
  const auto found = opened_.find(port);
  if (found == opened_.end()) return false;
  closed = std::move(found->second);
  opened_.erase(found);
  return true;
}

// --- without a sandbox -----------------------------------------------------------------------------------------------

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxProcesses = 4096;

std::vector<pid_t> ProcessesBelow(pid_t supervisor) {
  std::vector<pid_t> all{supervisor};
  for (std::size_t i = 0; i < all.size() && all.size() < kMaxProcesses; ++i) {
    std::error_code gone;
    for (auto task = fs::directory_iterator("/proc/" + std::to_string(all[i]) + "/task", gone);
         !gone && task != fs::directory_iterator(); task.increment(gone)) {
      std::ifstream children(task->path() / "children");
      for (pid_t child = 0; children >> child;) all.push_back(child);
    }
  }
  all.erase(all.begin());
  return all;
}

std::set<std::string> SocketsOf(const std::vector<pid_t>& processes) {
  std::set<std::string> sockets;
  for (const pid_t process : processes) {
    std::error_code gone;
    for (auto held = fs::directory_iterator("/proc/" + std::to_string(process) + "/fd", gone);
         !gone && held != fs::directory_iterator(); held.increment(gone)) {
      std::error_code closed;
      std::string name = fs::read_symlink(held->path(), closed).string();
      if (name.starts_with("socket:")) sockets.insert(std::move(name));
    }
  }
  return sockets;
}

}  // namespace

MachinePorts::MachinePorts(const std::string& own_host) : address_(RandomLoopback(own_host)) {}

std::vector<JobPort> MachinePorts::List() const {
  const pid_t supervisor = supervisor_;
  if (supervisor == 0) return {};
  const std::set<std::string> sockets = SocketsOf(ProcessesBelow(supervisor));
  std::map<std::uint16_t, JobPort> ports;
  if (!sockets.empty()) {
    for (const ListeningSocket& each : ListeningSocketsHere()) {
      if (sockets.contains(each.name)) Add(each, ports);
    }
  }
  for (auto& [number, port] : ports) {
    port.state = JobPort::State::kOutside;
    // Cookies of this server go to every port of its address, so a link leads to another one, if the job listens there.
    const bool is_everywhere =
        std::ranges::any_of(port.addresses, [](const std::string& each) { return each == "0.0.0.0" || each == "::"; });
    if (is_everywhere) port.url = UrlOf(address_, number);
  }
  return FirstOf(std::move(ports));
}

Result<JobPort> MachinePorts::Open(std::uint16_t port) {
  for (JobPort& each : List()) {
    if (each.port == port) return std::move(each);
  }
  return Fail(NotListening(port));
}

bool MachinePorts::Close(std::uint16_t /*port*/) { return false; }

}  // namespace reprise
