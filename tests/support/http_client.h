#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise {

struct TestResponse {
  int status = 0;
  std::string head, body;
  std::string Header(std::string name) const {
    name = "\r\n" + name + ": ";
    const auto at = head.find(name);
    if (at == std::string::npos) return {};
    const auto begin = at + name.size();
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

// A client that sends exactly the given bytes. Reads give up after ten seconds.
class TestClient {
 public:
  explicit TestClient(int port, bool v6 = false)
      : fd_(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    sockaddr_in v4_address{};
    v4_address.sin_family = AF_INET;
    v4_address.sin_port = htons(static_cast<std::uint16_t>(port));
    v4_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in6 v6_address{};
    v6_address.sin6_family = AF_INET6;
    v6_address.sin6_port = htons(static_cast<std::uint16_t>(port));
    v6_address.sin6_addr = in6addr_loopback;
    connected_ = (v6 ? ::connect(fd_, reinterpret_cast<sockaddr*>(&v6_address), sizeof v6_address)
                     : ::connect(fd_, reinterpret_cast<sockaddr*>(&v4_address), sizeof v4_address)) == 0;
  }
  ~TestClient() { Close(); }
  TestClient(TestClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        connected_(other.connected_),
        in_(std::move(other.in_)),
        stream_(std::move(other.stream_)) {}
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }
  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void Reset() {  // ends with RST
    const linger hard{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    Close();
  }
  void CloseSending() { ::shutdown(fd_, SHUT_WR); }

  // False if the other side is gone.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Reads more; false at the end (or after ten seconds).
  bool Fill() {
    char buffer[16384];
    const ssize_t size = ::recv(fd_, buffer, sizeof buffer, 0);
    if (size <= 0) return false;
    in_.append(buffer, static_cast<std::size_t>(size));
    return true;
  }
  // Reads up to and including `marker`, or to the end if it never comes.
  std::string ReadUntil(std::string_view marker) {
    std::size_t at;
    while ((at = in_.find(marker)) == std::string::npos) {
      if (!Fill()) return std::exchange(in_, {});
    }
    std::string read = in_.substr(0, at + marker.size());
    in_.erase(0, read.size());
    return read;
  }
  std::string ReadToEnd() {
    while (Fill()) {
    }
    return std::exchange(in_, {});
  }
  std::string ReadBytes(std::size_t size) {
    while (in_.size() < size && Fill()) {
    }
    std::string read = in_.substr(0, size);
    in_.erase(0, read.size());
    return read;
  }
  // Reads one response, whatever its framing.
  TestResponse ReadResponse(bool head_request = false) {
    TestResponse response;
    response.head = ReadUntil("\r\n\r\n");
    if (response.head.size() > 12) response.status = std::atoi(response.head.c_str() + 9);
    const std::string length = response.Header("Content-Length");
    if (head_request || response.status == 204) return response;
    if (!length.empty()) {
      response.body = ReadBytes(static_cast<std::size_t>(std::atoll(length.c_str())));
    } else if (response.Header("Transfer-Encoding") == "chunked") {
      while (true) {
        const std::string chunk = ReadChunk();
        if (chunk.empty()) break;
        response.body += chunk;
      }
    } else if (response.status != 100) {
      response.body = ReadToEnd();
    }
    return response;
  }
  // The next chunk's bytes; empty after the last one (or at the end of the connection).
  std::string ReadChunk() {
    const std::string line = ReadUntil("\r\n");
    const auto size = std::strtoull(line.c_str(), nullptr, 16);
    std::string bytes = ReadBytes(size);
    ReadBytes(2);
    return bytes;
  }
  // Decodes chunks until `marker` has come (or the stream has ended). Returns everything decoded so far.
  std::string ReadStreamUntil(std::string_view marker) {
    while (stream_.find(marker) == std::string::npos) {
      const std::string chunk = ReadChunk();
      if (chunk.empty()) break;
      stream_ += chunk;
    }
    return stream_;
  }

 private:
  int fd_ = -1;
  bool connected_ = false;
  std::string in_, stream_;
};

inline std::string RequestText(int port, std::string_view method, std::string_view path, std::string_view body = {},
                               std::string_view headers = {}) {
  std::string text = std::string(method) + " " + std::string(path) +
                     " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) + "\r\n" + std::string(headers);
  if (!body.empty()) {
    text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  }
  return text + "\r\n" + std::string(body);
}

// Sends one request on its own connection.
inline TestResponse Ask(int port, std::string_view method, std::string_view path, std::string_view body = {},
                        std::string_view headers = {}) {
  TestClient client(port);
  client.Send(RequestText(port, method, path, body, headers));
  return client.ReadResponse(method == "HEAD");
}
// The same for bytes that need not be a valid request.
inline TestResponse AskRaw(int port, std::string_view bytes) {
  TestClient client(port);
  client.Send(bytes);
  return client.ReadResponse();
}

}  // namespace reprise
