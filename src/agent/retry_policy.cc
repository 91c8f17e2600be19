#include "agent/retry_policy.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "base/queues.h"

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

// More than any provider asks for (RetryAfter), because a replay's failure, whose message is complete, asks for it.
constexpr std::chrono::hours kLongestAsked{24 * 365 * 50};

std::string WordsOfLongPause(const RetryPolicy& policy, const Error& error, Timestamp now) {
  using namespace std::chrono;
  const auto pause = error.retry_after.value_or(milliseconds(0));
  if (!error.retryable || pause <= policy.max_requested_delay || pause > kLongestAsked) return {};
  const std::string length = pause <= hours(1)    ? std::to_string(ceil<minutes>(pause).count()) + " min"
                             : pause <= hours(48) ? std::to_string(ceil<hours>(pause).count()) + " h"
                                                  : std::to_string(ceil<days>(pause).count()) + " days";
  const std::string end = FormatTimestamp(ceil<minutes>(now + pause));  // "2026-11-30T21:00:00.000Z"
  return "; it asks to wait " + length + ": try again after " + end.substr(0, 10) + " " + end.substr(11, 5) + " UTC";
}

Async<Nothing> Pause(const Executor& executor, const Delay& delay, std::chrono::milliseconds length,
                     std::stop_token stop) {
  std::optional<std::stop_callback<std::function<void()>>> on_stop;
  FromCallback<Nothing> over(executor, [&](std::function<void(Nothing)> done) {
    // The delay and the stop may coincide, and only the first counts.
    const auto is_over = std::make_shared<std::atomic<bool>>(false);
    const auto end = [is_over, done = std::move(done)] {
      if (!is_over->exchange(true)) done({});
    };
    on_stop.emplace(std::move(stop), end);
    delay(length, end);
  });
  co_return co_await over;
}

namespace {

constexpr std::array<std::chrono::milliseconds, 2> kPauses{std::chrono::milliseconds(250),
                                                           std::chrono::milliseconds(1000)};

}  // namespace

ToolOutcome RunWithRetries(Tool& tool, std::string_view arguments, const ToolContext& context) {
  ToolOutcome outcome = tool.Run(arguments, context);
  if (!outcome.transient || !tool.traits().read_only || !tool.traits().idempotent) return outcome;
  int tries = 1;
  for (const auto pause : kPauses) {
    if (!outcome.transient) break;
    if (context.on_output) {
      context.on_output("(" + outcome.output + "; tried again in " + std::to_string(pause.count()) + " ms)\n");
    }
    if (!Pause(pause, context.stop)) return outcome;
    outcome = tool.Run(arguments, context);
    ++tries;
  }
  outcome.output += "\n(tried " + std::to_string(tries) + " times)";
  return outcome;
}

}  // namespace reprise
