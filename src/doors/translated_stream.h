#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "doors/translator.h"
#include "reprise/engine.h"
#include "reprise/event_log.h"

namespace reprise {

// A response that is made of a run's events while they are published. The publishing thread also translates, so an
// event crosses no thread.
struct TranslatedStream {
  std::shared_ptr<EventLog> log;  // for one client: frames without ids, forgotten once sent
  std::shared_ptr<void> hold;     // the client's hold on the run (EventSubscription); drop it when the client is gone
  std::weak_ptr<EventLogListener> translation;  // its OnPublished has the translator look again without a new event
};

// Translates the events of `run` from `offset` of its log. Sends everything that the log holds now, however much it is.
// Later the client is cut off if it reads nothing while some megabytes wait.
TranslatedStream Translate(EventSubscription run, std::unique_ptr<Translator> translator, std::uint64_t offset = 0);

}  // namespace reprise
