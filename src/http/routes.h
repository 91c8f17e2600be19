#pragma once

#include <functional>
#include <string>

#include "http/metrics.h"
#include "http/router.h"
#include "reprise/engine.h"

namespace reprise {

// What the handlers work on; outlives the router.
class ChatFeed;

struct HandlerContext {
  Engine& engine;
  const HttpMetrics& metrics;
  const std::string& openapi;
  const std::function<Result<void>()>& ready;
  ChatFeed& feed;
};

// Every route of the server (DESIGN section 6).
Router MakeRoutes(const HandlerContext& context);

}  // namespace reprise
