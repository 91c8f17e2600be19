#include "wire/gate.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/text.h"
#include "crypto/jwe.h"
#include "crypto/secret_key.h"
#include "wire/error_response.h"

namespace reprise {

namespace {

constexpr std::size_t kMaxHost = 253;  // characters; RFC 1035

std::optional<int> ParsePort(std::string_view text) {
  const auto port = ParseNumber<int>(text);
  if (!port || text.front() == '0' || *port < 1 || *port > 65'535) return std::nullopt;
  return port;
}

bool IsHostName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxHost &&
         std::ranges::all_of(text, [](char c) { return IsAsciiAlnum(c) || c == '-' || c == '.' || c == '_'; });
}

bool IsBracketedAddress(std::string_view text) {
  if (text.size() < 4 || text.front() != '[' || text.back() != ']') return false;
  in6_addr parsed{};
  return ::inet_pton(AF_INET6, std::string(text.substr(1, text.size() - 2)).c_str(), &parsed) == 1;
}

}  // namespace

std::optional<Authority> ParseAuthority(std::string_view text) {
  const std::size_t bracket = text.find(']');
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  Authority authority{.host = std::string(text.substr(0, colon))};
  if (colon != std::string_view::npos) {
    authority.port = ParsePort(text.substr(colon + 1));
    if (!authority.port) return std::nullopt;
  }
  if (!IsHostName(authority.host) && !IsBracketedAddress(authority.host)) return std::nullopt;
  return authority;
}

Result<PublicHost> ParsePublicHost(std::string_view text) {
  auto host = ParseAuthority(text);
  if (host) return *std::move(host);
  return Fail(ErrorCode::kInvalidArgument,
              "must be names or addresses with or without a port (example.org, example.org:8443, [2001:db8::1]), "
              "without https:// and without wildcards");
}

namespace {

// Takes the same time for all guesses of one length.
bool EqualsInConstantTime(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

std::optional<std::string_view> BearerToken(const RequestHead& head) {
  constexpr std::string_view kScheme = "Bearer ";
  if (head.Count("authorization") != 1) return std::nullopt;
  const std::string_view value = *head.Find("authorization");
  if (!EqualsIgnoringCase(value.substr(0, kScheme.size()), kScheme)) return std::nullopt;
  return TrimBlanks(value.substr(kScheme.size()));
}

constexpr std::string_view kPageKeyData = "reprise page key";  // the associated data of the seal

// Opens a token that LogIn sealed. Each token has a key of its own.
std::optional<std::string> OpenPageKey(std::string_view page_key, std::string_view cookie) {
  const auto sealed = DecodeBase64Url(page_key);
  const auto bytes = DecodeBase64Url(cookie);
  const auto key = bytes ? SecretKey::FromBytes(*bytes) : std::nullopt;
  if (!sealed || !key || sealed->size() < kGcmIvBytes + kGcmTagBytes) return std::nullopt;
  const std::string_view whole = *sealed;
  auto token = GcmOpen(*key, kPageKeyData, whole.substr(0, kGcmIvBytes),
                       std::string(whole.substr(kGcmIvBytes, whole.size() - kGcmIvBytes - kGcmTagBytes)),
                       whole.substr(whole.size() - kGcmTagBytes));
  return token ? std::optional(*std::move(token)) : std::nullopt;
}

// What a browser needs before it has the token. It contains no user data.
bool IsOfPage(const RequestHead& head) {
  const std::string_view path = std::string_view(head.target).substr(0, head.target.find('?'));
  if (head.method == "POST") return path == "/login";
  return (head.method == "GET" || head.method == "HEAD") && (path == "/" || path.starts_with("/assets/"));
}

// Health checks by a load balancer, which has no token. The answers contain no user data.
bool IsProbe(const RequestHead& head) {
  return (head.method == "GET" || head.method == "HEAD") && (head.target == "/healthz" || head.target == "/readyz");
}

Error NoToken() { return Refused(Reason::kUnauthenticated, "a valid bearer token is needed"); }

// "192.0.2.1:8000" or "[2001:db8::1]:8000".
bool IsAddressWithPort(std::string_view text, int port) {
  const std::string suffix = ":" + std::to_string(port);
  if (!text.ends_with(suffix)) return false;
  std::string host(text.substr(0, text.size() - suffix.size()));
  in6_addr parsed{};
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    return ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &parsed) == 1;
  }
  return ::inet_pton(AF_INET, host.c_str(), &parsed) == 1;
}

}  // namespace

Gate::Gate(Options options)
    : port_(options.port),
      any_address_(options.any_address),
      public_hosts_(std::move(options.public_hosts)),
      token_(std::move(options.token)),
      people_(std::move(options.people)),
      // Equal servers behind one name listen on different ports but share one cookie.
      cookie_name_(people_ ? "reprise" : "reprise_" + std::to_string(options.port)) {
  options.hosts.insert(options.hosts.end(), {"127.0.0.1", "localhost", "[::1]"});
  for (const std::string& host : options.hosts) {
    authorities_.push_back(host + ":" + std::to_string(options.port));
    if (options.port == 80) authorities_.push_back(host);
  }
}

std::optional<Reply> Gate::Check(const RequestHead& head, Peer peer) const {
  if (auto refusal = CheckHost(head)) return refusal;
  if (auto refusal = CheckOrigin(head)) return refusal;
  return CheckCaller(head, peer);
}

std::optional<Gate::Session> Gate::LogIn(std::string_view token, const RequestHead& head) const {
  if (!token_ && !people_) return Session();
  std::int64_t seconds = 31'536'000;
  if (!token_ || !EqualsInConstantTime(token, *token_)) {
    const auto until = people_ ? people_->Accepts(token) : Fail(NoToken());
    if (!until) return std::nullopt;
    if (*until) {
      const auto left = std::chrono::duration_cast<std::chrono::seconds>(**until - Now());
      seconds = std::min<std::int64_t>(seconds, left.count());
    }
  }
  const SecretKey key = SecretKey::Random();
  const auto sealed = GcmSeal(key, kPageKeyData, token);
  if (!sealed) return std::nullopt;
  const std::string* origin = head.Find("origin");
  const bool tls = origin && origin->starts_with("https://");
  return Session{.set_cookie = cookie_name_ + "=" + EncodeBase64Url(key.bytes()) +
                               "; Path=/; HttpOnly; SameSite=Strict; Max-Age=" + std::to_string(seconds) +
                               (tls ? "; Secure" : ""),
                 .page_key = EncodeBase64Url(sealed->iv + sealed->ciphertext + sealed->tag)};
}

// The bearer token, or the token that the page key and its cookie hold together. All cookies of this name are tried,
// because cookies ignore ports and other servers on this machine may have set some.
std::optional<std::string> Gate::ShownToken(const RequestHead& head) const {
  if (const auto bearer = BearerToken(head)) return std::string(*bearer);
  const std::string* const page_key = head.Find(LowerCase(kPageKeyHeader));
  if (!page_key) return std::nullopt;
  std::optional<std::string> token;
  for (const auto& [name, value] : head.headers) {
    if (name != "cookie") continue;
    AnyPart(value, ';', [&](std::string_view part) {
      const std::string_view cookie = TrimBlanks(part);
      if (cookie.starts_with(cookie_name_ + "="))
        token = OpenPageKey(*page_key, cookie.substr(cookie_name_.size() + 1));
      return token.has_value();
    });
    if (token) break;
  }
  return token;
}

bool Gate::IsOurs(std::string_view host_and_port) const {
  if (any_address_ && IsAddressWithPort(host_and_port, port_)) return true;
  return std::ranges::any_of(authorities_,
                             [&](const std::string& ours) { return EqualsIgnoringCase(ours, host_and_port); });
}

// True if a public host has this name and port. A request without a port means its scheme's default port.
bool Gate::IsPublic(const Authority& authority, int default_port) const {
  const int port = authority.port.value_or(default_port);
  return std::ranges::any_of(public_hosts_, [&](const PublicHost& host) {
    return EqualsIgnoringCase(host.host, authority.host) && (!host.port || *host.port == port);
  });
}

// A web page reaches a local server by a name that resolves to 127.0.0.1 (DNS rebinding). The Host header shows that
// name.
std::optional<Reply> Gate::CheckHost(const RequestHead& head) const {
  if (head.Count("host") == 1) {
    const std::string_view host = *head.Find("host");
    // Hand-written probes send a literal address without the port. That is safe, because an address cannot be rebound.
    if (IsOurs(host) || host == "127.0.0.1" || host == "[::1]") return std::nullopt;
    // Nothing trustworthy says whether the client reached the proxy over TLS, so both default ports count.
    const auto authority = ParseAuthority(host);
    if (authority && (IsPublic(*authority, 443) || IsPublic(*authority, 80))) return std::nullopt;
  }
  return ErrorReply(Reason::kForbiddenHost, "the Host header must name this server, or a name in public_hosts");
}

// True for pages served under our own names or under a public one. If a public host lists no port, other programs may
// serve pages on other ports of that name. So the origin must then equal the request's Host or have its scheme's
// default port.
bool Gate::IsOwnOrigin(std::string_view origin, const RequestHead& head) const {
  constexpr std::string_view kHttp = "http://", kHttps = "https://";
  const bool tls = origin.starts_with(kHttps);
  if (!tls && !origin.starts_with(kHttp)) return false;
  origin.remove_prefix(tls ? kHttps.size() : kHttp.size());
  if (!tls && IsOurs(origin)) return true;
  const auto authority = ParseAuthority(origin);
  if (!authority) return false;
  const int port = tls ? 443 : 80;
  const bool same_as_host = EqualsIgnoringCase(origin, *head.Find("host"));
  if (!authority->port || same_as_host) return IsPublic(*authority, port);
  return std::ranges::any_of(public_hosts_, [&](const PublicHost& host) {
    return host.port == authority->port && EqualsIgnoringCase(host.host, authority->host);
  });
}

bool Gate::IsLocal(const RequestHead& head, Peer peer, const Principal& principal) const {
  if (peer != Peer::kTrusted || principal.role != Principal::Role::kOperator) return false;
  const bool came_by_proxy = std::ranges::any_of(head.headers, [](const auto& header) {
    constexpr std::array kNames{"forwarded", "via", "x-real-ip", "cf-connecting-ip", "true-client-ip"};
    return header.first.starts_with("x-forwarded") || std::ranges::count(kNames, std::string_view(header.first)) > 0;
  });
  if (came_by_proxy) return false;  // a proxy on this machine may run as the same user
  const auto is_loopback = [&](std::string_view authority) {
    return std::ranges::any_of(std::array{"127.0.0.1", "localhost", "[::1]"}, [&](std::string_view host) {
      return EqualsIgnoringCase(authority, host) ||
             EqualsIgnoringCase(authority, std::string(host) + ":" + std::to_string(port_));
    });
  };
  const std::string* const origin = head.Find("origin");
  constexpr std::string_view kHttp = "http://";
  if (origin && !(origin->starts_with(kHttp) && is_loopback(std::string_view(*origin).substr(kHttp.size())))) {
    return false;
  }
  const std::string* const host = head.Find("host");
  return host != nullptr && is_loopback(*host);
}

std::optional<Reply> Gate::CheckOrigin(const RequestHead& head) const {
  for (const auto& [name, value] : head.headers) {
    if (name == "origin") {
      if (!IsOwnOrigin(value, head)) {
        return ErrorReply(Reason::kForbiddenOrigin, "requests from other origins are not accepted");
      }
    } else if (name == "sec-fetch-site" &&
               (EqualsIgnoringCase(value, "cross-site") || EqualsIgnoringCase(value, "same-site"))) {
      return ErrorReply(Reason::kForbiddenOrigin, "requests from other sites are not accepted");
    }
  }
  return std::nullopt;
}

std::optional<Reply> Gate::CheckCaller(const RequestHead& head, Peer peer) const {
  if (people_) return std::nullopt;  // Identify checks the token
  if (token_) {
    const auto shown = ShownToken(head);
    if (shown ? EqualsInConstantTime(*shown, *token_) : IsOfPage(head)) return std::nullopt;
    return ErrorReply(NoToken());
  }
  if (peer == Peer::kTrusted) return std::nullopt;
  return ErrorReply(Reason::kForbiddenUser, "only the user who runs this server may use it");
}

std::optional<Result<Principal>> Gate::Identify(const RequestHead& head, Authenticator::Done done) const {
  if (!people_) return Principal{};
  if (const auto shown = ShownToken(head)) {
    if (token_ && EqualsInConstantTime(*shown, *token_)) return Principal{};
    return people_->Identify(*shown, std::move(done));
  }
  if (IsOfPage(head) || IsProbe(head)) return Principal{.role = Principal::Role::kNobody};
  return Fail(NoToken());
}

}  // namespace reprise
