#pragma once

#include "base/json.h"
#include "reprise/accounting.h"

namespace reprise {

// Tokens and cost, together and by model; the cost is null where a model has no price.
Json UsageBody(const UsageByModel& usage, const PriceTable& prices);

}  // namespace reprise
