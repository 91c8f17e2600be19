#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "doors/translator.h"
#include "reprise/engine.h"
#include "reprise/event_log.h"

namespace reprise {

// A response that is made of a run's events while they come. Whoever publishes an event translates it as well, so that
// it crosses no thread on its way.
struct TranslatedStream {
  std::shared_ptr<EventLog> log;  // for one client: frames without ids, forgotten when they have been taken
  std::shared_ptr<void> hold;     // the client's hold on the run (EventSubscription); to be dropped when it has gone
  std::weak_ptr<EventLogListener> translation;  // OnPublished makes the translator look again, though no event came
};

// Translates the events of `run` from `offset` of its log on. What is in the log already is sent, however much it is. A
// client that takes nothing after that is cut off when some megabytes wait for it.
TranslatedStream Translate(EventSubscription run, std::unique_ptr<Translator> translator, std::uint64_t offset = 0);

}  // namespace reprise
