#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "reprise/telemetry.h"

namespace reprise {

// What spans say together: how often, how long, how many tokens, under the names that the conventions give it
// (docs/telemetry.md). Thread-safe.
//
// Models and tools have as many names as people make up, so an instrument has so many series and no more: what is new
// after that is counted in one that says so (otel.metric.overflow).
class SpanMetrics {
 public:
  static constexpr std::size_t kMaxSeries = 500;  // of one instrument

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
