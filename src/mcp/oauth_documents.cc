#include "mcp/oauth_documents.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/public_address.h"
#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxUrl = 2048, kMaxScopes = 4096, kMaxServers = 8, kMaxMethods = 16;

tl::unexpected<Error> Unusable(std::string what) { return Fail(OAuthError(std::move(what))); }

bool IsTokenCharacter(char c) {
  static constexpr std::string_view kOther = "!#$%&'*+-.^_`|~/=:";  // includes the characters of token68
  return IsAsciiAlnum(c) || kOther.find(c) != std::string_view::npos;
}

Result<Json> Document(std::string_view text, const std::string& whose) {
  auto json = ParseJson(text);
  if (json) return json;
  return Unusable("the " + whose + "'s metadata cannot be read: " + json.error().message);
}

// Walks over the challenges of a header: SCHEME NAME=VALUE, NAME="VALUE", SCHEME ...
class ChallengeReader {
 public:
  explicit ChallengeReader(std::string_view text) : text_(text) {}

  std::optional<OAuthChallenge> Bearer() {
    std::optional<OAuthChallenge> found;
    bool in_bearer = false;
    while (Skip()) {
      const std::string word = Word();
      if (word.empty()) {
        ++at_;  // skips a character that belongs to no word
        continue;
      }
      if (!Takes('=')) {  // a scheme
        if (found) break;
        in_bearer = LowerCase(word) == "bearer";
        if (in_bearer) found.emplace();
        continue;
      }
      std::string value = Value();
      if (!in_bearer) continue;
      const std::string name = LowerCase(word);
      std::string* const target = name == "resource_metadata" ? &found->resource_metadata
                                  : name == "scope"           ? &found->scope
                                  : name == "error"           ? &found->error
                                                              : nullptr;
      if (target != nullptr && target->empty()) *target = std::move(value);
    }
    return found;
  }

 private:
  bool Skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == ',')) ++at_;
    return at_ < text_.size();
  }
  // Reads up to a "=" or a character that no word has.
  std::string Word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '=' && IsTokenCharacter(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  bool Takes(char c) {
    std::size_t next = at_;
    while (next < text_.size() && (text_[next] == ' ' || text_[next] == '\t')) ++next;
    if (next >= text_.size() || text_[next] != c) return false;
    at_ = next + 1;
    return true;
  }
  std::string Value() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    std::string value;
    if (at_ >= text_.size() || text_[at_] != '"') {
      while (at_ < text_.size() && IsTokenCharacter(text_[at_])) value += text_[at_++];
      return value;
    }
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      value += text_[at_];
    }
    ++at_;
    return value;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

// Whether `text` has only characters of scopes (RFC 6749, 3.3).
bool IsScope(std::string_view text) {
  return text.size() <= kMaxScopes &&
         std::ranges::all_of(text, [](char c) { return c >= 0x20 && c <= 0x7e && c != '"' && c != '\\'; });
}

std::string ScopesOf(const Json& list) {
  std::string text;
  if (!list.is_array()) return text;
  for (const Json& each : list) {
    if (each.is_string()) text += (text.empty() ? "" : " ") + each.get<std::string>();
  }
  return IsScope(text) ? text : "";
}

bool Has(const Json& list, std::string_view text) {
  return list.is_array() && std::find(list.begin(), list.end(), text) != list.end();
}

// "" for "/", so that a path can be appended.
std::string WithoutLastSlash(std::string path) {
  if (path.ends_with('/')) path.pop_back();
  return path;
}

// Whether the server is the resource or lies below it.
bool Covers(const UrlParts& resource, const UrlParts& server) {
  if (resource.origin() != server.origin()) return false;
  if (resource.path == server.path) return resource.query.empty() || resource.query == server.query;
  const std::string folder = WithoutLastSlash(resource.path) + "/";
  return resource.query.empty() && server.path.starts_with(folder);
}

Result<std::string> FormDecoded(std::string_view text) {
  auto out = PercentDecoded(text, /*plus_is_space=*/true);
  if (!out) return Fail(ErrorCode::kInvalidArgument, "the form is not well encoded");
  if (!IsUtf8(*out)) return Fail(ErrorCode::kInvalidArgument, "the form is not UTF-8");
  return *std::move(out);
}

std::string RootMetadataUrl(const UrlParts& server) {
  return server.origin() + "/.well-known/oauth-protected-resource";
}

}  // namespace

Error OAuthError(std::string message) { return Refused(Reason::kMcpOauth, std::move(message)); }

std::optional<OAuthChallenge> ParseChallenge(std::string_view www_authenticate) {
  auto challenge = ChallengeReader(www_authenticate.substr(0, 8192)).Bearer();
  if (challenge && !IsScope(challenge->scope)) challenge->scope.clear();
  return challenge;
}

std::string UrlParts::host() const { return std::string(HostOf(authority)); }

std::optional<UrlParts> ParseUrl(std::string_view url) {
  const bool is_visible = std::ranges::all_of(url, [](char c) { return c > 0x20 && c <= 0x7e; });
  const std::size_t mark = url.find("://");
  if (url.size() > kMaxUrl || !is_visible || mark == std::string_view::npos) return std::nullopt;
  UrlParts parts;
  parts.scheme = LowerCase(url.substr(0, mark));
  if (parts.scheme != "http" && parts.scheme != "https") return std::nullopt;
  const std::string_view rest = url.substr(mark + 3);
  const std::size_t end = std::min(rest.find_first_of("/?#\\"), rest.size());
  parts.authority = LowerCase(rest.substr(0, end));
  std::string_view behind = rest.substr(end);
  const bool is_plain = !parts.authority.empty() && !parts.authority.starts_with(':') &&
                        parts.authority.find('@') == std::string::npos && behind.find('#') == std::string_view::npos &&
                        behind.find('\\') == std::string_view::npos;
  if (!is_plain) return std::nullopt;
  const std::string own_port = parts.scheme == "https" ? ":443" : ":80";
  if (parts.authority == parts.host() + own_port) parts.authority.resize(parts.authority.size() - own_port.size());
  const std::size_t query = std::min(behind.find('?'), behind.size());
  parts.path = behind.substr(0, query);
  if (parts.path.empty()) parts.path = "/";
  parts.query = behind.substr(query);
  return parts;
}

bool IsSafeOAuthUrl(std::string_view url) {
  const auto parts = ParseUrl(url);
  return parts && (parts->scheme == "https" || IsLoopbackHost(parts->host()));
}

std::vector<std::string> ResourceMetadataUrls(const UrlParts& server) {
  const std::string root = RootMetadataUrl(server);
  if (server.path == "/") return {root};
  return {root + server.path, root};
}

std::vector<std::string> ServerMetadataUrls(const std::string& issuer) {
  const auto parts = ParseUrl(issuer);
  if (!parts) return {};
  const std::string known = parts->origin() + "/.well-known/";
  const std::string path = WithoutLastSlash(parts->path);
  std::vector<std::string> urls{known + "oauth-authorization-server" + path, known + "openid-configuration" + path};
  if (!path.empty()) urls.push_back(parts->origin() + path + "/.well-known/openid-configuration");
  return urls;
}

Result<OAuthResource> ReadResourceMetadata(std::string_view document, const UrlParts& server,
                                           std::string_view document_url) {
  const auto json = TRY(Document(document, "server"));
  OAuthResource resource{.resource = TextMember(json, "resource"), .authorization_servers = {}, .scopes = {}};
  const auto url = ParseUrl(resource.resource);
  if (!url || !Covers(*url, server)) return Unusable("the server's metadata speaks of another resource");
  // A token for the whole origin is valid at other owners' servers there, so only the origin itself may ask for it.
  if (url->path == "/" && document_url != RootMetadataUrl(server))
    resource.resource = server.origin() + server.path + server.query;
  const Json& servers = MemberOf(json, "authorization_servers");
  if (servers.is_array()) {
    for (const Json& each : servers) {
      const bool fits = each.is_string() && resource.authorization_servers.size() < kMaxServers;
      if (fits && IsSafeOAuthUrl(each.get_ref<const std::string&>()))
        resource.authorization_servers.push_back(each.get<std::string>());
    }
  }
  if (resource.authorization_servers.empty())
    return Unusable("the server's metadata names no authorization server with https");
  resource.scopes = ScopesOf(MemberOf(json, "scopes_supported"));
  return resource;
}

Result<OAuthServer> ReadServerMetadata(std::string_view document, const std::string& issuer) {
  const auto json = TRY(Document(document, "authorization server"));
  OAuthServer server{.issuer = TextMember(json, "issuer"),
                     .authorization_endpoint = TextMember(json, "authorization_endpoint"),
                     .token_endpoint = TextMember(json, "token_endpoint"),
                     .registration_endpoint = TextMember(json, "registration_endpoint"),
                     .token_methods = {}};
  if (server.issuer != issuer) return Unusable("the authorization server's metadata is of another issuer");
  if (!IsSafeOAuthUrl(server.authorization_endpoint) || !IsSafeOAuthUrl(server.token_endpoint))
    return Unusable("the authorization server's endpoints cannot be used: they are not https");
  if (!IsSafeOAuthUrl(server.registration_endpoint)) server.registration_endpoint.clear();
  if (!Has(MemberOf(json, "code_challenge_methods_supported"), "S256"))
    return Unusable("the authorization server does not have PKCE with S256");
  const Json& methods = MemberOf(json, "token_endpoint_auth_methods_supported");
  if (methods.is_array()) {
    for (const Json& each : methods) {
      if (each.is_string() && server.token_methods.size() < kMaxMethods)
        server.token_methods.push_back(each.get<std::string>());
    }
  }
  server.says_issuer = MemberOf(json, "authorization_response_iss_parameter_supported") == true;
  server.takes_metadata_url = MemberOf(json, "client_id_metadata_document_supported") == true;
  server.has_offline_access = Has(MemberOf(json, "scopes_supported"), "offline_access");
  return server;
}

OAuthServer ServerWithoutMetadata(const std::string& issuer) {
  return {.issuer = issuer,
          .authorization_endpoint = issuer + "/authorize",
          .token_endpoint = issuer + "/token",
          .registration_endpoint = issuer + "/register",
          .token_methods = {}};
}

std::string ScopeUnion(std::string_view a, std::string_view b) {
  std::vector<std::string_view> scopes;
  for (std::string_view text : {a, b}) {
    while (!text.empty()) {
      const std::size_t space = std::min(text.find(' '), text.size());
      const std::string_view scope = text.substr(0, space);
      if (!scope.empty() && std::ranges::find(scopes, scope) == scopes.end()) scopes.push_back(scope);
      text.remove_prefix(std::min(space + 1, text.size()));
    }
  }
  return Joined(scopes, " ");
}

std::string FormText(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string text;
  for (const auto& [name, value] : members)
    text += (text.empty() ? "" : "&") + PercentEncoded(name) + "=" + PercentEncoded(value);
  return text;
}

Result<std::vector<std::pair<std::string, std::string>>> ParseForm(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> members;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (part.empty()) continue;
    const std::size_t equals = std::min(part.find('='), part.size());
    auto name = TRY(FormDecoded(part.substr(0, equals)));
    auto value = TRY(FormDecoded(part.substr(std::min(equals + 1, part.size()))));
    if (std::ranges::any_of(members, [&](const auto& member) { return member.first == name; }))
      return Fail(ErrorCode::kInvalidArgument, "the form has a member twice");
    members.emplace_back(std::move(name), std::move(value));
  }
  return members;
}

}  // namespace reprise
