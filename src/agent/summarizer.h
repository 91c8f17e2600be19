#pragma once

#include <cstddef>
#include <stop_token>
#include <string>

#include "agent/agent.h"

namespace reprise {

// What is to be summed up.
struct SummaryTask {
  const AgentState& state;  // its own summary, if it has one, is part of it
  const Compaction& extent;
  std::size_t max_bytes;          // of the summary
  std::size_t max_request_bytes;  // of what is sent for it
};

struct Summary {
  std::string text;  // at most max_bytes, valid UTF-8; empty if the model did not manage in half a minute
  TokenUsage usage;
};

// Has a model sum up messages that it will not be sent any more, beneath `span`, which must live until then. Ends
// within milliseconds when `stop` is requested.
Async<Summary> Summarize(const AgentParts& parts, const std::string& model_name, const SummaryTask& task,
                         std::stop_token stop, const Span& span);

}  // namespace reprise
