#pragma once

#include "engine/services.h"
#include "reprise/engine.h"
#include "reprise/timestamp.h"

namespace reprise {

// Engine::GetUsageSince.
Result<UsageReport> UsageSince(EngineServices& services, Timestamp since);

}  // namespace reprise
