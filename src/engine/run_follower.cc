#include "engine/run_follower.h"

#include <chrono>

#include "base/logging.h"
#include "base/try.h"
#include "engine/recording.h"

namespace reprise {

Result<void> RunFollower::Begin() {
  auto following = services_.parts.runs.Follow(ref_, [weak = weak_from_this()](const HeldNews& news) {
    if (const auto self = weak.lock()) self->Hear(news);
  });
  if (following) following_ = *std::move(following);
  if (following || !IsNotFound(following.error())) return following.map([](const auto&) {});
  return ShowStored();  // it may have ended just now
}

Interaction RunFollower::Snapshot() const {
  const MutexLock lock(mutex_);
  return reader_.run().interaction;
}

void RunFollower::Hear(const HeldNews& news) {
  if (news.failure) return GiveUp(*news.failure);
  Result<void> added;
  {
    const MutexLock lock(mutex_);
    for (const std::string& record : news.records) {
      if (added) added = reader_.Add(record);
    }
  }
  if (!added) return GiveUp(added.error());
  log_->Publish();
  if (!news.has_ended) return;
  // Not here, because the notifying thread must not wait.
  services_.pool.Submit([self = shared_from_this()] { self->ShowEnd(); });
}

// Waits for an unavailable store, because a client would come again anyway.
void RunFollower::ShowEnd() {
  constexpr std::chrono::milliseconds kPause{500};
  const auto shown = ShowStored();
  if (shown) return;
  if (shown.error().code != ErrorCode::kUnavailable) return GiveUp(shown.error());
  services_.timer.After(kPause, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->services_.pool.Submit([self] { self->ShowEnd(); });
  });
}

Result<void> RunFollower::ShowStored() {
  const auto stored = TRY(services_.parts.store.LoadInteraction(ref_.chat_id, ref_.interaction_id));
  const MutexLock lock(mutex_);
  for (const AgentEvent& event : RecordedEvents(stored)) {
    if (event.seq > reader_.run().last_seq) log_->AppendRecorded(event);
  }
  log_->Close();
  return {};
}

void RunFollower::GiveUp(const Error& why) {
  LogError("a run of another server cannot be followed any more",
           {{"chat", ref_.chat_id.str()}, {"code", why.reason}, {"detail", why.detail}});
  log_->Close();
}

}  // namespace reprise
