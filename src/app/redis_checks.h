#pragma once

#include "app/health_checks.h"
#include "redis/redis_signals.h"
#include "reprise/options.h"

namespace reprise {

RedisSignals::Options RedisOptionsFrom(const Options& options, Signals* otherwise);

// Whether Redis lets this server in. Changes nothing there. REQUIRES: the configuration names one.
Finding CheckRedis(const Options& options);

}  // namespace reprise
