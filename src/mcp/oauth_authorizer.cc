#include "mcp/oauth_authorizer.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/atomic_write.h"
#include "base/logging.h"
#include "base/system.h"
#include "base/try.h"
#include "crypto/jwe.h"

namespace reprise {

namespace {

constexpr std::uint64_t kMaxFile = 4u << 20;
constexpr const char* kType = "reprise/mcp-logins";
constexpr int kVersion = 1;
constexpr std::chrono::seconds kLongestWait{10};  // for another process that is writing

Json ToJson(const OAuthRegistration& registration) {
  return {{"issuer", registration.issuer},
          {"client_id", registration.client_id},
          {"client_secret", registration.client_secret},
          {"token_method", registration.token_method},
          {"redirect_uri", registration.redirect_uri}};
}

Json ToJson(const OAuthLogin& login) {
  Json registrations = Json::array();
  for (const OAuthRegistration& each : login.registrations) {
    if (!each.is_configured) registrations.push_back(ToJson(each));
  }
  const OAuthTokens& tokens = login.tokens;
  return {{"url", login.url},
          {"registrations", std::move(registrations)},
          {"tokens",
           {{"issuer", tokens.issuer},
            {"resource", tokens.resource},
            {"access_token", tokens.access_token},
            {"refresh_token", tokens.refresh_token},
            {"scope", tokens.scope},
            {"expires_at", tokens.expires_at}}},
          {"wanted_scope", login.wanted_scope}};
}

OAuthLogin LoginOf(const Json& json) {
  OAuthLogin login{.url = TextMember(json, "url"), .registrations = {}, .tokens = {}, .wanted_scope = {}};
  const Json& registrations = MemberOf(json, "registrations");
  if (registrations.is_array()) {
    for (const Json& each : registrations) {
      login.registrations.push_back({.issuer = TextMember(each, "issuer"),
                                     .client_id = TextMember(each, "client_id"),
                                     .client_secret = TextMember(each, "client_secret"),
                                     .token_method = TextMember(each, "token_method"),
                                     .redirect_uri = TextMember(each, "redirect_uri")});
    }
  }
  const Json& tokens = MemberOf(json, "tokens");
  login.tokens = {.issuer = TextMember(tokens, "issuer"),
                  .resource = TextMember(tokens, "resource"),
                  .access_token = TextMember(tokens, "access_token"),
                  .refresh_token = TextMember(tokens, "refresh_token"),
                  .scope = TextMember(tokens, "scope")};
  const Json& expires = MemberOf(tokens, "expires_at");
  if (expires.is_number_integer()) login.tokens.expires_at = expires.get<std::int64_t>();
  login.wanted_scope = TextMember(json, "wanted_scope");
  return login;
}

OAuthLogin LoginIn(const Json& servers, const std::string& server, const std::string& url) {
  OAuthLogin login = LoginOf(MemberOf(servers, server));
  if (login.url != url) login = OAuthLogin{.url = url, .registrations = {}, .tokens = {}, .wanted_scope = {}};
  return login;
}

}  // namespace

Result<Json> OAuthCredentials::Read() {
  const auto text = file_system_.ReadFile(path_, kMaxFile);
  if (!text && IsNotFound(text.error())) return Json::object();
  if (!text) return Fail(text.error());
  std::string plain = *text;
  if (keys_) {
    auto opened = TRY(OpenJwe(*text, *keys_));
    const auto header = TRY(ParseJson(opened.protected_header));
    if (TextMember(header, "typ") != kType)
      return Fail(ErrorCode::kCorruption, "the file of log-ins at MCP servers is another file", path_);
    plain = std::move(opened.plaintext);
  }
  const auto json = TRY(ParseJson(plain));
  if (!MemberOf(json, "servers").is_object())
    return Fail(ErrorCode::kCorruption, "the file of log-ins at MCP servers cannot be read", path_);
  return MemberOf(json, "servers");
}

Result<void> OAuthCredentials::Write(const Json& servers) {
  std::string text = DumpJson({{"schema", kVersion}, {"servers", servers}});
  if (keys_) text = TRY(SealJwe({{"typ", kType}, {"ver", kVersion}}, text, *keys_));
  TRY(ReplaceFile(file_system_, path_, text));
  return file_system_.SyncDirectory(ParentDirectory(path_));
}

Result<OAuthLogin> OAuthCredentials::Look(const std::string& server, const std::string& url) {
  const MutexLock lock(mutex_);
  const auto servers = TRY(Read());
  return LoginIn(servers, server, url);
}

Result<OAuthLogin> OAuthCredentials::Change(const std::string& server, const std::string& url,
                                            const std::function<void(OAuthLogin&)>& change) {
  const MutexLock lock(mutex_);
  const auto alone = TRY(FolderLock::Take(ParentDirectory(path_), kLongestWait));
  auto servers = Read();
  if (!servers) {  // set aside, so that it can be examined, unless the disk or the system failed and it may be whole
    const ErrorCode code = servers.error().code;
    if (code == ErrorCode::kIo || code == ErrorCode::kUnavailable) return Fail(servers.error());
    TRY(file_system_.Rename(path_, path_ + ".damaged." + RandomHex(4)));
    servers = Json::object();
  }
  OAuthLogin login = LoginIn(*servers, server, url);
  change(login);
  (*servers)[server] = ToJson(login);
  TRY(Write(*servers));
  return login;
}

Result<bool> OAuthCredentials::Forget(const std::string& server) {
  const MutexLock lock(mutex_);
  const auto alone = TRY(FolderLock::Take(ParentDirectory(path_), kLongestWait));
  auto servers = TRY(Read());
  const bool was_logged_in = !LoginOf(MemberOf(servers, server)).tokens.access_token.empty();
  if (servers.erase(server) > 0) TRY(Write(servers));
  return was_logged_in;
}

OAuthAuthorizer::OAuthAuthorizer(Parts parts)
    : parts_(std::move(parts)), flow_(parts_.transport, parts_.url, parts_.options) {
  const auto login = parts_.credentials.Look(parts_.server, parts_.url);
  if (login && !StepsUp(*login)) Use(login->tokens);
}

// Whether a browser is available to agree to scopes that the server has requested since the last log-in.
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
  // Another request or process may have obtained a token meanwhile.
  if (!login.tokens.access_token.empty() && login.tokens.access_token != refused) {
    Use(login.tokens);
    return {};
  }
  // A refreshed token has the same rights as the old one, so it does not help if the server wants more rights or has
  // just rejected a new token.
  if (!wants_more && !is_second && !login.tokens.refresh_token.empty()) {
    const auto refreshed = RefreshNow(login);
    if (refreshed) return {};
    if (refreshed.error().code == ErrorCode::kUnavailable || stop_.stop_requested()) return refreshed;
    LogInfo("a log-in at an MCP server has ended", {{"server", parts_.server}, {"error", refreshed.error().message}});
  }
  return LogIn(challenge, login);
}

Result<void> OAuthAuthorizer::RefreshNow(OAuthLogin& login) {
  auto tokens = TRY(flow_.Refresh(login.tokens, login.registrations, stop_.get_token()));
  // A refresh token may be valid only once, so the new tokens are stored at once. A log-in or log-out meanwhile wins.
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
  // Without a browser no log-in can begin, so the next one will ask for the scopes that the server wants now.
  if (!parts_.browser) {
    if (!challenge.scope.empty()) {
      static_cast<void>(parts_.credentials.Change(parts_.server, parts_.url, [&](OAuthLogin& now) {
        now.wanted_scope = ScopeUnion(now.wanted_scope, challenge.scope);
      }));
    }
    const bool wants_more = challenge.error == "insufficient_scope";
    return Fail(Reason::kMcpLoginRequired, std::string("the server wants ") +
                                               (wants_more ? "more rights" : "a log-in") +
                                               ": run \"reprise mcp login " + parts_.server + "\"");
  }
  const std::string before = ScopeUnion(login.tokens.scope, login.wanted_scope);
  const auto attempt = TRY(flow_.Begin(challenge, parts_.redirect_uri, login.registrations, before, stop_.get_token()));
  // A client id and its secret belong to one authorization server. No other gets them just because the server names it.
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
