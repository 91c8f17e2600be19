#include "wire/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <new>
#include <unordered_map>
#include <utility>

#include "base/logging.h"
#include "base/mutex.h"
#include "base/try.h"
#include "wire/connection.h"
#include "wire/threads.h"

namespace reprise {

namespace {

constexpr int kBacklog = 4096;  // with a short one, a burst of clients would wait for seconds
// How much the kernel may hold for a client that does not read (it doubles this).
constexpr int kSendBuffer = 128 * 1024;
// The share of each person (see WorkerPool).
constexpr std::size_t kWorkThreads = 4, kControlThreads = 2, kRemoteThreads = 1, kFileThreads = 4;
// So many connections beyond the limit are answered with 503; the rest are just closed.
constexpr std::size_t kMaxRefusals = 64;
constexpr std::chrono::milliseconds kLongestTick{500};

// An address as bind takes it.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  static std::optional<Address> Parse(const std::string& host, int port) {
    Address address;
    auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
    if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
      v4.sin_family = AF_INET;
      v4.sin_port = htons(static_cast<std::uint16_t>(port));
      address.size = sizeof v4;
      return address;
    }
    if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(static_cast<std::uint16_t>(port));
      address.size = sizeof v6;
      return address;
    }
    return std::nullopt;
  }
  bool is_v6() const { return storage.ss_family == AF_INET6; }
  bool is_v4() const { return storage.ss_family == AF_INET; }
  int port() const {
    return ntohs(is_v6() ? reinterpret_cast<const sockaddr_in6&>(storage).sin6_port
                         : reinterpret_cast<const sockaddr_in&>(storage).sin_port);
  }
  std::string text() const {
    char buffer[INET6_ADDRSTRLEN] = {};
    const void* bytes = is_v6() ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr)
                                : &reinterpret_cast<const sockaddr_in&>(storage).sin_addr;
    return ::inet_ntop(storage.ss_family, bytes, buffer, sizeof buffer) == nullptr ? "" : buffer;
  }
  bool is_loopback() const {
    if (is_v6()) return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr);
    return (ntohl(reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr) >> 24) == 127;
  }
};

void SetOption(int fd, int level, int option, int value) {
  if (::setsockopt(fd, level, option, &value, sizeof value) != 0) {
    LogWarning("socket option refused", {{"option", option}, {"detail", std::strerror(errno)}});
  }
}

Error ListenError(int error) {
  if (error == EADDRINUSE) {
    return Refused(Reason::kAddressInUse, "another program listens on this port already");
  }
  return MakeError(ErrorCode::kIo, "cannot listen on this address", std::strerror(error));
}

// Accepted sockets inherit these.
void SetOptionsOfAccepted(int fd) {
  SetOption(fd, SOL_SOCKET, SO_SNDBUF, kSendBuffer);
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

// Opens a listening socket. Not with SO_REUSEPORT, because then a second server would share the port silently.
Result<UniqueFd> Listen(const Address& address) {
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return Fail(ListenError(errno));
  SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  SetOptionsOfAccepted(fd.get());
  if (address.is_v6()) SetOption(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return Fail(ListenError(errno));
  }
  return fd;
}

// The address to which a socket is bound; all zero if that fails.
Address AddressOf(int fd) {
  Address address;
  address.size = sizeof address.storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) return {};
  return address;
}

bool HasV6Loopback() {
  const auto address = Address::Parse("::1", 0);
  const UniqueFd probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return probe.get() >= 0 &&
         ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address->storage), address->size) == 0;
}

struct Listeners {
  std::vector<UniqueFd> sockets;
  std::vector<std::string> hosts;  // their addresses
  int port = 0;
};

// Listens on `host`, and for 127.0.0.1 also on ::1, because "localhost" may resolve to either.
Result<Listeners> ListenOn(const std::string& host, int port) {
  const bool both = host == "127.0.0.1" && HasV6Loopback();
  constexpr int kAttempts = 16;  // a port that is free on one address may be taken on the other
  for (int attempt = 1;; ++attempt) {
    Listeners listeners;
    auto first = TRY(Listen(*Address::Parse(host, port)));
    listeners.port = AddressOf(first.get()).port();
    listeners.hosts.push_back(host);
    listeners.sockets.push_back(std::move(first));
    if (!both) return listeners;
    auto second = Listen(*Address::Parse("::1", listeners.port));
    if (second) {
      listeners.hosts.emplace_back("::1");
      listeners.sockets.push_back(std::move(*second));
      return listeners;
    }
    if (port != 0 || attempt == kAttempts) return Fail(std::move(second.error()));
  }
}

Result<Listeners> Bind(const HttpOptions& options) {
  const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
  const auto address = Address::Parse(host, 0);
  if (!address) return Fail(ErrorCode::kInvalidArgument, "the host to listen on must be an IP address");
  if (options.port < 0 || options.port > 65'535)
    return Fail(ErrorCode::kInvalidArgument, "the port must be 0 to 65535");
  if (!address->is_loopback() && !options.token && !options.people) {
    return Fail(ErrorCode::kInvalidArgument, "listening on anything but loopback needs a token");
  }
  return ListenOn(host, options.port);
}

// Takes over sockets on which a service manager listens already.
Result<Listeners> Adopt(std::vector<UniqueFd> sockets, bool has_token) {
  Listeners listeners;
  for (UniqueFd& socket : sockets) {
    const std::string name = "the socket that was handed over (descriptor " + std::to_string(socket.get()) + ")";
    const auto is = [&socket](int option) {
      int value = 0;
      socklen_t size = sizeof value;
      return ::getsockopt(socket.get(), SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
    };
    const Address address = AddressOf(socket.get());
    if (is(SO_TYPE) != SOCK_STREAM || is(SO_ACCEPTCONN) != 1 || !(address.is_v4() || address.is_v6())) {
      return Fail(ErrorCode::kInvalidArgument, name + " is not a TCP socket that listens");
    }
    if (!address.is_loopback() && !has_token) {
      return Fail(ErrorCode::kInvalidArgument,
                  name + " listens on " + address.text() + ", which is not loopback: that needs a token");
    }
    if (!listeners.sockets.empty() && address.port() != listeners.port) {
      return Fail(ErrorCode::kInvalidArgument, name + " has another port than the first one");
    }
    const int flags = ::fcntl(socket.get(), F_GETFL);
    if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0 ||
        ::listen(socket.get(), kBacklog) != 0) {  // its queue may be shorter
      return Fail(ListenError(errno));
    }
    SetOptionsOfAccepted(socket.get());
    listeners.port = address.port();
    listeners.hosts.push_back(address.text());
    listeners.sockets.push_back(std::move(socket));
  }
  return listeners;
}

// Raises the limit on descriptors to the hard limit and returns it.
std::size_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return static_cast<std::size_t>(::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : before);
}

std::vector<std::string> InUrls(std::vector<std::string> hosts) {
  for (std::string& host : hosts) {
    if (host.find(':') != std::string::npos) host = "[" + host + "]";
  }
  return hosts;
}

bool IsAnyAddress(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

}  // namespace

// HttpServer ends the threads (Stop) before any member is destroyed. Members from peers_ on belong to the loop's
// thread; the sockets among them come after loop_, because they must be destroyed before it.
class HttpServer::Impl {
 public:
  Impl(HttpOptions options, const MakeSite& make_site, Listeners listeners)
      : options_(std::move(options)),
        host_(listeners.hosts.front()),
        port_(listeners.port),
        gate_({.port = port_,
               .hosts = InUrls(listeners.hosts),
               .any_address = std::ranges::any_of(listeners.hosts, IsAnyAddress),
               .public_hosts = options_.public_hosts,
               .token = options_.token,
               .people = options_.people}),
        site_(make_site(gate_, metrics_)),
        max_connections_(std::min(options_.max_connections, RaiseDescriptorLimit() * 3 / 5)),
        shared_{.options = options_,
                .gate = gate_,
                .site = *site_,
                .loop = loop_,
                .work = work_,
                .control = control_,
                .remote = remote_,
                .files = options_.files_in_bucket ? files_ : work_,
                .upload_bytes = upload_bytes_,
                .metrics = metrics_,
                .stopping = stopping_,
                .closed = [this](Connection* connection) { Forget(connection); }},
        work_(kWorkThreads),
        control_(kControlThreads),
        remote_(kRemoteThreads),
        files_(options_.files_in_bucket ? kFileThreads : 0) {
    for (UniqueFd& socket : listeners.sockets) {
      listeners_.push_back(std::make_unique<IoLoop::Socket>(loop_, socket.Release()));
    }
  }

  void Start() {
    loop_.Post([this] {
      for (const auto& listener : listeners_) WantAccept(*listener);
    });
    loop_.Start();
    site_->TakeUp();
  }

  const std::string& host() const { return host_; }
  int port() const { return port_; }
  std::size_t connections() const { return static_cast<std::size_t>(std::max<std::int64_t>(0, metrics_.connections)); }

  std::vector<Metric> CollectMetrics() const { return site_->CollectMetrics(); }

  bool CloseIfUnused() {
    std::promise<bool> closed;
    loop_.Post([&] {
      // The kernel refuses a client whose connection was not accepted yet. Nothing it sent has been read.
      const bool is_unused = connections_.empty() && !stopping_.exchange(true);
      if (is_unused) EndAccepting();
      closed.set_value(is_unused);
    });
    return closed.get_future().get();
  }

  void BeginStop() {
    if (stopping_.exchange(true)) return;
    loop_.Post([this] {
      EndAccepting();
      ForEachConnection([](Connection& connection) { connection.BeginStop(); });
    });
  }

  void StopSite() { site_->Stop(); }

  void Stop() {
    BeginStop();
    const MutexLock stop_lock(stop_mutex_);
    if (std::exchange(stopped_, true)) return;
    site_->Stop();
    loop_.Post([this] { ForEachConnection([](Connection& connection) { connection.EndIfReading(); }); });
    MutexLock lock(mutex_);
    changed_.wait_for(lock, options_.stop_timeout,
                      [this]() REQUIRES(mutex_) { return accepting_ended_ && open_ == 0; });
    lock.unlock();
    if (options_.people) options_.people->Stop();  // its last results are posted before the connections close
    loop_.Post([this] { ForEachConnection([](Connection& connection) { connection.Close(); }); });
    lock.lock();
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return accepting_ended_ && open_ == 0; });
    lock.unlock();
    // The last handlers find their connections closed.
    work_.Join();
    control_.Join();
    remote_.Join();
    files_.Join();
    loop_.Stop();
  }

 private:
  void EndAccepting() {
    for (const auto& listener : listeners_) listener->Close();
    const MutexLock lock(mutex_);
    accepting_ended_ = true;
    changed_.notify_all();
  }

  void WantAccept(IoLoop::Socket& listener) {
    listener.WhenReadable([this, &listener] { Accept(listener); });
  }

  void Accept(IoLoop::Socket& listener) {
    // Accepts a few at a time, so that a flood of new clients does not delay the others.
    for (int i = 0; i < 64 && listener.fd() >= 0; ++i) {
      UniqueFd fd(::accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (fd.get() >= 0) {
        try {
          Admit(std::move(fd));
        } catch (const std::bad_alloc&) {
          LogWarning("a connection was dropped: out of memory", {});
        }
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        accept_again_.push_back(&listener);  // tries again at the next tick; at once it would only fail again
        EnsureTick();
        return;
      }
    }
    if (listener.fd() >= 0) WantAccept(listener);
  }

  void Admit(UniqueFd fd) {
    const bool full = connections_.size() >= max_connections_;
    if (full && connections_.size() >= max_connections_ + kMaxRefusals) return;
    const Peer peer = peers_.Identify(fd.get());
    auto connection = std::make_shared<Connection>(shared_, fd.Release(), peer);
    connections_.emplace(connection.get(), connection);
    {
      const MutexLock lock(mutex_);
      ++open_;
    }
    EnsureTick();
    full ? connection->Refuse() : connection->Begin();
  }

  void Forget(Connection* connection) {
    if (connections_.erase(connection) == 0) return;
    const MutexLock lock(mutex_);
    if (--open_ == 0) changed_.notify_all();
  }

  template <typename Use>
  void ForEachConnection(Use use) {
    std::vector<std::shared_ptr<Connection>> all;  // a copy, because closing a connection removes it from the map
    all.reserve(connections_.size());
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    for (const auto& connection : all) use(*connection);
  }

  // One coarse timer checks the time limits of all connections, so a request or event costs no timer. It stops while
  // there is no connection.
  void EnsureTick() {
    if (std::exchange(ticking_, true)) return;
    const auto shortest = std::min({options_.header_timeout, options_.body_timeout, options_.idle_timeout,
                                    options_.stall_timeout, options_.heartbeat});
    const auto period = std::clamp(shortest / 8, std::chrono::milliseconds(5), kLongestTick);
    loop_.After(period, [this] { Tick(); });
  }

  void Tick() {
    ticking_ = false;
    const auto now = Connection::Clock::now();
    if (options_.people) options_.people->Refresh();
    try {
      ForEachConnection([now](Connection& connection) { connection.OnTick(now); });
    } catch (const std::bad_alloc&) {  // tries again at the next tick
    }
    for (IoLoop::Socket* listener : std::exchange(accept_again_, {})) {
      if (listener->fd() >= 0) WantAccept(*listener);
    }
    if (!connections_.empty()) EnsureTick();
  }

  const HttpOptions options_;
  const std::string host_;
  const int port_;
  const Gate gate_;
  HttpMetrics metrics_;
  const std::unique_ptr<Site> site_;
  const std::size_t max_connections_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> upload_bytes_{0};

  Mutex mutex_;
  Condition changed_;
  std::size_t open_ GUARDED_BY(mutex_) = 0;
  bool accepting_ended_ GUARDED_BY(mutex_) = false;
  Mutex stop_mutex_;
  bool stopped_ GUARDED_BY(stop_mutex_) = false;

  Connection::Shared shared_;  // before loop_, whose last tasks may hold connections when it is destroyed
  IoLoop loop_;
  WorkerPool work_, control_, remote_, files_;

  PeerUsers peers_;
  std::vector<std::unique_ptr<IoLoop::Socket>> listeners_;
  std::vector<IoLoop::Socket*> accept_again_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  bool ticking_ = false;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() { Stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::Open(HttpOptions options, const MakeSite& make_site,
                                                     std::vector<UniqueFd> sockets) {
  if (options.token && options.token->empty()) return Fail(ErrorCode::kInvalidArgument, "the token is empty");
  auto listeners = TRY(sockets.empty() ? Bind(options) : Adopt(std::move(sockets), options.token || options.people));
  auto impl = std::make_unique<Impl>(std::move(options), make_site, std::move(listeners));
  impl->Start();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

const std::string& HttpServer::host() const { return impl_->host(); }
int HttpServer::port() const { return impl_->port(); }
std::size_t HttpServer::connections() const { return impl_->connections(); }
bool HttpServer::CloseIfUnused() { return impl_->CloseIfUnused(); }
void HttpServer::StopSite() { impl_->StopSite(); }
std::vector<Metric> HttpServer::CollectMetrics() const { return impl_->CollectMetrics(); }
void HttpServer::BeginStop() { impl_->BeginStop(); }
void HttpServer::Stop() { impl_->Stop(); }

}  // namespace reprise
