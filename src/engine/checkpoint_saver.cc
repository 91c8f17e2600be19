#include "engine/checkpoint_saver.h"

#include <atomic>

#include "base/logging.h"

namespace reprise {
namespace {

// The first of attempt and time limit to settle the race continues.
struct Race {
  CheckpointSaver::Done done;
  std::atomic<bool> settled{false};
};

Error HasThrown() { return MakeError(ErrorCode::kInternal, "the store failed for an internal reason"); }

}  // namespace

// Calls `done` once: for the attempt or for the limit, whichever comes first.
CheckpointSaver::Done CheckpointSaver::Limited(Done done) {
  const auto race = std::make_shared<Race>();
  race->done = std::move(done);
  // Weak, so that a finished attempt is not kept until its limit passes.
  if (time_limit_.count() != 0)
    timer_.After(time_limit_, [this, weak = std::weak_ptr(race)] {
      const auto late = weak.lock();
      if (!late || late->settled.exchange(true)) return;
      pool_.Submit([late] { late->done(Fail(Reason::kSaveTimeout, "the checkpoint could not be written in time")); });
    });
  return [race](Result<void> result) {
    if (!race->settled.exchange(true)) race->done(std::move(result));
  };
}

// One save. The store releases it last, on a thread that may outlive the engine, so it drops its references early.
class CheckpointSaver::Finishing {
 public:
  Finishing(CheckpointSaver& saver, std::shared_ptr<RunHold> hold, std::shared_ptr<const Interaction> interaction,
            Done done)
      : saver_(saver), hold_(std::move(hold)), interaction_(std::move(interaction)), done_(std::move(done)) {
    const MutexLock lock(saver_.mutex_);
    ++saver_.under_way_;
  }
  Finishing(const Finishing&) = delete;
  ~Finishing() {
    done_ = nullptr;
    interaction_ = nullptr;
    hold_ = nullptr;
    const MutexLock lock(saver_.mutex_);
    --saver_.under_way_;
    saver_.ended_.notify_all();
  }

  void End(Result<void> saved) {
    if (!done_) return;
    if (saved || !saved.error().Is(Reason::kFinishAgain)) return done_(std::move(saved));
    saver_.pool_.Submit([hold = std::move(hold_), interaction = std::move(interaction_), done = std::move(done_)] {
      Result<void> again = Fail(HasThrown());
      Guarded("a store", [&] { again = hold->Finish(*interaction); });
      done(std::move(again));
    });
  }

 private:
  CheckpointSaver& saver_;
  std::shared_ptr<RunHold> hold_;
  std::shared_ptr<const Interaction> interaction_;
  Done done_;
};

CheckpointSaver::~CheckpointSaver() {
  MutexLock lock(mutex_);
  ended_.wait(lock, [this]() REQUIRES(mutex_) { return under_way_ == 0; });
}

void CheckpointSaver::Save(std::shared_ptr<RunHold> hold, std::shared_ptr<const Interaction> interaction, Done done) {
  RunHold& of = *hold;
  const auto finishing = std::make_shared<Finishing>(*this, std::move(hold), interaction, Limited(std::move(done)));
  const auto finish = [&] {
    of.FinishSoon(std::move(interaction), [finishing](Result<void> saved) { finishing->End(std::move(saved)); });
  };
  if (!Guarded("a store", finish)) finishing->End(Fail(HasThrown()));  // unless it has ended before
}

void CheckpointSaver::SaveToFallback(std::shared_ptr<const Interaction> interaction, Done done) {
  if (fallbacks_.empty()) return done(Fail(ErrorCode::kIo, "there is no fallback folder"));
  TryFallback(0, std::move(interaction), std::move(done));
}

void CheckpointSaver::TryFallback(std::size_t index, std::shared_ptr<const Interaction> interaction, Done done) {
  const Done attempted = Limited([this, index, interaction, done = std::move(done)](Result<void> saved) mutable {
    if (saved || index + 1 == fallbacks_.size()) return done(std::move(saved));
    TryFallback(index + 1, std::move(interaction), std::move(done));
  });
  Result<void> saved = Fail(HasThrown());
  Guarded("a store", [&] { saved = fallbacks_[index]->SaveInteraction(*interaction); });
  attempted(std::move(saved));
}

}  // namespace reprise
