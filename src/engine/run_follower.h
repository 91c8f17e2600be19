#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

#include "engine/run_journal.h"
#include "engine/services.h"
#include "reprise/event_log.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"

namespace reprise {

// Shows a run that another process holds: reads what is kept of it, again and again, into a log like the run's own, and
// at its end what is stored. Whatever that process shows, it has kept before, so that nothing is missing here and
// nothing comes twice. It goes on as long as somebody has it. Thread-safe.
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
  // False: it has ended, and all of it is shown.
  Result<bool> Read();
  void ReadLater();

  EngineServices& services_;
  const InteractionRef ref_;
  mutable std::mutex mutex_;
  RunReader reader_;         // guarded by mutex_
  std::size_t records_ = 0;  // guarded by mutex_; that were read
  const std::shared_ptr<EventLog> log_ = reader_.run().log;
};

}  // namespace reprise
