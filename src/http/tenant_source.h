#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "reprise/engine.h"
#include "reprise/principal.h"
#include "reprise/result.h"

namespace reprise {

// Where engines of tenants come from.
struct TenantSource {
  // The engine of a tenant, whose chats nobody else has; it has taken up what an earlier process left. Blocks while the
  // disk does. May be asked again for the same tenant when the last engine is gone.
  std::function<Result<std::shared_ptr<Engine>>(const Principal&)> open;
  // Those that have been here before. Reads the disk.
  std::function<std::vector<Principal>()> list;
};

}  // namespace reprise
