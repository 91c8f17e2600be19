#pragma once

#include "reprise/options.h"
#include "reprise/telemetry.h"

namespace reprise {

// Decides which traces are exported (OTEL_TRACES_SAMPLER). By default the first span decides for the whole trace.
// Immutable.
class Sampler {
 public:
  explicit Sampler(SamplerOptions options) : options_(options) {}

  // `parent` is valid if the span is not the first of its trace; `trace_id` is that of the new span.
  bool Samples(const TraceContext& parent, const decltype(TraceContext::trace_id)& trace_id) const;

 private:
  const SamplerOptions options_;
};

}  // namespace reprise
