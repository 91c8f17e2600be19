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
  // Those that have been here before. Blocks likewise.
  std::function<std::vector<Principal>()> list;
  // Those of them that may have left something to be taken up. Likewise.
  std::function<std::vector<Principal>()> left;
  // From now on the given is called, by any thread, for somebody who has left something since: at another server that
  // is gone. Null: nobody wants to know. Empty if there are no other servers.
  std::function<void(std::function<void(const Principal&)>)> watch{};
};

}  // namespace reprise
