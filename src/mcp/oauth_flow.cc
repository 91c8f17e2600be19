#include "mcp/oauth_flow.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/public_address.h"
#include "base/system.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

constexpr std::chrono::milliseconds kAnswerLimit{15'000};
constexpr std::size_t kMaxDocument = 256 * 1024;
constexpr std::size_t kMaxToken = 16 * 1024;
constexpr std::size_t kMaxWords = 300;

class Body final : public HttpResponseHandler {
 public:
  void OnHead(int its_status, const HttpHeaders&) override { status = its_status; }
  bool OnData(std::string_view bytes) override {
    text += bytes;
    return text.size() <= kMaxDocument;
  }
  int status = 0;
  std::string text;
};

// The token endpoint's authentication method: `wanted` if the server supports it. With a secret the default is Basic,
// which every server must support (RFC 6749, 2.3.1).
std::string TokenMethod(const OAuthServer& server, const std::string& wanted, bool has_secret) {
  const auto takes = [&](std::string_view method) {
    return std::ranges::find(server.token_methods, method) != server.token_methods.end();
  };
  if (!has_secret) return "none";
  const bool is_ours = wanted == "client_secret_basic" || wanted == "client_secret_post" || wanted == "none";
  if (is_ours && (server.token_methods.empty() || takes(wanted))) return wanted;
  if (server.token_methods.empty() || takes("client_secret_basic")) return "client_secret_basic";
  if (takes("client_secret_post")) return "client_secret_post";
  return "none";
}

// The reason that a server gives for an error: only the members of RFC 6749, 5.2.
std::string ReasonIn(std::string_view body) {
  const auto json = ParseJson(body);
  if (!json) return "";
  std::string text = TextMember(*json, "error");
  if (const std::string more = TextMember(*json, "error_description"); !more.empty()) text += ": " + more;
  return std::string(Utf8Prefix(text, kMaxWords));
}

// Whether text is safe in a header and an argument: only visible characters.
bool IsCredential(std::string_view text) {
  return !text.empty() && text.size() <= kMaxToken &&
         std::ranges::all_of(text, [](char c) { return c > 0x20 && c <= 0x7e; });
}

std::int64_t SecondsNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Error Unavailable(const std::string& what, int status) {
  return MakeError(ErrorCode::kUnavailable, what + " cannot be had now (HTTP status " + std::to_string(status) + ")");
}

// A path for an authorization server's own redirect URI.
std::string PathOf(const std::string& issuer) {
  constexpr std::size_t kDigits = 16;
  const std::string digest = Sha256Digest({issuer});
  return digest.substr(digest.find(':') + 1, kDigits);
}

const std::string& MemberIn(const std::vector<std::pair<std::string, std::string>>& form, std::string_view name) {
  static const std::string kNone;
  const auto found = std::ranges::find_if(form, [&](const auto& each) { return each.first == name; });
  return found == form.end() ? kNone : found->second;
}

}  // namespace

// A server elsewhere must not direct requests to this machine or network: its metadata may name any host, but only the
// server's own host may have a private address.
Result<OAuthFlow::Answer> OAuthFlow::Send(HttpRequest request, const std::stop_token& stop) const {
  const auto target = ParseUrl(request.url), server = ParseUrl(server_url_);
  if (!target || !server || !IsSafeOAuthUrl(request.url)) return Fail(OAuthError("a URL of the log-in is not https"));
  const bool is_near = IsLoopbackHost(server->host());
  if (!is_near && IsLoopbackHost(target->host())) return Fail(OAuthError("the server sends log-ins to this machine"));
  request.public_addresses_only = !is_near && target->host() != server->host();
  request.headers.emplace_back("Accept", "application/json");
  request.connect_timeout = request.idle_timeout = kAnswerLimit;
  request.total_timeout = kAnswerLimit;
  Body body;
  const auto done = transport_.Perform(std::move(request), body, stop);
  if (body.text.size() > kMaxDocument) return Fail(OAuthError("a document of the log-in is too large"));
  if (!done) return Fail(done.error());
  return Answer{.status = body.status, .body = std::move(body.text)};
}

Result<OAuthFlow::Answer> OAuthFlow::Get(const std::string& url, const std::stop_token& stop) const {
  HttpRequest request;
  request.url = url;
  return Send(std::move(request), stop);
}

Result<OAuthResource> OAuthFlow::FindResource(const OAuthChallenge& challenge, const std::stop_token& stop) const {
  const auto server = ParseUrl(server_url_);
  if (!server) return Fail(OAuthError("the server's URL cannot be used for log-ins"));
  std::vector<std::string> urls = ResourceMetadataUrls(*server);
  if (!challenge.resource_metadata.empty()) {
    // Must be on the server itself, because no other server may say what its tokens are for.
    const auto named = ParseUrl(challenge.resource_metadata);
    if (!named || named->origin() != server->origin())
      return Fail(OAuthError("the server says that its metadata is on another server"));
    urls = {challenge.resource_metadata};
  }
  for (const std::string& url : urls) {
    auto answer = TRY(Get(url, stop));
    if (answer.status == 200) return ReadResourceMetadata(answer.body, *server, url);
    if (answer.status >= 500) return Fail(Unavailable("the server's metadata", answer.status));
  }
  if (!challenge.resource_metadata.empty())
    return Fail(OAuthError("the server does not say who gives tokens for it (its metadata is not where it says)"));
  // Revision 2025-03-26: the authorization server is at the server's root and does not know resources.
  return OAuthResource{.resource = {}, .authorization_servers = {server->origin()}, .scopes = {}};
}

bool OAuthFlow::IsOwnOrigin(const std::string& issuer) const {
  const auto server = ParseUrl(server_url_);
  return server && server->origin() == issuer;
}

Result<OAuthServer> OAuthFlow::FindServer(const std::string& issuer, const std::stop_token& stop) const {
  for (const std::string& url : ServerMetadataUrls(issuer)) {
    auto answer = TRY(Get(url, stop));
    if (answer.status == 200) {
      auto found = ReadServerMetadata(answer.body, issuer);
      // Some servers write their issuer with the trailing slash of an origin's URL.
      return found || !IsOwnOrigin(issuer) ? found : ReadServerMetadata(answer.body, issuer + "/");
    }
    if (answer.status >= 500) return Fail(Unavailable("the authorization server's metadata", answer.status));
  }
  if (IsOwnOrigin(issuer)) return ServerWithoutMetadata(issuer);
  return Fail(OAuthError("the authorization server does not describe itself"));
}

std::optional<OAuthRegistration> OAuthFlow::Configured(const OAuthServer& server) const {
  OAuthRegistration ours{.issuer = server.issuer, .client_id = {}, .client_secret = {}, .token_method = "none"};
  ours.is_configured = true;
  if (!options_.client_id.empty()) {
    ours.client_id = options_.client_id;
    ours.client_secret = options_.client_secret;
    ours.token_method = TokenMethod(server, "", !ours.client_secret.empty());
    return ours;
  }
  if (options_.client_metadata_url.empty() || !server.takes_metadata_url) return std::nullopt;
  ours.client_id = options_.client_metadata_url;
  return ours;
}

Result<OAuthRegistration> OAuthFlow::Register(const OAuthServer& server, const std::string& redirect_uri,
                                              const std::vector<OAuthRegistration>& known,
                                              const std::stop_token& stop) const {
  if (auto configured = Configured(server)) return *std::move(configured);
  OAuthRegistration ours{.issuer = server.issuer, .client_id = {}, .client_secret = {}, .token_method = "none"};
  const auto earlier = std::ranges::find_if(known, [&](const OAuthRegistration& each) {
    return each.issuer == server.issuer && each.redirect_uri == redirect_uri;
  });
  if (server.registration_endpoint.empty() && earlier != known.end()) return *earlier;
  if (server.registration_endpoint.empty()) {
    return Fail(OAuthError("the authorization server " + server.issuer +
                           " registers nobody by itself: give auth.client_id in the configuration"));
  }
  HttpRequest request;
  request.method = "POST";
  request.url = server.registration_endpoint;
  request.headers = {{"Content-Type", "application/json"}};
  const Json wish = {{"client_name", "Reprise"},
                     {"redirect_uris", Json::array({redirect_uri})},
                     {"grant_types", Json::array({"authorization_code", "refresh_token"})},
                     {"response_types", Json::array({"code"})},
                     {"token_endpoint_auth_method", TokenMethod(server, "none", true)},
                     {"application_type", "native"}};
  request.body = DumpJson(wish);
  const auto answer = TRY(Send(std::move(request), stop));
  if (answer.status >= 400 && earlier != known.end()) return *earlier;  // it may limit registrations
  const auto json = ParseJson(answer.body);
  ours.client_id = json && answer.status < 300 ? TextMember(*json, "client_id") : "";
  if (!IsCredential(ours.client_id)) {
    const std::string why = ReasonIn(answer.body);
    return Fail(OAuthError("the authorization server does not register this client (HTTP status " +
                           std::to_string(answer.status) + (why.empty() ? ")" : "; " + why + ")")));
  }
  ours.client_secret = TextMember(*json, "client_secret");
  if (!ours.client_secret.empty() && !IsCredential(ours.client_secret))
    return Fail(OAuthError("the authorization server gives a secret that cannot be used"));
  ours.redirect_uri = redirect_uri;
  ours.token_method = TokenMethod(server, TextMember(*json, "token_endpoint_auth_method"), !ours.client_secret.empty());
  return ours;
}

Result<OAuthAttempt> OAuthFlow::Begin(const OAuthChallenge& challenge, const std::string& redirect_uri,
                                      const std::vector<OAuthRegistration>& known, const std::string& asked_before,
                                      const std::stop_token& stop) const {
  const auto resource = TRY(FindResource(challenge, stop));
  OAuthAttempt attempt;
  const auto& servers = resource.authorization_servers;
  const bool is_named = std::ranges::find(servers, options_.issuer) != servers.end();
  if (!options_.issuer.empty() && !is_named)
    return Fail(OAuthError("the server names " + servers.front() + " for log-ins, and auth.issuer names another"));
  attempt.server = TRY(FindServer(is_named ? options_.issuer : servers.front(), stop));
  attempt.redirect_uri = redirect_uri + (options_.issuer.empty() ? "/" + PathOf(attempt.server.issuer) : "");
  attempt.registration = TRY(Register(attempt.server, attempt.redirect_uri, known, stop));
  attempt.resource = resource.resource;
  attempt.state = RandomHex(32);
  attempt.verifier = RandomHex(32);
  const std::string wanted = challenge.scope.empty() ? resource.scopes : challenge.scope;
  attempt.scope = ScopeUnion(ScopeUnion(asked_before, wanted), options_.scopes);
  if (attempt.server.has_offline_access) attempt.scope = ScopeUnion(attempt.scope, "offline_access");
  std::vector<std::pair<std::string, std::string>> query{
      {"response_type", "code"},
      {"client_id", attempt.registration.client_id},
      {"redirect_uri", attempt.redirect_uri},
      {"state", attempt.state},
      {"code_challenge", EncodeBase64Url(Sha256Bytes({attempt.verifier}))},  // RFC 7636, 4.2
      {"code_challenge_method", "S256"}};
  if (!attempt.resource.empty()) query.emplace_back("resource", attempt.resource);
  if (!attempt.scope.empty()) query.emplace_back("scope", attempt.scope);
  const std::string& endpoint = attempt.server.authorization_endpoint;
  attempt.url = endpoint + (endpoint.find('?') == std::string::npos ? "?" : "&") + FormText(query);
  return attempt;
}

Result<OAuthTokens> OAuthFlow::Finish(const OAuthAttempt& attempt, std::string_view query,
                                      const std::stop_token& stop) const {
  const auto form = TRY(ParseForm(query));
  if (MemberIn(form, "state") != attempt.state) return Fail(OAuthError("the answer belongs to another log-in"));
  // Checked before any other member, because the answer may be another server's (RFC 9207).
  const std::string& issuer = MemberIn(form, "iss");
  if (issuer.empty() ? attempt.server.says_issuer : issuer != attempt.server.issuer)
    return Fail(OAuthError("the answer is not that of the authorization server that was asked"));
  if (const std::string& error = MemberIn(form, "error"); !error.empty()) {
    const std::string& more = MemberIn(form, "error_description");
    return Fail(OAuthError("the authorization server refused: " +
                           std::string(Utf8Prefix(more.empty() ? error : error + ": " + more, kMaxWords))));
  }
  const std::string& code = MemberIn(form, "code");
  if (code.empty()) return Fail(OAuthError("the answer has no code"));
  auto tokens = TRY(AskForTokens(attempt.server, attempt.registration,
                                 {{"grant_type", "authorization_code"},
                                  {"code", code},
                                  {"redirect_uri", attempt.redirect_uri},
                                  {"code_verifier", attempt.verifier}},
                                 attempt.resource, stop));
  tokens.resource = attempt.resource;
  // Includes requested scopes that were not granted; otherwise they would be requested again and again.
  tokens.scope = ScopeUnion(attempt.scope, tokens.scope);
  return tokens;
}

Result<OAuthTokens> OAuthFlow::Refresh(const OAuthTokens& tokens, const std::vector<OAuthRegistration>& known,
                                       const std::stop_token& stop) const {
  const auto server = TRY(FindServer(tokens.issuer, stop));
  // Only a log-in that registered has left a registration for this issuer, so the tokens were given to that client.
  const auto registered = std::ranges::find(known, tokens.issuer, &OAuthRegistration::issuer);
  const auto ours =
      registered != known.end() && options_.client_id.empty() ? std::optional(*registered) : Configured(server);
  if (!ours) return Fail(OAuthError("this client is not registered any more"));
  auto fresh =
      TRY(AskForTokens(server, *ours, {{"grant_type", "refresh_token"}, {"refresh_token", tokens.refresh_token}},
                       tokens.resource, stop));
  fresh.resource = tokens.resource;
  fresh.scope = tokens.scope;
  if (fresh.refresh_token.empty()) fresh.refresh_token = tokens.refresh_token;
  return fresh;
}

Result<OAuthTokens> OAuthFlow::AskForTokens(const OAuthServer& server, const OAuthRegistration& registration,
                                            std::vector<std::pair<std::string, std::string>> form,
                                            const std::string& resource, const std::stop_token& stop) const {
  if (!resource.empty()) form.emplace_back("resource", resource);
  HttpRequest request;
  request.method = "POST";
  request.url = server.token_endpoint;
  request.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  if (registration.token_method == "client_secret_basic") {
    // RFC 6749, 2.3.1 wants both form-encoded first. FormText writes "=value" for an empty name; substr drops the "=".
    const std::string id = FormText({{"", registration.client_id}}).substr(1);
    const std::string secret = FormText({{"", registration.client_secret}}).substr(1);
    request.headers.emplace_back("Authorization", "Basic " + EncodeBase64(id + ":" + secret));
  } else {
    form.emplace_back("client_id", registration.client_id);
    if (registration.token_method == "client_secret_post")
      form.emplace_back("client_secret", registration.client_secret);
  }
  request.body = FormText(form);
  const auto answer = TRY(Send(std::move(request), stop));
  const auto json = ParseJson(answer.body);
  if (answer.status != 200 || !json) {
    const std::string why = ReasonIn(answer.body);
    Error error = OAuthError("the authorization server gives no token (HTTP status " + std::to_string(answer.status) +
                             (why.empty() ? ")" : "; " + why + ")"));
    if (json && TextMember(*json, "error") == "invalid_grant") error.reason = kOAuthGrantEnded;
    return Fail(std::move(error));
  }
  OAuthTokens tokens{.issuer = server.issuer,
                     .resource = {},
                     .access_token = TextMember(*json, "access_token"),
                     .refresh_token = TextMember(*json, "refresh_token"),
                     .scope = TextMember(*json, "scope")};
  const bool is_bearer = LowerCase(TextMember(*json, "token_type")) == "bearer";
  if (!is_bearer || !IsCredential(tokens.access_token))
    return Fail(OAuthError("the authorization server gives a token that cannot be used"));
  if (!tokens.refresh_token.empty() && !IsCredential(tokens.refresh_token)) tokens.refresh_token.clear();
  const Json& lifetime = MemberOf(*json, "expires_in");
  if (lifetime.is_number()) {
    const auto seconds = static_cast<std::int64_t>(std::clamp(lifetime.get<double>(), 0.0, 10.0 * 365 * 86400));
    tokens.expires_at = SecondsNow() + seconds;
  }
  return tokens;
}

}  // namespace reprise
