#include "tools/network/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/try.h"
#include "process/listeners.h"
#include "tools/network/handshakes.h"

namespace reprise {

namespace {

constexpr std::size_t kMaxRefused = 20, kMaxHosts = 1000, kMaxAsked = 20;
constexpr std::uint16_t kFirstUnprivileged = 1024;
constexpr int kMaxHandshakeMs = 30'000;
constexpr std::size_t kBuffer = 16 * 1024;

void NeverBlock(int fd) { ::fcntl(fd, F_SETFL, O_NONBLOCK); }

bool SendAll(int to, std::string_view bytes, int stop) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return false;
    std::array<pollfd, 2> waits{{{to, POLLOUT, 0}, {stop, POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return false;
    if (waits[1].revents != 0) return false;
  }
  return true;
}

// Appends what has come. False at the end.
bool Receive(int from, std::string& bytes) {
  std::array<char, kBuffer> buffer;
  const ssize_t got = ::recv(from, buffer.data(), buffer.size(), 0);
  if (got > 0) bytes.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

std::string HttpRefusal(std::string_view status, const std::string& why) {
  const std::string text = "Reprise: " + why + "\n";
  return "HTTP/1.1 " + std::string(status) +
         "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " + std::to_string(text.size()) +
         "\r\nConnection: close\r\n\r\n" + text;
}

}  // namespace

NetworkRelay::NetworkRelay(std::shared_ptr<const Options> options)
    : options_(std::move(options)), stopped_(stop_.get_token()), ports_{kProxyPort} {
  for (const std::uint16_t port : options_->rules.LoopbackPorts()) {
    const bool is_new = std::ranges::find(ports_, port) == ports_.end();
    // The others are reached through the proxy alone.
    if (is_new && port >= kFirstUnprivileged && ports_.size() < kMaxListeners) ports_.push_back(port);
  }
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
  inner_ = UniqueFd(ends[0]);
  outer_ = UniqueFd(ends[1]);
}

NetworkRelay::~NetworkRelay() { static_cast<void>(Finish()); }

void NetworkRelay::Begin(const std::stop_token& stop, Ask ask) {
  ask_ = std::move(ask);
  outer_stop_.emplace(stop, [this] { stop_.request_stop(); });
  inner_.Reset();
  thread_ = std::jthread([this] { Serve(); });
}

NetworkRelay::Report NetworkRelay::Finish() {
  stop_.request_stop();
  if (thread_.joinable()) thread_.join();
  connections_.Join();
  const MutexLock lock(mutex_);
  Report report;
  for (auto& [name, use] : uses_) report.uses.push_back(use);
  report.refused.assign(refused_.begin(), refused_.end());
  return report;
}

void NetworkRelay::Serve() {
  const auto listeners = TakeListeners(outer_.get(), ports_.size(), stopped_.fd());
  if (!listeners) return;
  std::vector<pollfd> waits;
  for (const UniqueFd& listener : *listeners) {
    NeverBlock(listener.get());
    waits.push_back({listener.get(), POLLIN, 0});
  }
  waits.push_back({stopped_.fd(), POLLIN, 0});
  for (;;) {
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
    if (waits.back().revents != 0) return;
    for (std::size_t i = 0; i < listeners->size(); ++i) {
      if (waits[i].revents != 0) Accept(waits[i].fd, ports_[i]);
    }
  }
}

void NetworkRelay::Accept(int listener, std::uint16_t port) {
  UniqueFd client = AcceptClient(listener, stopped_.fd());
  if (client) connections_.Serve(std::move(client), [this, port](int fd) { Handle(fd, port); });
}

void NetworkRelay::Handle(int client, std::uint16_t port) {
  std::string bytes;
  if (port != kProxyPort) {
    const HostPort target{"localhost", port};
    if (const auto server = Reach(target)) Tunnel(client, *server, target, {}, /*is_checked=*/true);
    return;
  }
  if (!ReadUntil(client, bytes, [](std::string_view all) { return !all.empty(); })) return;
  constexpr char kSocks5 = 5;
  if (bytes.front() == kSocks5) {
    HandleSocks(client, std::move(bytes));
  } else {
    HandleHttp(client, std::move(bytes));
  }
}

bool NetworkRelay::ReadUntil(int client, std::string& bytes, const std::function<bool(std::string_view)>& done) const {
  while (!done(bytes)) {
    std::array<pollfd, 2> waits{{{client, POLLIN, 0}, {stopped_.fd(), POLLIN, 0}}};
    const int ready = ::poll(waits.data(), waits.size(), kMaxHandshakeMs);
    if (ready == 0 || (ready < 0 && errno != EINTR) || waits[1].revents != 0) return false;
    if (!Receive(client, bytes)) return false;
  }
  return true;
}

void NetworkRelay::HandleHttp(int client, std::string bytes) {
  ProxyRequest request;
  const bool is_whole = ReadUntil(client, bytes, [&](std::string_view all) {
    request = ReadHttpProxyRequest(all);
    return request.reading != Reading::kMore;
  });
  if (!is_whole) return;
  if (request.reading == Reading::kRefused) {
    SendAll(client, HttpRefusal("400 Bad Request", request.why), stopped_.fd());
    return;
  }
  const auto server = Reach(request.target);
  if (!server) {
    const bool forbidden = server.error().code == ErrorCode::kForbidden;
    SendAll(client, HttpRefusal(forbidden ? "403 Forbidden" : "502 Bad Gateway", server.error().message),
            stopped_.fd());
    return;
  }
  if (request.is_tunnel && !SendAll(client, "HTTP/1.1 200 OK\r\n\r\n", stopped_.fd())) return;
  Tunnel(client, *server, request.target, request.forwarded + bytes.substr(request.size), !request.is_tunnel);
}

void NetworkRelay::HandleSocks(int client, std::string bytes) {
  constexpr std::string_view kNoAuthentication("\x05\x00", 2), kReplyRest("\x00\x01\x00\x00\x00\x00\x00\x00", 8);
  const auto greeting_size = [](std::string_view all) { return std::size_t{2} + static_cast<unsigned char>(all[1]); };
  if (!ReadUntil(client, bytes,
                 [&](std::string_view all) { return all.size() >= 2 && all.size() >= greeting_size(all); }) ||
      !SendAll(client, kNoAuthentication, stopped_.fd())) {
    return;
  }
  bytes.erase(0, greeting_size(bytes));
  ProxyRequest request;
  if (!ReadUntil(client, bytes, [&](std::string_view all) {
        request = ReadSocksRequest(all);
        return request.reading != Reading::kMore;
      })) {
    return;
  }
  constexpr char kOk = 0, kForbidden = 2, kUnreachable = 4, kNotKnown = 7;
  char code = kNotKnown;
  std::optional<UniqueFd> server;
  if (request.reading == Reading::kDone) {
    auto reached = Reach(request.target);
    code = reached ? kOk : reached.error().code == ErrorCode::kForbidden ? kForbidden : kUnreachable;
    if (reached) server = *std::move(reached);
  }
  const std::string reply = std::string("\x05") + code + std::string(kReplyRest);
  if (!SendAll(client, reply, stopped_.fd()) || !server) return;
  Tunnel(client, *server, request.target, bytes.substr(request.size), /*is_checked=*/false);
}

Result<UniqueFd> NetworkRelay::Reach(const HostPort& target) {
  const auto refuse = [&](const std::string& why) {
    Refuse(target, why);
    return Fail(ErrorCode::kForbidden, target.str() + " cannot be reached from this command: " + why);
  };
  HostRules::Answer rule = options_->rules.For(target);
  if (rule.verdict == HostRules::Verdict::kDenied) return refuse("tools.network.deny names it");
  if (rule.verdict == HostRules::Verdict::kUnknown) {
    if (const std::string why = AskAbout(target); !why.empty()) return refuse(why);
    rule.names_host = rule.names_port = true;  // the person has seen both
  }
  const auto addresses = TRY(Resolve(target, stop_.get_token()));
  Error last = MakeError(ErrorCode::kUnavailable, "it has no address");
  for (const Destination& address : addresses) {
    if (const std::string why = WhyClosed(address, rule, options_->closed, stop_.get_token()); !why.empty()) {
      return refuse(why);
    }
  }
  for (const Destination& address : addresses) {
    auto server = Connect(address, stopped_.fd());
    if (server) return server;
    last = server.error();
  }
  return Fail(std::move(last));
}

std::string NetworkRelay::AskAbout(const HostPort& target) {
  const std::string place = target.str();
  if (!ask_) return "tools.network.allow does not name it; the user can add \"" + place + "\"";
  const MutexLock asking(asking_);
  if (const auto known = answers_.find(place); known != answers_.end()) return known->second;
  if (answers_.size() >= kMaxAsked) return "too many hosts have been asked about";
  // A name is not resolved before somebody has agreed to it, because the question to its name server tells it things.
  if (IsAddress(target.host) || IsLocalName(target.host)) {
    const auto addresses = Resolve(target, stop_.get_token());
    if (!addresses) return addresses.error().message;
    for (const Destination& address : *addresses) {
      const HostRules::Answer agreed{HostRules::Verdict::kAllowed, /*names_host=*/true, /*names_port=*/true};
      const std::string why = WhyClosed(address, agreed, options_->closed, stop_.get_token());
      if (!why.empty()) return why;
    }
  }
  const auto began = std::chrono::steady_clock::now();
  {
    const MutexLock lock(mutex_);
    asked_at_ = began;
  }
  std::string why = ask_(place, stop_.get_token());
  {
    const MutexLock lock(mutex_);
    asked_at_.reset();
    waited_ += std::chrono::steady_clock::now() - began;
  }
  if (!stop_.stop_requested()) answers_[place] = why;
  return why;
}

std::chrono::milliseconds NetworkRelay::waited() const {
  const MutexLock lock(mutex_);
  auto waited = waited_;
  if (asked_at_) waited += std::chrono::steady_clock::now() - *asked_at_;
  return std::chrono::duration_cast<std::chrono::milliseconds>(waited);
}

// A server may speak first, so its bytes pass meanwhile. False if the connection ends here.
bool NetworkRelay::PassFirstBytes(int client, int server, const HostPort& target, std::string& bytes, NetworkUse& use) {
  bool client_ended = false;
  for (;;) {
    const FirstBytes first = CheckFirstBytes(bytes, target);
    if (first.reading == Reading::kDone) break;
    if (first.reading == Reading::kRefused) return Refuse(target, first.why), false;
    if (client_ended) return false;  // what cannot be checked whole does not pass
    std::array<pollfd, 3> waits{{{client, POLLIN, 0}, {server, POLLIN, 0}, {stopped_.fd(), POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return false;
    if (waits[2].revents != 0) return false;
    if (waits[1].revents != 0) {
      std::string said;
      if (!Receive(server, said) || !SendAll(client, said, stopped_.fd())) return false;
      use.received += said.size();
    }
    if (waits[0].revents != 0) client_ended = !Receive(client, bytes);
  }
  return true;
}

void NetworkRelay::Tunnel(int client, const UniqueFd& server, const HostPort& target, std::string bytes,
                          bool is_checked) {
  NetworkUse use{.host = target.host, .port = target.port};
  if (is_checked || PassFirstBytes(client, server.get(), target, bytes, use)) {
    if (SendAll(server.get(), bytes, stopped_.fd())) {
      use.sent += bytes.size();
      const Passed passed = PassBothWays(client, server.get(), stopped_.fd());
      use.sent += passed.there;
      use.received += passed.back;
    }
  }
  Count(use);
}

void NetworkRelay::Refuse(const HostPort& target, const std::string& why) {
  const MutexLock lock(mutex_);
  if (refused_.size() < kMaxRefused) refused_.insert(target.str() + ": " + why);
}

void NetworkRelay::Count(const NetworkUse& use) {
  const MutexLock lock(mutex_);
  const std::string name = HostPort{use.host, use.port}.str();
  if (uses_.size() >= kMaxHosts && !uses_.contains(name)) return;
  NetworkUse& all = uses_.try_emplace(name, NetworkUse{.host = use.host, .port = use.port}).first->second;
  all.sent += use.sent;
  all.received += use.received;
}

}  // namespace reprise
