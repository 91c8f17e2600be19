#include "support/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace reprise::test {
namespace {

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

void Gate::Open() {
  const std::lock_guard lock(mutex_);
  open_ = true;
  opened_.notify_all();
}

bool Gate::Wait(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  return opened_.wait(lock, stop, [this] { return open_; });
}

std::string ReceivedRequest::Header(std::string_view lower_case_name) const {
  const auto found =
      std::find_if(headers.begin(), headers.end(), [&](const auto& header) { return header.first == lower_case_name; });
  return found == headers.end() ? std::string() : found->second;
}

bool ScriptedConnection::ReadMore() {
  std::array<char, 65536> buffer;
  const ssize_t n = ::recv(fd_, buffer.data(), buffer.size(), 0);
  if (n <= 0) return false;
  received_.append(buffer.data(), static_cast<std::size_t>(n));
  return true;
}

std::optional<ReceivedRequest> ScriptedConnection::ReadRequest() {
  std::size_t head_end;
  while ((head_end = received_.find("\r\n\r\n")) == std::string::npos) {
    if (!ReadMore()) return std::nullopt;
  }
  ReceivedRequest request;
  std::size_t at = 0;
  for (bool first = true; at < head_end + 2; first = false) {
    const std::size_t end = received_.find("\r\n", at);
    const std::string line = received_.substr(at, end - at);
    at = end + 2;
    if (first) {
      const std::size_t space = line.find(' ');
      request.method = line.substr(0, space);
      request.target = line.substr(space + 1, line.rfind(' ') - space - 1);
    } else if (const std::size_t colon = line.find(':'); colon != std::string::npos) {
      const std::size_t value = line.find_first_not_of(' ', colon + 1);
      request.headers.emplace_back(LowerCase(line.substr(0, colon)),
                                   value == std::string::npos ? "" : line.substr(value));
    }
  }
  const std::string length = request.Header("content-length");
  const std::size_t body = length.empty() ? 0 : std::stoul(length);
  while (received_.size() < head_end + 4 + body) {
    if (!ReadMore()) return std::nullopt;
  }
  request.body = received_.substr(head_end + 4, body);
  received_.erase(0, head_end + 4 + body);
  return request;
}

bool ScriptedConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool ScriptedConnection::SendHead(std::string_view status, std::string_view content_type) {
  return Send("HTTP/1.1 " + std::string(status) + "\r\nContent-Type: " + std::string(content_type) +
              "\r\nTransfer-Encoding: chunked\r\n\r\n");
}

bool ScriptedConnection::SendChunk(std::string_view bytes) {
  std::array<char, 24> size;
  const int n = std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
  std::string chunk(size.data(), static_cast<std::size_t>(n));
  chunk += bytes;
  chunk += "\r\n";
  return Send(chunk);
}

bool ScriptedConnection::SendResponse(std::string_view status, std::string_view content_type, std::string_view body) {
  return Send("HTTP/1.1 " + std::string(status) + "\r\nContent-Type: " + std::string(content_type) +
              "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
}

void ScriptedConnection::FinishSending() { ::shutdown(fd_, SHUT_WR); }

void ScriptedConnection::Reset() {
  // If an established socket connects to AF_UNSPEC, Linux disconnects it and sends the peer a reset.
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  ::connect(fd_, &nobody, sizeof nobody);
}

void ScriptedConnection::WaitForClose() {
  while (ReadMore()) received_.clear();
}

ScriptedServer::ScriptedServer(Script script) : script_(std::move(script)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool listening = listener_ >= 0 && ::bind(listener_, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                         ::listen(listener_, 1024) == 0 &&
                         ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  if (!listening) std::abort();  // without its server the test would be misleading
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this](std::stop_token stop) { Accept(stop); });
}

ScriptedServer::~ScriptedServer() {
  acceptor_.request_stop();
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  std::vector<Peer> peers;
  {
    const std::lock_guard lock(mutex_);
    peers.swap(peers_);
  }
  for (Peer& peer : peers) {
    peer.thread.request_stop();
    ::shutdown(peer.fd, SHUT_RDWR);
  }
  for (Peer& peer : peers) {
    peer.thread.join();
    ::close(peer.fd);
  }
}

std::string ScriptedServer::Url(std::string_view path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
}

std::size_t ScriptedServer::connections() const {
  const std::lock_guard lock(mutex_);
  return peers_.size();
}

void ScriptedServer::Accept(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::lock_guard lock(mutex_);
    const std::size_t number = peers_.size();
    peers_.push_back({fd, std::jthread([this, fd, number](std::stop_token peer_stop) {
                        ScriptedConnection connection(fd, number, peer_stop);
                        script_(connection);
                        // The descriptor stays open until the destructor, which may still shut it down.
                        ::shutdown(fd, SHUT_RDWR);
                      })});
  }
}

}  // namespace reprise::test
