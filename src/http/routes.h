#pragma once

#include <functional>
#include <span>
#include <string>

#include "http/metrics.h"
#include "http/router.h"
#include "reprise/engine.h"

namespace reprise {

// What the handlers work on; outlives the router.
class ChatFeed;
class Gate;
struct PageAsset;

struct HandlerContext {
  Engine& engine;
  const HttpMetrics& metrics;
  const std::string& openapi;
  const std::function<Result<void>()>& ready;
  const std::function<std::vector<Error>()>& failing;
  ChatFeed& feed;
  const Gate& gate;
  std::span<const PageAsset> page;  // empty: there is none
};

// Every route of the server (DESIGN section 6).
Router MakeRoutes(const HandlerContext& context);

}  // namespace reprise
