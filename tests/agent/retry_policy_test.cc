#include "agent/retry_policy.h"

#include <vector>

#include "support/test.h"

namespace reprise::retry_policy_test {

using namespace std::chrono_literals;

namespace {

Error Passing(std::optional<std::chrono::milliseconds> retry_after = {}) {
  Error error = MakeError(ErrorCode::kProvider, "busy");
  error.retryable = true;
  error.retry_after = retry_after;
  return error;
}

}  // namespace

TEST_CASE("RetryDelay: 1, 2, 4, 8 seconds, and then always 10", "[agent]") {
  const RetryPolicy policy{.max_retries = 100};
  std::vector<std::chrono::milliseconds> delays;
  for (int retries = 0; retries < 6; ++retries) delays.push_back(*RetryDelay(policy, Passing(), retries, 0.5));
  CHECK(delays == std::vector<std::chrono::milliseconds>{1s, 2s, 4s, 8s, 10s, 10s});
  CHECK(RetryDelay(policy, Passing(), 99, 0.5) == 10s);
}

TEST_CASE("RetryDelay: varies by a fifth and never exceeds the maximum", "[agent]") {
  const RetryPolicy policy{.max_retries = 100};
  CHECK(RetryDelay(policy, Passing(), 0, 0.0) == 800ms);
  CHECK(RetryDelay(policy, Passing(), 1, 0.999999) == 2400ms);
  CHECK(RetryDelay(policy, Passing(), 9, 0.999999) == 10s);
  CHECK(RetryDelay(policy, Passing(), 9, 0.0) == 8s);
}

TEST_CASE("RetryDelay: the provider's pause is respected, up to two minutes", "[agent]") {
  const RetryPolicy policy;
  CHECK(RetryDelay(policy, Passing(2s), 0, 0.9) == 2s);
  CHECK(RetryDelay(policy, Passing(50ms), 2, 0.9) == 50ms);
  CHECK(RetryDelay(policy, Passing(120s), 0, 0.9) == 120s);
  CHECK_FALSE(RetryDelay(policy, Passing(120'001ms), 0, 0.9));
  CHECK(RetryDelay(policy, Passing(0s), 1, 0.5) == 2s);  // "at once" does not shorten the pause
}

TEST_CASE("WordsOfLongPause: a pause that is not waited for is told with its end", "[agent]") {
  const RetryPolicy policy;
  const Timestamp now = *ParseTimestamp("2026-11-30T21:00:30.000Z");
  CHECK(WordsOfLongPause(policy, Passing(), now).empty());
  CHECK(WordsOfLongPause(policy, Passing(120s), now).empty());
  CHECK(WordsOfLongPause(policy, Passing(1'000'000h), now).empty());  // of a replay
  CHECK(WordsOfLongPause(policy, Passing(121s), now) ==
        "; it asks to wait 3 min: try again after 2026-11-30 21:03 UTC");
  CHECK(WordsOfLongPause(policy, Passing(24h), now) == "; it asks to wait 24 h: try again after 2026-12-01 21:01 UTC");
  CHECK(WordsOfLongPause(policy, Passing(1'000'000'000s), now) ==
        "; it asks to wait 11575 days: try again after 2058-08-08 22:48 UTC");
}

TEST_CASE("RetryDelay: only retryable errors, up to the maximum number", "[agent]") {
  CHECK_FALSE(RetryDelay({}, MakeError(ErrorCode::kProvider, "bad key"), 0, 0.5));
  CHECK(RetryDelay({}, Passing(), 2, 0.5));
  CHECK_FALSE(RetryDelay({}, Passing(), 3, 0.5));
  CHECK_FALSE(RetryDelay({.max_retries = 0}, Passing(1s), 0, 0.5));
}

}  // namespace reprise::retry_policy_test
