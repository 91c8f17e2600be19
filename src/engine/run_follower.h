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

// Shows a run that another process holds: what that keeps of it goes into a log like the run's own, and at its end what
// is stored. Whatever that process shows, it has kept before, so that nothing is missing here and nothing comes twice.
// It goes on as long as somebody has it. Thread-safe.
class RunFollower : public std::enable_shared_from_this<RunFollower> {
 public:
  // `services` must outlive it.
  RunFollower(EngineServices& services, InteractionRef run) : services_(services), ref_(run), reader_(run) {}

  // Reads what there is so far. kNotFound: nothing is kept of it (any more).
  Result<void> Begin();
  const std::shared_ptr<EventLog>& log() const { return log_; }
  // As it is known so far.
  Interaction Snapshot() const;

 private:
  void Hear(const HeldNews& news);
  // It has ended: shows the rest. kNotFound: it is not stored.
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
