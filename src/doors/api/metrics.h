#pragma once

#include <string>
#include <vector>

#include "reprise/engine.h"
#include "reprise/telemetry.h"
#include "wire/server.h"

namespace reprise {

// All metrics: of the HTTP layer, of the engines, and of spans (telemetry). `runs` is the sum of all tenants.
// `telemetry` is null if there is none.
std::vector<Metric> CollectMetrics(const Engine::Counters& runs, const Telemetry* telemetry, const HttpMetrics& http);

// In Prometheus' text format. Names are OpenTelemetry's, translated by its rules: dots become underscores, and the unit
// and _total end the name.
std::string PrometheusText(const std::vector<Metric>& metrics);

}  // namespace reprise
