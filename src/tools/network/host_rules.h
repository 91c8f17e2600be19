#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"

namespace reprise {

// The one spelling of a host that rules, checks and connections use: a name in lower case without the dot at its end
// (IDN only as "xn--..."), or an IP address as inet_ntop(3) writes it, without brackets. nullopt for everything else,
// such as an address in another notation (decimal, octal, hexadecimal, shortened), a user before "@" or a zone.
std::optional<std::string> CanonicalHost(std::string_view text);
// Whether a canonical host is an address.
bool IsAddress(std::string_view canonical);
// "localhost" and what is below it: this machine, whatever a resolver says.
bool IsLocalName(std::string_view canonical);

struct HostPort {
  std::string host;  // canonical
  std::uint16_t port = 0;
  bool operator==(const HostPort&) const = default;
  std::string str() const;  // "[::1]:80"
};
// "HOST" or "HOST:PORT"; an IPv6 address needs brackets. `usual_port` where none is given; 0: one must be given.
std::optional<HostPort> ParseHostPort(std::string_view text, std::uint16_t usual_port);

// The hosts that commands may reach (tools.network): "packages.example", "*.forge.example:443", "10.0.0.5:80",
// "localhost:5432", "*". Without a port a rule allows 80 and 443, and denies every port. "*.x" covers names below x,
// not x itself. Immutable.
class HostRules {
 public:
  // kInvalidArgument names the rule that cannot be understood.
  static Result<HostRules> Parse(const std::vector<std::string>& allow, const std::vector<std::string>& deny);

  enum class Verdict { kAllowed, kDenied, kUnknown };
  struct Answer {
    Verdict verdict = Verdict::kUnknown;
    bool names_host = false;  // the host itself, so that it may have a private address
    bool names_port = false;  // so that it may be this machine
  };
  Answer For(const HostPort& target) const;

  // The ports of "localhost:PORT" that are allowed.
  std::vector<std::uint16_t> LoopbackPorts() const;

 private:
  struct Rule {
    std::string host;  // canonical, or what follows "*"
    bool is_suffix = false;
    std::optional<std::uint16_t> port;
    bool Covers(const std::string& name) const;
  };
  static Result<Rule> ParseRule(const std::string& text);

  std::vector<Rule> allow_, deny_;
};

}  // namespace reprise
