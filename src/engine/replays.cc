#include "engine/replays.h"

#include <system_error>
#include <utility>

#include "engine/live_comparison.h"
#include "engine/recorded_events.h"
#include "engine/recorded_replay.h"

namespace reprise {

Result<EventSubscription> Replays::Events(const ChatId& chat, InteractionId interaction, double speed) {
  const auto stored = interactions_.FindReplayable(chat, interaction);
  if (!stored) return Fail(stored.error());
  if (speed <= 0) return EventSubscription(chat, interaction, RecordedLog(*stored), nullptr);
  auto paced = std::make_shared<PacedEvents>(*stored, speed, services_.timer);
  {
    const MutexLock lock(mutex_);
    if (stopping_) return Fail(Stopping());
    std::erase_if(paced_, [](const auto& each) { return each.expired(); });
    paced_.push_back(paced);
  }
  paced->Start();
  auto log = paced->log();
  return EventSubscription(chat, interaction, std::move(log), std::move(paced));
}

Result<ReplayReport> Replays::Recorded(const ChatId& chat, InteractionId interaction) {
  const auto stored = interactions_.FindReplayable(chat, interaction);
  if (!stored) return Fail(stored.error());
  try {
    services_.pool.StartFirstThread();
  } catch (const std::system_error& error) {
    return Fail(NoThreads(error.what()));
  }
  return ReplayRecorded(*stored, [this](std::function<void()> job) { services_.pool.Submit(std::move(job)); });
}

Result<ReplayReport> Replays::Compare(const ChatId& chat, InteractionId recorded, InteractionId again) {
  const auto first = interactions_.FindReplayable(chat, recorded);
  if (!first) return Fail(first.error());
  const auto second = interactions_.FindReplayable(chat, again);
  if (!second) return Fail(second.error());
  return CompareRuns(*first, *second);
}

void Replays::Stop() {
  std::vector<std::shared_ptr<PacedEvents>> paced;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (const auto& each : std::exchange(paced_, {})) {
      if (auto still = each.lock()) paced.push_back(std::move(still));
    }
  }
  for (const auto& each : paced) each->Finish();
}

}  // namespace reprise
