#include "engine/paced_events.h"

#include <algorithm>

#include "engine/recorded_events.h"

namespace reprise {
namespace {

// What a clock that was set, or a damaged file, may make of a pause.
constexpr std::chrono::milliseconds kLongestPause = std::chrono::hours(24 * 365);

}  // namespace

std::chrono::milliseconds PauseBetween(const AgentEvent& before, const AgentEvent& next, double speed) {
  const std::chrono::duration<double, std::milli> between = next.at - before.at;
  const double scaled = std::clamp(between.count() / speed, 0.0, static_cast<double>(kLongestPause.count()));
  return std::chrono::milliseconds(static_cast<std::int64_t>(scaled));
}

PacedEvents::PacedEvents(const Interaction& interaction, double speed, Timer& timer)
    : speed_(speed), timer_(timer), log_(std::make_shared<EventLog>()), events_(RecordedEvents(interaction)) {}

void PacedEvents::Start() { ShowDue(); }

void PacedEvents::ShowDue() {
  std::chrono::milliseconds pause{0};
  bool more = false;
  {
    const MutexLock lock(mutex_);
    while (next_ < events_.size() && pause.count() == 0) {
      log_->AppendRecorded(events_[next_]);
      if (++next_ == events_.size()) break;
      pause = PauseBetween(events_[next_ - 1], events_[next_], speed_);
    }
    more = next_ < events_.size();
  }
  if (!more) return log_->Close();
  log_->Publish();
  timer_.After(pause, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->ShowDue();
  });
}

void PacedEvents::Finish() {
  {
    const MutexLock lock(mutex_);
    for (; next_ < events_.size(); ++next_) log_->AppendRecorded(events_[next_]);
  }
  log_->Close();
}

}  // namespace reprise
