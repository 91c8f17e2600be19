#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "reprise/event.h"

namespace reprise {

// What a provider takes for a million tokens, in the user's currency.
struct ModelPrice {
  double input = 0, output = 0;
  std::optional<double> cache_read{}, cache_write{};  // of input tokens; nullopt: as any other input
  bool operator==(const ModelPrice&) const = default;
};
using PriceTable = std::map<std::string, ModelPrice>;  // by the model's full name

double CostOf(const TokenUsage& usage, const ModelPrice& price);

// After which a run sends no further request. 0: no limit. Tokens are input and output together, as providers count
// them; what a chat has used counts on all its branches. Models without a price cost nothing.
struct UsageBudget {
  std::int64_t max_tokens_per_interaction = 0;
  std::int64_t max_tokens_per_chat = 0;
  double max_cost_per_chat = 0;
  std::int64_t max_tokens_per_day = 0;  // of the user, in all chats; a day is one of UTC
  bool operator==(const UsageBudget&) const = default;
};

using UsageByModel = std::map<std::string, TokenUsage>;
struct ChatUsage {
  UsageByModel branch;  // the head's
  UsageByModel all;     // on all branches
};

}  // namespace reprise
