#include "mcp/oauth_authorizer.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/logging.h"
#include "base/try.h"

namespace reprise {

OAuthAuthorizer::OAuthAuthorizer(Parts parts)
    : parts_(std::move(parts)), flow_(parts_.transport, parts_.url, parts_.options) {
  const auto login = parts_.credentials.Look(parts_.server, parts_.url);
  if (login && !StepsUp(*login)) Use(login->tokens);
}

// Somebody is there to agree to what the server has asked for since the last log-in.
bool OAuthAuthorizer::StepsUp(const OAuthLogin& login) const { return parts_.browser && !login.wanted_scope.empty(); }

OAuthAuthorizer::~OAuthAuthorizer() { stop_.request_stop(); }

std::string OAuthAuthorizer::Token() const {
  const MutexLock lock(mutex_);
  return token_;
}

void OAuthAuthorizer::Use(const OAuthTokens& tokens) {
  const MutexLock lock(mutex_);
  token_ = tokens.access_token;
}

void OAuthAuthorizer::Renew(const OAuthChallenge& challenge, const std::string& refused, bool is_second,
                            std::function<void(Result<void>)> done) {
  try {
    queue_.Post([this, challenge, refused, is_second, done] { done(RenewNow(challenge, refused, is_second)); });
  } catch (const std::system_error&) {
    done(Fail(ErrorCode::kUnavailable, "the system is out of threads"));
  }
}

Result<void> OAuthAuthorizer::RenewNow(const OAuthChallenge& challenge, const std::string& refused, bool is_second) {
  if (stop_.stop_requested()) return Fail(ErrorCode::kCancelled, "stopping");
  const bool wants_more = challenge.error == "insufficient_scope";
  auto kept = parts_.credentials.Look(parts_.server, parts_.url);
  if (!kept && !parts_.browser) return Fail(kept.error());
  OAuthLogin login = kept ? *std::move(kept) : OAuthLogin{};
  login.url = parts_.url;
  if (StepsUp(login)) return LogIn(challenge, login);
  // Another request, or another process, may have got a token meanwhile.
  if (!login.tokens.access_token.empty() && login.tokens.access_token != refused) {
    Use(login.tokens);
    return {};
  }
  // A fresh token would be for no more than the old one was; and who has just got one and is refused wants another
  // log-in.
  if (!wants_more && !is_second && !login.tokens.refresh_token.empty()) {
    const auto refreshed = RefreshNow(login);
    if (refreshed) return {};
    if (refreshed.error().code == ErrorCode::kUnavailable || stop_.stop_requested()) return refreshed;
    LogInfo("a log-in at an MCP server has ended", {{"server", parts_.server}, {"error", refreshed.error().message}});
  }
  return LogIn(challenge, login);
}

Result<void> OAuthAuthorizer::RefreshNow(OAuthLogin& login) {
  const auto& registrations = login.registrations;
  OAuthRegistration ours;
  if (!parts_.options.client_id.empty()) {
    ours = {.issuer = login.tokens.issuer,
            .client_id = parts_.options.client_id,
            .client_secret = parts_.options.client_secret,
            .token_method = parts_.options.client_secret.empty() ? "none" : "client_secret_basic"};
  } else if (!parts_.options.client_metadata_url.empty()) {
    ours = {.issuer = login.tokens.issuer,
            .client_id = parts_.options.client_metadata_url,
            .client_secret = {},
            .token_method = "none"};
  } else {
    const auto known = std::find_if(registrations.begin(), registrations.end(),
                                    [&](const OAuthRegistration& each) { return each.issuer == login.tokens.issuer; });
    if (known == registrations.end()) return Fail(OAuthError("this client is not registered any more"));
    ours = *known;
  }
  auto tokens = TRY(flow_.Refresh(login.tokens, ours, stop_.get_token()));
  // A refresh token may count once: what is not kept now is lost. But whoever has logged in, or out, meanwhile wins.
  const auto kept = parts_.credentials.Change(parts_.server, parts_.url, [&](OAuthLogin& now) {
    if (now.tokens.access_token == login.tokens.access_token) now.tokens = tokens;
  });
  if (!kept) LogWarning("new tokens for an MCP server could not be kept", {{"error", kept.error().message}});
  login.tokens = kept ? kept->tokens : std::move(tokens);
  if (login.tokens.access_token.empty()) return Fail(OAuthError("somebody has logged out"));
  Use(login.tokens);
  return {};
}

Result<void> OAuthAuthorizer::LogIn(const OAuthChallenge& challenge, OAuthLogin& login) {
  // Without a browser nothing is begun: the next log-in asks for what the server wants now.
  if (!parts_.browser) {
    if (!challenge.scope.empty()) {
      static_cast<void>(parts_.credentials.Change(parts_.server, parts_.url, [&](OAuthLogin& now) {
        now.wanted_scope = ScopeUnion(now.wanted_scope, challenge.scope);
      }));
    }
    const bool wants_more = challenge.error == "insufficient_scope";
    return Fail(Error{.code = ErrorCode::kUnavailable,
                      .reason = kMcpLoginRequired,
                      .message = std::string("the server wants ") + (wants_more ? "more rights" : "a log-in") +
                                 ": run \"reprise mcp login " + parts_.server + "\""});
  }
  const std::string before = ScopeUnion(login.tokens.scope, login.wanted_scope);
  const auto attempt = TRY(flow_.Begin(challenge, parts_.redirect_uri, login.registrations, before, stop_.get_token()));
  // An id, and its secret, are those of one authorization server: no other gets them because a server says so.
  const bool has_moved = !login.tokens.issuer.empty() && login.tokens.issuer != attempt.server.issuer;
  if (has_moved && !parts_.options.client_id.empty() && parts_.options.issuer.empty()) {
    return Fail(OAuthError("the server now names another authorization server, " + attempt.server.issuer +
                           ", and auth.client_id is for " + login.tokens.issuer + "; say which in auth.issuer"));
  }
  const std::string query = TRY(parts_.browser(attempt, stop_.get_token()));
  auto tokens = TRY(flow_.Finish(attempt, query, stop_.get_token()));
  login = TRY(parts_.credentials.Change(parts_.server, parts_.url, [&](OAuthLogin& now) {
    std::erase_if(now.registrations,
                  [&](const OAuthRegistration& each) { return each.issuer == attempt.registration.issuer; });
    if (!attempt.registration.is_configured) now.registrations.push_back(attempt.registration);
    now.tokens = std::move(tokens);
    now.wanted_scope.clear();
  }));
  Use(login.tokens);
  return {};
}

}  // namespace reprise
