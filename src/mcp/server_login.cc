#include "mcp/server_login.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/logging.h"
#include "base/text.h"
#include "base/try.h"
#include "mcp/client.h"
#include "mcp/oauth_documents.h"
#include "mcp/server_launch.h"
#include "mcp/session.h"

namespace reprise {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kPath = "/mcp/callback";
constexpr std::size_t kMaxHead = 16 * 1024;
constexpr std::chrono::seconds kHeadLimit{5};
constexpr int kBacklog = 64;
constexpr std::size_t kMaxVisitors = 32;

constexpr std::string_view kDone =
    "<!doctype html><title>Reprise</title><p>The log-in has come back to Reprise. You can close this page; whether it "
    "went well is said where you began it.";
constexpr std::string_view kNothing = "<!doctype html><title>Reprise</title><p>There is nothing here.";

// A connection whose request is not complete yet.
struct Visitor {
  UniqueFd connection;
  Clock::time_point deadline;
  std::string head{};

  bool has_head() const { return head.find("\r\n\r\n") != std::string::npos; }
  // False if nothing more can be read.
  bool Read() {
    char bytes[2048];
    const ssize_t count = ::recv(connection.get(), bytes, sizeof bytes, 0);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    head.append(bytes, static_cast<std::size_t>(count));
    return count > 0 && head.size() <= kMaxHead;
  }
};

void Answer(int connection, std::string_view status, std::string_view body) {
  const std::string response =
      "HTTP/1.1 " + std::string(status) +
      "\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\nContent-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n"
      "Cache-Control: no-store\r\nConnection: close\r\n\r\n" +
      std::string(body);
  // If the browser does not read the response, it only misses this page.
  static_cast<void>(::send(connection, response.data(), response.size(), MSG_NOSIGNAL));
  ::shutdown(connection, SHUT_WR);
}

// "a=b" for "GET /mcp/callback?a=b HTTP/1.1"; nullopt for another request.
std::optional<std::string> QueryOf(std::string_view head, const std::string& path) {
  const std::string begin = "GET " + path + "?";
  if (!head.starts_with(begin)) return std::nullopt;
  head.remove_prefix(begin.size());
  return std::string(head.substr(0, head.find_first_of(" \r")));
}

bool HasState(const std::string& query, const std::string& state) {
  const auto form = ParseForm(query);
  return form && !state.empty() && std::ranges::any_of(*form, [&](const auto& member) {
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

Result<std::string> LoopbackRedirect::Await(const std::string& address, const std::string& state,
                                            const std::stop_token& stop) const {
  const UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return Fail(ErrorCode::kUnavailable, "too many files are open");
  const std::stop_callback stopped(stop, [&] { ::eventfd_write(wake.get(), 1); });
  const std::string path = address.substr(uri().size() - std::string_view(kPath).size());
  const std::string host = "\r\nhost: 127.0.0.1:" + std::to_string(port_) + "\r\n";
  std::deque<Visitor> visitors;  // oldest first; read concurrently, so that a silent one does not block the others
  for (;;) {
    std::vector<pollfd> watched = {{.fd = wake.get(), .events = POLLIN, .revents = 0},
                                   {.fd = socket_.get(), .events = POLLIN, .revents = 0}};
    for (const Visitor& each : visitors)
      watched.push_back({.fd = each.connection.get(), .events = POLLIN, .revents = 0});
    int limit = -1;
    if (!visitors.empty()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(visitors.front().deadline - Clock::now());
      limit = static_cast<int>(std::max(left, std::chrono::milliseconds(0)).count());
    }
    if (::poll(watched.data(), watched.size(), limit) < 0 && errno != EINTR)
      return Fail(ErrorCode::kUnavailable, "the log-in's port cannot be watched");
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "the log-in was given up");
    for (std::size_t i = 0; i < visitors.size(); ++i) {
      Visitor& visitor = visitors[i];
      if (watched[i + 2].revents == 0) continue;
      const bool goes_on = visitor.Read();
      if (goes_on && !visitor.has_head()) continue;
      const auto query = visitor.has_head() ? QueryOf(visitor.head, path) : std::nullopt;
      if (query && LowerCase(visitor.head).find(host) != std::string::npos && HasState(*query, state)) {
        Answer(visitor.connection.get(), "200 OK", kDone);
        return *query;
      }
      if (visitor.has_head()) Answer(visitor.connection.get(), "404 Not Found", kNothing);
      visitor.deadline = Clock::time_point::min();
    }
    std::erase_if(visitors, [now = Clock::now()](const Visitor& each) { return each.deadline <= now; });
    if ((watched[1].revents & POLLIN) == 0) continue;
    UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) continue;
    if (visitors.size() == kMaxVisitors) visitors.pop_front();
    visitors.push_back({.connection = std::move(connection), .deadline = Clock::now() + kHeadLimit});
  }
}

namespace {

constexpr std::chrono::minutes kPersonsTime{15};

// The port of the last registration, because the authorization server may not accept a new registration.
std::uint16_t PortOf(const OAuthLogin& login) {
  const auto uri = login.registrations.empty() ? std::nullopt : ParseUrl(login.registrations.back().redirect_uri);
  const std::size_t colon = uri ? uri->authority.rfind(':') : std::string::npos;
  return colon == std::string::npos ? 0 : static_cast<std::uint16_t>(std::atoi(uri->authority.c_str() + colon + 1));
}

}  // namespace

Result<bool> LogInAtServer(const McpServerOptions& server, const ServerLogin& login,
                           const std::function<void(const std::string& url)>& show, const std::stop_token& stop) {
  if (!server.auth) {
    return Fail(Reason::kNoLogin, "nobody logs in at the MCP server " + server.name +
                                      ": its configuration has no \"auth\": {\"type\": \"oauth\"}");
  }
  const auto before = login.credentials.Look(server.name, server.url);
  auto redirect = LoopbackRedirect::Open(login.port != 0 || !before ? login.port : PortOf(*before));
  if (!redirect && login.port == 0) redirect = LoopbackRedirect::Open(0);
  if (!redirect) return Fail(redirect.error());
  bool asked = false;
  const OAuthBrowser browser = [&](const OAuthAttempt& attempt, const std::stop_token& given_up) {
    asked = true;
    show(attempt.url);
    return redirect->Await(attempt.redirect_uri, attempt.state, given_up);
  };
  auto channel =
      TRY(OpenServerChannel(server, login.transport, "", login.workspace,
                            AuthorizerFor(server, login.transport, login.credentials, redirect->uri(), browser)));
  Session session(std::move(channel), {});
  const RequestOptions limits{.timeout = kPersonsTime, .stop = stop};
  const auto facts = TRY(Greet(session, login.client_version, McpEra::kUnknown, limits));
  // Some servers demand a log-in only for this request.
  if (facts.tools) TRY(ListTools(session, limits));
  return asked;
}

LoginAttempt::LoginAttempt(LogIn log_in, std::function<void(const Result<bool>&)> done)
    : thread_([this, log_in = std::move(log_in), done = std::move(done)](const std::stop_token& stop) {
        const auto tell = [this](Result<std::string> page) {
          const MutexLock lock(mutex_);
          if (!page_ || !page) page_ = std::move(page);
          known_.notify_all();
        };
        Result<bool> logged_in = Fail(ErrorCode::kInternal, "the log-in failed for an internal reason");
        Guarded("a log-in", [&] { logged_in = log_in([&](const std::string& url) { tell(url); }, stop); });
        if (logged_in) {
          tell(std::string());
        } else {
          tell(Fail(logged_in.error()));
        }
        done(logged_in);
      }) {}

LoginAttempt::~LoginAttempt() { thread_.request_stop(); }

Result<std::string> LoginAttempt::AwaitPage(std::chrono::milliseconds limit) {
  MutexLock lock(mutex_);
  known_.wait_for(lock, limit, [this]() REQUIRES(mutex_) { return page_.has_value(); });
  if (!page_) return Fail(ErrorCode::kUnavailable, "the MCP server or its authorization server does not answer");
  return *page_;
}

}  // namespace reprise
