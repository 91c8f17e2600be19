#pragma once

#include "base/environment.h"
#include "reprise/options.h"

namespace reprise {

// Where a base URL ("http://collector:4318") takes traces and metrics.
void SetOtlpEndpoint(TelemetryOptions& options, std::string_view base_url);

// Applies OTEL_* variables, as OpenTelemetry describes them for every program. They are not Reprise's alone, so what
// cannot be taken is no failure: it stays as it was, and TelemetryOptions::problems says so.
void ApplyTelemetryVariables(TelemetryOptions& options, const Environment& environment);

}  // namespace reprise
