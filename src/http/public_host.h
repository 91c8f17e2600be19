#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

// The authority of a URL taken apart: "example.org:8443", "[::1]".
struct Authority {
  std::string host;                        // as it was written; an IPv6 address with its brackets
  std::optional<int> port = std::nullopt;  // 1 to 65535
};
// nullopt if it is none: a user, a path, blanks, a wildcard, a port with a sign or leading zeros.
std::optional<Authority> ParseAuthority(std::string_view text);

// A name under which clients reach this server though it does not listen under it: behind a proxy, a tunnel, a mapped
// port. Without a port, any.
using PublicHost = Authority;
// kInvalidArgument says what is wanted, without naming the setting.
Result<PublicHost> ParsePublicHost(std::string_view text);

}  // namespace reprise
