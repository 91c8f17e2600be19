#include "engine/others.h"

#include "base/logging.h"

namespace reprise {

void Others::Watch() {
  if (services_.parts.changes) {
    services_.parts.changes->Hear([this](std::optional<ChatChange> change) {
      if (!change) return services_.changes.Forget();
      if (change->kind == ChatChange::Kind::kInteractionEnded) services_.usage_limits.Forget(change->chat_id);
      // Another server has this chat now, and says that its jobs have ended.
      const bool is_elsewhere =
          change->kind == ChatChange::Kind::kInteractionStarted || change->kind == ChatChange::Kind::kChatDeleted;
      if (is_elsewhere && services_.jobs.Has(change->chat_id)) {
        services_.control.Submit([this, chat = change->chat_id] { services_.jobs.EndOf(chat); });
      }
      // The message that waits here may be next.
      const bool concerns_queue =
          change->kind == ChatChange::Kind::kInteractionEnded || change->kind == ChatChange::Kind::kQueueChanged;
      if (concerns_queue && services_.queues.Knows(change->chat_id)) LookAtQueueSoon(change->chat_id);
      services_.changes.AddFromOthers(*std::move(change));
    });
  }
  services_.parts.runs.Watch([this](const Wanted& wanted) {
    using Kind = Wanted::Kind;
    if (wanted.kind == Kind::kAnything) return LookSoon();
    services_.control.Submit(
        [this, wanted] { wanted.kind == Kind::kStop ? StopWhatIsAsked() : answers_.TakeFromOthers(wanted.run); });
  });
}

void Others::Stop() {
  services_.parts.runs.Watch({});
  if (services_.parts.changes) services_.parts.changes->Hear({});
}

// Looks once for all changes reported before it does.
void Others::LookAtQueueSoon(const ChatId& chat) {
  {
    const MutexLock lock(mutex_);
    if (!queues_to_look_at_.insert(chat).second) return;
  }
  services_.control.Submit([this, chat] {
    {
      const MutexLock lock(mutex_);
      queues_to_look_at_.erase(chat);
    }
    turns_.LookAtQueue(chat);
  });
}

// Only one thread looks at a time, and it looks once more for changes reported meanwhile.
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
  StopWhatIsAsked();
  answers_.TakeFromOthers();
  if (!busy_.is_draining()) turns_.TakeUpAbandoned();
}

void Others::StopWhatIsAsked() {
  const auto stops = services_.parts.runs.StopRequests();
  if (!stops) LogWarning("stop requests of other servers could not be read", {{"detail", stops.error().detail}});
  for (const StopRequest& request : stops ? *stops : std::vector<StopRequest>()) {
    const auto run = busy_.RunOf(request.run.chat_id, request.run.interaction_id);
    if (run) run->RequestStop(request.reason);
  }
  // Stops the runs of a server that was taken for dead, because a run that waits for a person would not notice.
  for (const auto& run : busy_.Runs()) {
    if (!run->hold()->IsStillHeld()) run->RequestStop("taken_over");
  }
}

}  // namespace reprise
