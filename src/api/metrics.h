#pragma once

#include <string>
#include <vector>

#include "reprise/engine.h"
#include "reprise/telemetry.h"
#include "wire/server.h"

namespace reprise {

// All that is counted: what the HTTP layer does, the engines, and what their telemetry has made of spans.
// `runs`: of all tenants. `telemetry`: null if there is none.
std::vector<Metric> CollectMetrics(const Engine::Counters& runs, const Telemetry* telemetry, const HttpMetrics& http);

// In Prometheus' text format. Names are those of OpenTelemetry, translated as it says: dots become underscores, units
// and _total stand at the end.
std::string PrometheusText(const std::vector<Metric>& metrics);

}  // namespace reprise
