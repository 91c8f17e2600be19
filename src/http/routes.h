#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "http/metrics.h"
#include "http/router.h"
#include "reprise/engine.h"
#include "reprise/principal.h"
#include "reprise/tool.h"

namespace reprise {

class Gate;

class ChatFeed;
struct PageAsset;

// What the handlers of all tenants have in common.
struct SharedContext {
  const HttpMetrics& metrics;
  const std::string& openapi;
  const std::function<Result<void>()>& ready;
  const std::function<std::vector<Error>()>& failing;
  const Gate& gate;
  std::span<const PageAsset> page;                 // empty: there is none
  std::function<Engine::Counters()> counters;      // of all tenants
  std::function<std::vector<Principal>()> people;  // who have been here; null: there is one user
  ToolServerLogins* logins = nullptr;              // null: there are no servers of tools
};
// What the handlers of one work on; outlives the router.
struct HandlerContext {
  Engine& engine;
  ChatFeed& feed;
  const SharedContext& shared;
};

// Every route of the server (DESIGN section 6).
Router MakeRoutes(const HandlerContext& context);

}  // namespace reprise
