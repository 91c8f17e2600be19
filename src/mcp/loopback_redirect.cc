#include "mcp/loopback_redirect.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/ascii.h"
#include "mcp/oauth_documents.h"

namespace reprise {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kPath = "/mcp/callback";
constexpr std::size_t kMaxHead = 16 * 1024;
constexpr std::chrono::seconds kHeadLimit{5};
constexpr int kBacklog = 8;

constexpr std::string_view kDone =
    "<!doctype html><title>Reprise</title><p>The log-in has come back to Reprise. You can close this page; whether it "
    "went well is said where you began it.";
constexpr std::string_view kNothing = "<!doctype html><title>Reprise</title><p>There is nothing here.";

// False: it is to stop, or the time is over.
bool AwaitReadable(int fd, int wake, std::optional<Clock::time_point> deadline) {
  pollfd watched[] = {{.fd = fd, .events = POLLIN, .revents = 0}, {.fd = wake, .events = POLLIN, .revents = 0}};
  for (;;) {
    int limit = -1;
    if (deadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
      limit = static_cast<int>(std::max(left, std::chrono::milliseconds(0)).count());
    }
    const int ready = ::poll(watched, 2, limit);
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0 && watched[1].revents == 0;
  }
}

// The head of a request, without its last line; empty if none came in time.
std::string ReadHead(int connection, int wake) {
  const auto deadline = Clock::now() + kHeadLimit;
  std::string head;
  while (head.size() < kMaxHead && AwaitReadable(connection, wake, deadline)) {
    char bytes[2048];
    const ssize_t count = ::recv(connection, bytes, sizeof bytes, 0);
    if (count <= 0) return "";
    head.append(bytes, static_cast<std::size_t>(count));
    if (const std::size_t end = head.find("\r\n\r\n"); end != std::string::npos) return head.substr(0, end + 2);
  }
  return "";
}

void Answer(int connection, std::string_view status, std::string_view body) {
  const std::string response =
      "HTTP/1.1 " + std::string(status) +
      "\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\nContent-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n"
      "Cache-Control: no-store\r\nConnection: close\r\n\r\n" +
      std::string(body);
  // A browser that does not read it loses nothing but this page.
  static_cast<void>(::send(connection, response.data(), response.size(), MSG_NOSIGNAL));
  ::shutdown(connection, SHUT_WR);
}

// "a=b" of "GET /mcp/callback?a=b HTTP/1.1"; nullopt: it is another request.
std::optional<std::string> QueryOf(std::string_view head) {
  const std::string begin = std::string("GET ") + kPath + "?";
  if (!head.starts_with(begin)) return std::nullopt;
  head.remove_prefix(begin.size());
  return std::string(head.substr(0, head.find_first_of(" \r")));
}

bool HasState(const std::string& query, const std::string& state) {
  const auto form = ParseForm(query);
  return form && !state.empty() && std::any_of(form->begin(), form->end(), [&](const auto& member) {
           return member.first == "state" && member.second == state;
         });
}

}  // namespace

Result<LoopbackRedirect> LoopbackRedirect::Open(std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int yes = 1;
  if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!socket || ::bind(socket.get(), generic, size) != 0 || ::listen(socket.get(), kBacklog) != 0 ||
      ::getsockname(socket.get(), generic, &size) != 0) {
    return Fail(ErrorCode::kConflict,
                "port " + std::to_string(port) +
                    " of this machine cannot be used for the log-in: " + std::generic_category().message(errno));
  }
  return LoopbackRedirect(std::move(socket), ntohs(address.sin_port));
}

std::string LoopbackRedirect::uri() const { return "http://127.0.0.1:" + std::to_string(port_) + kPath; }

Result<std::string> LoopbackRedirect::Await(const std::string& state, const std::stop_token& stop) const {
  const UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return Fail(ErrorCode::kUnavailable, "too many files are open");
  const std::stop_callback stopped(stop, [&] { ::eventfd_write(wake.get(), 1); });
  const std::string host = "\r\nhost: 127.0.0.1:" + std::to_string(port_) + "\r\n";
  while (AwaitReadable(socket_.get(), wake.get(), std::nullopt)) {
    const UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) continue;
    const std::string head = ReadHead(connection.get(), wake.get());
    const auto query = QueryOf(head);
    if (query && LowerCase(head).find(host) != std::string::npos && HasState(*query, state)) {
      Answer(connection.get(), "200 OK", kDone);
      return *query;
    }
    Answer(connection.get(), "404 Not Found", kNothing);
  }
  return Fail(ErrorCode::kCancelled, "the log-in was given up");
}

}  // namespace reprise
