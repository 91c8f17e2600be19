#include "telemetry/sampler.h"

#include <cmath>
#include <cstdint>

namespace reprise {

bool Sampler::Samples(const TraceContext& parent, const decltype(TraceContext::trace_id)& trace_id) const {
  if (options_.follows_parent && parent.is_valid()) return parent.sampled;
  if (options_.ratio >= 1) return true;
  // Uses the last eight bytes of the id, which are random, as other SDKs do, so that all decide alike on a trace.
  std::uint64_t random = 0;
  for (std::size_t i = 8; i < trace_id.size(); ++i) random = random << 8 | trace_id[i];
  return static_cast<double>(random >> 1) < std::ldexp(options_.ratio, 63);
}

}  // namespace reprise
