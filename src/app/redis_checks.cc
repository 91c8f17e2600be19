#include "app/redis_checks.h"

namespace reprise {

RedisSignals::Options RedisOptionsFrom(const Options& options, Signals* otherwise) {
  return {.urls = options.redis.urls, .ca_file = options.redis.ca_file, .otherwise = otherwise};
}

// Servers do without it, more slowly.
Finding CheckRedis(const Options& options) {
  const auto checked = RedisSignals::Check(RedisOptionsFrom(options, nullptr));
  if (checked) return {"redis", Verdict::kOk, "Redis lets this server in"};
  const std::string& detail = checked.error().detail;
  return {"redis", Verdict::kWarning, checked.error().message + (detail.empty() ? "" : " (" + detail + ")")};
}

}  // namespace reprise
