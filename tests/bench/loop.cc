#include "bench/loop.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace reprise::bench {

std::int64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void Die(const std::string& what) {
  std::fprintf(stderr, "bench: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

void RaiseDescriptorLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Loop::Loop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) Die("epoll_create1");
}

Loop::~Loop() { close(epoll_); }

void Loop::Watch(int fd, std::uint32_t events, Handler handler) {
  if (handlers_.size() <= static_cast<std::size_t>(fd)) handlers_.resize(fd + 1);
  handlers_[fd] = std::make_shared<Handler>(std::move(handler));
  epoll_event event{.events = events, .data = {.fd = fd}};
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) Die("epoll_ctl");
}

void Loop::Change(int fd, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  if (epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event) != 0) Die("epoll_ctl");
}

void Loop::Unwatch(int fd) {
  handlers_[fd].reset();
  epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
}

void Loop::At(std::int64_t when, std::function<void()> what) { timers_.push({when, std::move(what)}); }

void Loop::RunTimers() {
  while (!timers_.empty() && timers_.top().when <= Now()) {
    const auto what = timers_.top().what;
    timers_.pop();
    what();
  }
}

void Loop::Run() {
  running_ = true;
  epoll_event events[256];
  while (running_) {
    RunTimers();
    if (!running_) return;
    timespec wait{};
    const std::int64_t left = timers_.empty() ? 0 : std::max<std::int64_t>(0, timers_.top().when - Now());
    wait.tv_sec = left / 1'000'000'000;
    wait.tv_nsec = left % 1'000'000'000;
    const int count = epoll_pwait2(epoll_, events, 256, timers_.empty() ? nullptr : &wait, nullptr);
    for (int i = 0; i < count; ++i) {
      // A copy, because a handler may unwatch itself or a later one of this list.
      const auto handler = handlers_[events[i].data.fd];
      if (handler) (*handler)(events[i].events);
    }
  }
}

namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void NoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

int Listen(int port, int& bound_port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address = Loopback(port);
  socklen_t size = sizeof(address);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 4096) != 0) Die("listen");
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  bound_port = ntohs(address.sin_port);
  return fd;
}

int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port);
  // Connecting blocks, but on loopback only for microseconds. Later calls do not block.
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) Die("connect");
  NoDelay(fd);
  return fd;
}

int Accept(int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) NoDelay(fd);
  return fd;
}

Peer::Peer(Loop& loop, int fd, std::function<void()> on_readable, std::function<void()> on_drained)
    : loop_(loop), fd_(fd), on_readable_(std::move(on_readable)), on_drained_(std::move(on_drained)) {
  loop_.Watch(fd_, EPOLLIN, [this](std::uint32_t events) { OnEvent(events); });
}

Peer::~Peer() {
  loop_.Unwatch(fd_);
  close(fd_);
}

bool Peer::Receive(std::string& into) {
  char buffer[65536];
  const ssize_t size = recv(fd_, buffer, sizeof(buffer), MSG_DONTWAIT);
  if (size > 0) into.append(buffer, static_cast<std::size_t>(size));
  return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

void Peer::Send(std::string_view data) {
  if (unsent_.empty()) {
    const ssize_t size = send(fd_, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size > 0) data.remove_prefix(static_cast<std::size_t>(size));
    if (data.empty()) return;
    loop_.Change(fd_, EPOLLIN | EPOLLOUT);
  }
  unsent_ += data;
}

void Peer::Flush() {
  const ssize_t size = send(fd_, unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (size > 0) unsent_.erase(0, static_cast<std::size_t>(size));
  if (unsent_.empty()) loop_.Change(fd_, EPOLLIN);
}

void Peer::OnEvent(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    Flush();
    if (unsent_.empty() && on_drained_) on_drained_();
  }
  // Must be last, because it may destroy this object.
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) on_readable_();
}

bool TakeRequest(std::string& buffer, Request& request) {
  const std::size_t end = buffer.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  std::string head = buffer.substr(0, end + 2);
  for (char& c : head) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c + 32) : c;
  const std::size_t at = head.find("\r\ncontent-length:");
  const std::size_t length = at == std::string::npos ? 0 : std::strtoul(head.c_str() + at + 17, nullptr, 10);
  if (buffer.size() < end + 4 + length) return false;
  request.head = buffer.substr(0, end + 4);
  request.body = buffer.substr(end + 4, length);
  buffer.erase(0, end + 4 + length);
  return true;
}

}  // namespace reprise::bench
