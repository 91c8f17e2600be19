#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "engine/timer.h"
#include "reprise/event.h"
#include "reprise/event_log.h"
#include "reprise/interaction.h"

namespace reprise {

// The pause that was between two events, divided by `speed`: neither negative nor longer than a year, whatever the
// record says. REQUIRES: speed > 0.
std::chrono::milliseconds PauseBetween(const AgentEvent& before, const AgentEvent& next, double speed);

// Shows the events of a stored interaction again with the pauses they had, divided by `speed`. Holds no thread: the
// timer shows what is due. Stops when the last reference to it goes.
class PacedEvents : public std::enable_shared_from_this<PacedEvents> {
 public:
  // REQUIRES: speed > 0. `timer` must outlive the object.
  PacedEvents(const Interaction& interaction, double speed, Timer& timer);

  void Start();
  // Shows the rest at once. Any thread.
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

}  // namespace reprise
