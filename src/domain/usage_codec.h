#pragma once

#include "base/json.h"
#include "domain/json_reader.h"
#include "reprise/event.h"

namespace reprise {

// The members of a token usage, in events and interactions. Those about the provider's cache are there only if it was
// used. `out`: see domain/members.h.
void WriteUsage(auto& out, const TokenUsage& usage) {
  out["input_tokens"] = usage.input_tokens;
  out["output_tokens"] = usage.output_tokens;
  if (usage.cache_read_tokens != 0) out["cache_read_tokens"] = usage.cache_read_tokens;
  if (usage.cache_write_tokens != 0) out["cache_write_tokens"] = usage.cache_write_tokens;
}
TokenUsage ReadUsage(JsonReader& in);

}  // namespace reprise
