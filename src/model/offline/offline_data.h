#pragma once

#include "base/json.h"

namespace reprise {

// What the offline model says and plays: data.json, which the build puts into the binary (data.cc.in).
const Json& OfflineData();

}  // namespace reprise
