#include "tools/network/host_rules.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "base/try.h"

namespace reprise {

namespace {

constexpr std::size_t kMaxHostName = 253, kMaxLabel = 63;
constexpr std::uint16_t kHttp = 80, kHttps = 443;

bool IsNameCharacter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; }

bool IsName(std::string_view name) {
  if (name.empty() || name.size() > kMaxHostName) return false;
  std::string_view label;
  for (std::string_view rest = name;; rest.remove_prefix(label.size() + 1)) {
    label = rest.substr(0, rest.find('.'));
    if (label.empty() || label.size() > kMaxLabel || !std::ranges::all_of(label, IsNameCharacter)) {
      return false;
    }
    if (label.size() == rest.size()) break;
  }
  // Resolvers take such a name for an address: "127.1", "2130706433", "0x7f000001".
  return label.find_first_not_of("0123456789") != std::string_view::npos && !label.starts_with("0x");
}

std::optional<std::string> AddressIn(const std::string& text) {
  in_addr v4{};
  in6_addr v6{};
  std::array<char, INET6_ADDRSTRLEN> written{};
  if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) return ::inet_ntop(AF_INET, &v4, written.data(), written.size());
  if (::inet_pton(AF_INET6, text.c_str(), &v6) != 1) return std::nullopt;
  if (!IN6_IS_ADDR_V4MAPPED(&v6)) return ::inet_ntop(AF_INET6, &v6, written.data(), written.size());
  std::copy_n(v6.s6_addr + 12, 4, reinterpret_cast<unsigned char*>(&v4));
  return ::inet_ntop(AF_INET, &v4, written.data(), written.size());
}

std::optional<std::uint16_t> ParsePort(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

// The host and, if there is one, the port of "host:port"; nullopt if there is no such form.
std::optional<std::pair<std::string_view, std::optional<std::uint16_t>>> Split(std::string_view text) {
  const bool has_brackets = text.starts_with('[');
  const std::size_t end = has_brackets ? text.find(']') : text.find(':');
  if (has_brackets && end == text.npos) return std::nullopt;
  const std::string_view host = has_brackets ? text.substr(1, end - 1) : text.substr(0, end);
  if (has_brackets != (host.find(':') != host.npos)) return std::nullopt;
  const std::string_view rest = text.substr(has_brackets ? end + 1 : host.size());
  if (rest.empty()) return std::pair(host, std::optional<std::uint16_t>());
  const auto port = ParsePort(rest.substr(1));
  if (rest.front() != ':' || !port) return std::nullopt;
  return std::pair(host, port);
}

}  // namespace

std::optional<std::string> CanonicalHost(std::string_view text) {
  if (text.find('\0') != text.npos) return std::nullopt;
  if (auto address = AddressIn(std::string(text))) return address;
  std::string name(text.ends_with('.') ? text.substr(0, text.size() - 1) : text);
  name = LowerCase(std::string_view(name));
  if (!IsName(name)) return std::nullopt;
  return name;
}

bool IsLocalName(std::string_view canonical) { return canonical == "localhost" || canonical.ends_with(".localhost"); }

bool IsAddress(std::string_view canonical) {
  return canonical.find(':') != canonical.npos || AddressIn(std::string(canonical)).has_value();
}

std::string HostPort::str() const {
  const bool is_v6 = host.find(':') != host.npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::optional<HostPort> ParseHostPort(std::string_view text, std::uint16_t usual_port) {
  const auto parts = Split(text);
  if (!parts) return std::nullopt;
  auto host = CanonicalHost(parts->first);
  const std::uint16_t port = parts->second.value_or(usual_port);
  if (!host || port == 0) return std::nullopt;
  return HostPort{*std::move(host), port};
}

bool HostRules::Rule::Covers(const std::string& name) const {
  if (!is_suffix) return name == host;
  return host.empty() || (name.ends_with(host) && name.size() > host.size() && !IsAddress(name));
}

Result<HostRules::Rule> HostRules::ParseRule(const std::string& text) {
  const bool is_suffix = text.starts_with('*');
  const bool is_any = text == "*" || text.starts_with("*:");
  const auto parts = Split(std::string_view(text).substr(is_suffix ? 1 : 0));
  const bool has_dot = parts && parts->first.starts_with('.');
  auto host =
      parts && !is_any && has_dot == is_suffix ? CanonicalHost(parts->first.substr(has_dot ? 1 : 0)) : std::nullopt;
  if (!parts || (!is_any && !host)) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "tools.network: \"" + text +
            "\" is not a host: write \"name\", \"*.name\", an IP address (IPv6 in brackets) or \"*\", and \":port\" "
            "behind it if only that port is meant");
  }
  Rule rule{.host = is_any ? "" : (is_suffix ? "." : "") + *host, .is_suffix = is_suffix, .port = parts->second};
  return rule;
}

Result<HostRules> HostRules::Parse(const std::vector<std::string>& allow, const std::vector<std::string>& deny) {
  HostRules rules;
  for (const std::string& text : allow) rules.allow_.push_back(TRY(ParseRule(text)));
  for (const std::string& text : deny) rules.deny_.push_back(TRY(ParseRule(text)));
  return rules;
}

HostRules::Answer HostRules::For(const HostPort& target) const {
  for (const Rule& rule : deny_) {
    if (rule.Covers(target.host) && rule.port.value_or(target.port) == target.port) return {Verdict::kDenied};
  }
  Answer answer;
  for (const Rule& rule : allow_) {
    const bool fits_port = rule.port ? *rule.port == target.port : target.port == kHttp || target.port == kHttps;
    if (!fits_port || !rule.Covers(target.host)) continue;
    answer.verdict = Verdict::kAllowed;
    answer.names_host = answer.names_host || !rule.is_suffix;
    answer.names_port = answer.names_port || (!rule.is_suffix && rule.port);
  }
  return answer;
}

std::vector<std::uint16_t> HostRules::LoopbackPorts() const {
  std::vector<std::uint16_t> ports;
  for (const Rule& rule : allow_) {
    const bool is_here = !rule.is_suffix && rule.host == "localhost" && rule.port;
    if (is_here && For({rule.host, *rule.port}).verdict == Verdict::kAllowed) ports.push_back(*rule.port);
  }
  return ports;
}

}  // namespace reprise
