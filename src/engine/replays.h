#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "engine/interactions.h"
#include "engine/paced_events.h"
#include "engine/services.h"

namespace reprise {

// Shows and runs again what was recorded. Functions are as those of Engine. Thread-safe.
class Replays {
 public:
  Replays(EngineServices& services, Interactions& interactions) : services_(services), interactions_(interactions) {}

  Result<EventSubscription> Events(const ChatId& chat, InteractionId interaction, double speed);
  Result<ReplayReport> Recorded(const ChatId& chat, InteractionId interaction);
  Result<ReplayReport> Compare(const ChatId& chat, InteractionId recorded, InteractionId again);
  // Ends what is shown at its own pace. Nothing begins after that.
  void Stop();

 private:
  EngineServices& services_;
  Interactions& interactions_;
  Mutex mutex_;
  std::vector<std::weak_ptr<PacedEvents>> paced_ GUARDED_BY(mutex_);  // some are over
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
