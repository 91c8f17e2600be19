#include "remote/redis/redis_url.h"

#include "base/text.h"

namespace reprise {
namespace {

constexpr int kMostPort = 65535;

bool IsNumber(std::string_view text, std::size_t most_digits) {
  return !text.empty() && text.size() <= most_digits && text.find_first_not_of("0123456789") == text.npos;
}

std::string Decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const int high = text[at] == '%' && at + 2 < text.size() ? HexDigit(text[at + 1]) : -1;
    const int low = high < 0 ? -1 : HexDigit(text[at + 2]);
    if (low >= 0) at += 2;
    decoded += low >= 0 ? static_cast<char>(high * 16 + low) : text[at];
  }
  return decoded;
}

tl::unexpected<Error> Unusable(std::string_view why) {
  return Fail(
      ErrorCode::kInvalidArgument,
      "the address of Redis must be redis://[user:password@]host[:port][/db], or rediss://: " + std::string(why));
}

}  // namespace

Result<RedisUrl> RedisUrl::Parse(std::string_view url) {
  RedisUrl parsed;
  if (url.starts_with("rediss://")) {
    parsed.is_tls = true;
  } else if (!url.starts_with("redis://")) {
    return Unusable("it has another scheme");
  }
  url.remove_prefix(url.find("//") + 2);
  if (const auto at = url.rfind('@'); at != url.npos) {
    const std::string_view who = url.substr(0, at);
    const auto colon = who.find(':');
    if (colon == who.npos) return Unusable("a user needs a password");
    parsed.user = Decoded(who.substr(0, colon));
    parsed.password = Decoded(who.substr(colon + 1));
    url.remove_prefix(at + 1);
  }
  if (const auto slash = url.find('/'); slash != url.npos) {
    parsed.database = url.substr(slash + 1);
    if (!parsed.database.empty() && !IsNumber(parsed.database, 5)) return Unusable("the part after / must be a number");
    url = url.substr(0, slash);
  }
  const auto bracket = url.find(']');  // the end of an IPv6 address
  if (const auto colon = url.rfind(':'); colon != url.npos && (bracket == url.npos || colon > bracket)) {
    parsed.port = url.substr(colon + 1);
    if (!IsNumber(parsed.port, 5) || std::stoi(parsed.port) > kMostPort)
      return Unusable("the port is a number up to 65535");
    url = url.substr(0, colon);
  }
  if (url.starts_with('[') && url.ends_with(']')) url = url.substr(1, url.size() - 2);
  if (url.empty()) return Unusable("it names no host");
  parsed.host = url;
  return parsed;
}

}  // namespace reprise
