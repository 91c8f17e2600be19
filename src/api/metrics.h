#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "reprise/engine.h"
#include "reprise/telemetry.h"

namespace reprise {

// What the HTTP layer counts. Thread-safe.
struct HttpMetrics {
  std::atomic<std::uint64_t> connections_total{0}, requests_total{0};
  std::atomic<std::uint64_t> responses_2xx{0}, responses_4xx{0}, responses_5xx{0};
  std::atomic<std::uint64_t> streams_total{0}, streams_failed{0};
  std::atomic<std::int64_t> connections{0}, streams{0};
};

// All that is counted: what the HTTP layer does, the engines, and what their telemetry has made of spans.
// `runs`: of all tenants. `telemetry`: null if there is none.
std::vector<Metric> CollectMetrics(const Engine::Counters& runs, const Telemetry* telemetry, const HttpMetrics& http);

// In Prometheus' text format. Names are those of OpenTelemetry, translated as it says: dots become underscores, units
// and _total stand at the end.
std::string PrometheusText(const std::vector<Metric>& metrics);

}  // namespace reprise
