#pragma once

#include "app/health_checks.h"
#include "reprise/options.h"

namespace reprise {

// Whether the bucket of the configuration lets this server in. Lists it; changes nothing. REQUIRES: it names one.
Finding CheckBucket(const Options& options);

}  // namespace reprise
