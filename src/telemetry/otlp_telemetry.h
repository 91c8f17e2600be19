#pragma once

#include <optional>
#include <vector>

#include "reprise/options.h"
#include "reprise/telemetry.h"
#include "reprise/transport.h"
#include "telemetry/exporter.h"
#include "telemetry/sampler.h"
#include "telemetry/span_metrics.h"

namespace reprise {

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
