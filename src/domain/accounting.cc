#include "reprise/accounting.h"

namespace reprise {

double CostOf(const TokenUsage& usage, const ModelPrice& price) {
  constexpr double kMillion = 1e6;
  const auto part = [](std::int64_t tokens, double per_million) {
    return static_cast<double>(tokens) / kMillion * per_million;
  };
  const std::int64_t fresh = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens;
  return part(fresh, price.input) + part(usage.cache_read_tokens, price.cache_read.value_or(price.input)) +
         part(usage.cache_write_tokens, price.cache_write.value_or(price.input)) +
         part(usage.output_tokens, price.output);
}

}  // namespace reprise
