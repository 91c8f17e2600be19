#pragma once

#include "base/environment.h"
#include "reprise/options.h"

namespace reprise {

// Sets the endpoints of traces and metrics below a base URL ("http://collector:4318").
void SetOtlpEndpoint(TelemetryOptions& options, std::string_view base_url);

// Applies OTEL_* variables as OpenTelemetry defines them for all programs. Other programs use them too, so an invalid
// one is no failure: the setting stays, and TelemetryOptions::problems names it.
void ApplyTelemetryVariables(TelemetryOptions& options, const Environment& environment);

}  // namespace reprise
