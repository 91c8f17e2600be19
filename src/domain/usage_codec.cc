#include "domain/usage_codec.h"

namespace reprise {

TokenUsage ReadUsage(JsonReader& in) {
  TokenUsage usage{.input_tokens = in.Integer("input_tokens"), .output_tokens = in.Integer("output_tokens")};
  if (in.Find("cache_read_tokens") != nullptr) usage.cache_read_tokens = in.Integer("cache_read_tokens");
  if (in.Find("cache_write_tokens") != nullptr) usage.cache_write_tokens = in.Integer("cache_write_tokens");
  return usage;
}

}  // namespace reprise
