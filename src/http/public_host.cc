#include "http/public_host.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace reprise {
namespace {

constexpr std::size_t kMaxHost = 253;  // characters; RFC 1035

std::optional<int> ParsePort(std::string_view text) {
  int port = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool whole = failure == std::errc() && end == text.data() + text.size();
  if (!whole || text.front() == '0' || port < 1 || port > 65'535) return std::nullopt;
  return port;
}

bool IsHostName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxHost && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
           c == '_';
  });
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

}  // namespace reprise
