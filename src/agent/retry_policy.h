#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/async.h"
#include "reprise/error.h"
#include "reprise/timestamp.h"
#include "reprise/tool.h"

namespace reprise {

// When a failed model request is sent again.
struct RetryPolicy {
  int max_retries = 3;                                     // per request
  std::chrono::milliseconds first_delay{1000};             // doubled with each retry ...
  std::chrono::milliseconds max_delay{10'000};             // ... up to this
  std::chrono::milliseconds max_requested_delay{120'000};  // a longer one requested by a provider means no retry
};

// The pause before the next retry of a request that has failed after `retries` retries; nullopt: do not retry. Only
// retryable errors are retried. A pause requested by the provider is respected; otherwise it is the policy's, up to a
// fifth shorter or longer (according to `random` in [0, 1)), so that runs which failed together do not retry together.
std::optional<std::chrono::milliseconds> RetryDelay(const RetryPolicy& policy, const Error& error, int retries,
                                                    double random);

// What to add to a failure's message if the provider demands a longer pause than is waited for: how long it is, and
// when it ends. Empty: it does not.
std::string WordsOfLongPause(const RetryPolicy& policy, const Error& error, Timestamp now);

// Waits for `length` or until `stop` is requested.
Async<Nothing> Pause(const Executor& executor, const Delay& delay, std::chrono::milliseconds length,
                     std::stop_token stop);

// Runs a tool, and retries it after a pause, at most twice, if it is read-only and idempotent and its failure is
// temporary (ToolOutcome::transient). Reports retries in the live output and in the outcome. A stop ends the pause.
ToolOutcome RunWithRetries(Tool& tool, std::string_view arguments, const ToolContext& context);

}  // namespace reprise
