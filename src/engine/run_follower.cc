#include "engine/run_follower.h"

#include <chrono>

#include "base/logging.h"
#include "base/try.h"
#include "engine/recorded_events.h"

namespace reprise {
namespace {

constexpr std::chrono::milliseconds kReadEvery{100};

}  // namespace

Result<void> RunFollower::Begin() {
  const bool goes_on = TRY(Read());
  if (goes_on) ReadLater();
  return {};
}

Interaction RunFollower::Snapshot() const {
  const std::lock_guard lock(mutex_);
  return reader_.run().interaction;
}

Result<bool> RunFollower::Read() {
  const auto held = services_.parts.runs.ReadHeld(ref_);
  if (!held && !IsNotFound(held.error())) return Fail(held.error());
  const std::lock_guard lock(mutex_);
  if (held) {
    // A process that takes the run up writes what was kept anew: the same records, and then its own.
    const auto& records = held->content.records;
    for (; records_ < records.size(); ++records_) TRY(reader_.Add(records[records_]));
    log_->Publish();
    if (!held->has_ended) return true;
  }
  const auto stored = services_.parts.store.LoadInteraction(ref_.chat_id, ref_.interaction_id);
  if (!stored && records_ == 0) return Fail(stored.error());
  if (stored) {
    for (const AgentEvent& event : RecordedEvents(*stored)) {
      if (event.seq > reader_.run().last_seq) log_->AppendRecorded(event);
    }
  }
  log_->Close();
  return false;
}

void RunFollower::ReadLater() {
  services_.timer.After(kReadEvery, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    // Not on the timer's thread, which must not wait.
    self->services_.pool.Submit([weak] {
      const auto follower = weak.lock();
      if (!follower) return;
      const auto goes_on = follower->Read();
      if (!goes_on && goes_on.error().code == ErrorCode::kCorruption) {
        LogError("a run of another server cannot be followed any more",
                 {{"chat", follower->ref_.chat_id.str()}, {"code", goes_on.error().reason}});
        return follower->log_->Close();
      }
      if (!goes_on || *goes_on) follower->ReadLater();  // a database that is away comes back
    });
  });
}

}  // namespace reprise
