#include "engine/others.h"

#include "base/logging.h"

namespace reprise {

void Others::Watch() {
  services_.parts.runs.Watch([this] { LookSoon(); });
}

// One looks at a time, and once more for all that was told meanwhile.
void Others::LookSoon() {
  if (asked_.fetch_add(1) > 0) return;
  services_.pool.Submit([this] {
    for (;;) {
      int told = asked_.load();
      Look();
      if (asked_.compare_exchange_strong(told, 0)) return;
    }
  });
}

void Others::Look() {
  if (busy_.is_stopping()) return;
  const auto stops = services_.parts.runs.StopRequests();
  if (!stops) LogWarning("what others ask could not be read", {{"detail", stops.error().detail}});
  for (const StopRequest& request : stops ? *stops : std::vector<StopRequest>()) {
    const auto run = busy_.RunOf(request.run.chat_id, request.run.interaction_id);
    if (run) run->RequestStop(request.reason);
  }
  answers_.TakeFromOthers();
  turns_.TakeUpAbandoned();
}

}  // namespace reprise
