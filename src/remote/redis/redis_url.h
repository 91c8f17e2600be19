#pragma once

#include <string>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

// redis://[user:password@]host[:port][/db], or rediss:// with TLS. Percent-encoded parts are decoded.
struct RedisUrl {
  std::string host;
  std::string port = "6379";
  std::string user{}, password{};
  std::string database{};  // empty: the default
  bool is_tls = false;

  // kInvalidArgument; the message quotes no part of the URL.
  static Result<RedisUrl> Parse(std::string_view url);
  // For people, without user and password.
  std::string name() const { return host + ":" + port; }
};

}  // namespace reprise
