#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string_view>

#include "base/async.h"
#include "reprise/error.h"
#include "reprise/tool.h"

namespace reprise {

// When a model request that failed is sent again.
struct RetryPolicy {
  int max_retries = 3;                                     // of one request
  std::chrono::milliseconds first_delay{1000};             // doubled with each retry ...
  std::chrono::milliseconds max_delay{10'000};             // ... up to this
  std::chrono::milliseconds max_requested_delay{120'000};  // a provider that asks for more has refused
};

// The pause before a request that has been repeated `retries` times and failed again is sent once more; nullopt: never.
// Only failures that may pass are repeated. What the provider asks for is kept to; otherwise the pause is a fifth
// shorter to a fifth longer than the policy's (`random` in [0, 1) says where between them), so that many runs which
// failed together do not come back together.
std::optional<std::chrono::milliseconds> RetryDelay(const RetryPolicy& policy, const Error& error, int retries,
                                                    double random);

// Over when its time is, or when `stop` is requested.
Async<Nothing> Pause(const Executor& executor, const Delay& delay, std::chrono::milliseconds length,
                     std::stop_token stop);

// Runs a tool, and again after a pause, twice at most, if it only reads, may run twice and failed for a reason that may
// pass (ToolOutcome::transient). Says so in its live output and in the outcome. A stop ends the pause.
ToolOutcome RunWithRetries(Tool& tool, std::string_view arguments, const ToolContext& context);

}  // namespace reprise
