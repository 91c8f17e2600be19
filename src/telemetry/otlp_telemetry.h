#pragma once

#include <optional>
#include <vector>

#include "reprise/options.h"
#include "reprise/telemetry.h"
#include "reprise/transport.h"
#include "telemetry/exporter.h"
#include "telemetry/span_metrics.h"

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

// Makes metrics from spans and sends both to a collector (OTLP over HTTP, protobuf).
class OtlpTelemetry final : public Telemetry {
 public:
  // `transport` must outlive this; it is not used if the options name no endpoint.
  OtlpTelemetry(Transport& transport, const TelemetryOptions& options);

  TraceContext NewContext(const TraceContext& parent) override;
  void Ended(SpanRecord span) noexcept override;
  bool takes_content() const override { return options_.content; }
  bool tells_providers() const override { return options_.trace_providers; }
  void Collect(std::vector<Metric>& metrics) const override;

  // As in Exporter. No effect without an exporter.
  void SetSource(Exporter::Source source);
  void BeginStop();
  void Stop();

 private:
  const TelemetryOptions options_;
  const Sampler sampler_;
  SpanMetrics metrics_;
  std::optional<Exporter> exporter_;
};

}  // namespace reprise
