#include "mcp/server_login.h"

#include <cstdlib>
#include <utility>

#include "base/guarded.h"
#include "base/try.h"
#include "mcp/client.h"
#include "mcp/loopback_redirect.h"
#include "mcp/server_channel.h"
#include "mcp/session.h"

namespace reprise {
namespace {

constexpr std::chrono::minutes kPersonsTime{15};

// The port that an authorization server has been told of: one that registers nobody now still knows it.
std::uint16_t PortOf(const OAuthLogin& login) {
  const auto uri = login.registrations.empty() ? std::nullopt : ParseUrl(login.registrations.back().redirect_uri);
  const std::size_t colon = uri ? uri->authority.rfind(':') : std::string::npos;
  return colon == std::string::npos ? 0 : static_cast<std::uint16_t>(std::atoi(uri->authority.c_str() + colon + 1));
}

}  // namespace

Result<bool> LogInAtServer(const McpServerOptions& server, const ServerLogin& login,
                           const std::function<void(const std::string& url)>& show, const std::stop_token& stop) {
  if (!server.auth) {
    return Fail(Error{.code = ErrorCode::kInvalidArgument,
                      .reason = "no_login",
                      .message = "nobody logs in at the MCP server " + server.name +
                                 ": its configuration has no \"auth\": {\"type\": \"oauth\"}"});
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
  // Some say only now that they want to know who asks.
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
