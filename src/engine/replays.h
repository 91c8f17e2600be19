#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "engine/elastic_pool.h"
#include "reprise/engine.h"
#include "reprise/event.h"
#include "reprise/event_log.h"
#include "reprise/interaction.h"
#include "reprise/replay.h"

namespace reprise {

struct EngineServices;
class Interactions;

// The first point where a second run of the same message differed: in types, texts, tools, inputs, outputs or order.
// Ids, times, token counts and retries are not compared. A divergence's seq is that of the recorded event.
ReplayReport CompareRuns(const Interaction& recorded, const Interaction& again);

// The pause between two events, divided by `speed`: from zero to a year, whatever the record says. REQUIRES: speed > 0.
std::chrono::milliseconds PauseBetween(const AgentEvent& before, const AgentEvent& next, double speed);

// Shows the events of a stored interaction again with their pauses divided by `speed`. Holds no thread, because the
// timer shows each event when it is due. Stops with the last reference to it.
class PacedEvents : public std::enable_shared_from_this<PacedEvents> {
 public:
  // REQUIRES: speed > 0. `timer` must outlive the object.
  PacedEvents(const Interaction& interaction, double speed, Timer& timer);

  void Start();
  // Shows the rest at once. Called from any thread.
  void Finish();
  const std::shared_ptr<EventLog>& log() const { return log_; }

 private:
  void ShowDue();

  const double speed_;
  Timer& timer_;
  const std::shared_ptr<EventLog> log_;
  Mutex mutex_;
  std::vector<AgentEvent> events_ GUARDED_BY(mutex_);
  std::size_t next_ GUARDED_BY(mutex_) = 0;
};

// Shows recorded interactions and runs them again. The functions work as those of Engine. Thread-safe.
class Replays {
 public:
  Replays(EngineServices& services, Interactions& interactions) : services_(services), interactions_(interactions) {}

  Result<EventSubscription> Events(const ChatId& chat, InteractionId interaction, double speed);
  Result<ReplayReport> Recorded(const ChatId& chat, InteractionId interaction, ReplayInput input);
  Result<ReplayReport> Compare(const ChatId& chat, InteractionId recorded, InteractionId again);
  // Ends all paced replays and refuses new ones.
  void Stop();

 private:
  EngineServices& services_;
  Interactions& interactions_;
  Mutex mutex_;
  std::vector<std::weak_ptr<PacedEvents>> paced_ GUARDED_BY(mutex_);  // some have ended
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
