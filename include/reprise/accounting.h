#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "reprise/event.h"

namespace reprise {

// Price of a million tokens, in the user's currency.
struct ModelPrice {
  double input = 0, output = 0;
  std::optional<double> cache_read{}, cache_write{};  // of input tokens; nullopt: as other input
  std::optional<double> searches{};                   // of a thousand web searches; nullopt: none
  bool operator==(const ModelPrice&) const = default;
};
using PriceTable = std::map<std::string, ModelPrice>;  // by the model's full name

double CostOf(const TokenUsage& usage, const ModelPrice& price);

// Limits after which a run sends no further request. 0: no limit. Tokens are input and output together, as providers
// count them; a chat's usage counts on all its branches. Models without a price cost nothing.
struct UsageBudget {
  std::int64_t max_tokens_per_interaction = 0;
  std::int64_t max_tokens_per_chat = 0;
  double max_cost_per_chat = 0;
  std::int64_t max_tokens_per_day = 0;  // of the user, in all chats; a UTC day
  bool operator==(const UsageBudget&) const = default;
};

using UsageByModel = std::map<std::string, TokenUsage>;
struct ChatUsage {
  UsageByModel branch;  // of the head's branch
  UsageByModel all;     // of all branches
};

}  // namespace reprise
