#include "agent/retry_policy.h"

#include <algorithm>

namespace reprise {

std::optional<std::chrono::milliseconds> RetryDelay(const RetryPolicy& policy, const Error& error, int retries,
                                                    double random) {
  if (!error.retryable || retries >= policy.max_retries) return std::nullopt;
  if (error.retry_after && error.retry_after->count() > 0) {
    if (*error.retry_after > policy.max_requested_delay) return std::nullopt;
    return error.retry_after;
  }
  auto delay = std::min(policy.first_delay, policy.max_delay);
  for (int i = 0; i < retries && delay < policy.max_delay; ++i) delay = std::min(2 * delay, policy.max_delay);
  const auto varied = std::chrono::duration<double, std::milli>(delay) * (0.8 + 0.4 * random);
  return std::min(std::chrono::round<std::chrono::milliseconds>(varied), policy.max_delay);
}

}  // namespace reprise
