#pragma once

#include <memory>

#include "base/mutex.h"
#include "engine/run_journal.h"
#include "engine/services.h"
#include "reprise/event_log.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/run_store.h"

namespace reprise {

// Shows a run that another process holds: stored journal records go into a log like the run's own, followed at the end
// by the stored interaction. That process stores every record before it shows it, so no event is missed or repeated
// here. It lives as long as somebody holds it. Thread-safe.
class RunFollower : public std::enable_shared_from_this<RunFollower> {
 public:
  // `services` must outlive it.
  RunFollower(EngineServices& services, InteractionRef run) : services_(services), ref_(run), reader_(run) {}

  // Reads everything so far. kNotFound if nothing of the run is stored (any more).
  Result<void> Begin();
  const std::shared_ptr<EventLog>& log() const { return log_; }
  // The run as far as it is known.
  Interaction Snapshot() const;

 private:
  void Hear(const HeldNews& news);
  // The run has ended: shows the rest. kNotFound if it is not stored.
  Result<void> ShowStored();
  void ShowEnd();
  void GiveUp(const Error& why);

  EngineServices& services_;
  const InteractionRef ref_;
  mutable Mutex mutex_;
  RunReader reader_ GUARDED_BY(mutex_);
  const std::shared_ptr<EventLog> log_ = reader_.run().log;
  std::shared_ptr<void> following_;  // set by Begin
};

}  // namespace reprise
