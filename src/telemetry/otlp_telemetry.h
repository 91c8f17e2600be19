#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "reprise/options.h"
#include "reprise/telemetry.h"
#include "reprise/transport.h"
#include "telemetry/exporter.h"

namespace reprise {

// Aggregates spans into metrics (counts, durations, tokens) with the names of the conventions (docs/telemetry.md).
// Thread-safe.
//
// The names of models and tools are unlimited, so each instrument has a limit of series. Later ones are counted in one
// overflow series (otel.metric.overflow).
class SpanMetrics {
 public:
  static constexpr std::size_t kMaxSeries = 500;  // per instrument

  void Observe(const SpanRecord& span);
  void Collect(std::vector<Metric>& metrics) const;

 private:
  struct Instrument;
  static const std::vector<Instrument>& Instruments();
  static bool HasLabels(const MetricPoint& point, const Instrument& instrument, const SpanRecord& span);
  MetricPoint& SeriesOf(std::size_t instrument, std::vector<Attribute> labels) REQUIRES(mutex_);

  mutable Mutex mutex_;
  // By instrument, by labels.
  std::map<std::size_t, std::map<std::vector<Attribute>, MetricPoint>> series_ GUARDED_BY(mutex_);
  std::vector<MetricPoint*> last_ GUARDED_BY(mutex_);  // by instrument; most spans have the labels of the one before
};

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

  // Adds metrics that others count, from then on. Call it before anything else.
  void Also(std::function<void(std::vector<Metric>&)> more) { more_ = std::move(more); }

  // As in Exporter. No effect without an exporter.
  void SetSource(Exporter::Source source);
  void BeginStop();
  void Stop();

 private:
  const TelemetryOptions options_;
  const Sampler sampler_;
  std::function<void(std::vector<Metric>&)> more_;  // may be null
  SpanMetrics metrics_;
  std::optional<Exporter> exporter_;
};

}  // namespace reprise
