#pragma once

#include <map>
#include <vector>

#include "base/mutex.h"
#include "reprise/telemetry.h"

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
  MetricPoint& SeriesOf(std::size_t instrument, std::vector<Attribute> labels) REQUIRES(mutex_);

  mutable Mutex mutex_;
  // By instrument, by labels.
  std::map<std::size_t, std::map<std::vector<Attribute>, MetricPoint>> series_ GUARDED_BY(mutex_);
};

}  // namespace reprise
