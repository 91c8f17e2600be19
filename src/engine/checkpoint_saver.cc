#include "engine/checkpoint_saver.h"

#include <atomic>
#include <utility>

namespace reprise {
namespace {

// Of the attempt and its time limit the first to settle it goes on.
struct Race {
  CheckpointSaver::Done done;
  std::atomic<bool> settled{false};
};

}  // namespace

void CheckpointSaver::Attempt(const std::function<Result<void>()>& save, Done done) {
  if (time_limit_.count() == 0) return done(save());
  const auto race = std::make_shared<Race>();
  race->done = std::move(done);
  // Weak: an attempt that has ended is not kept until its limit passes.
  timer_.After(time_limit_, [this, weak = std::weak_ptr(race)] {
    const auto late = weak.lock();
    if (!late || late->settled.exchange(true)) return;
    pool_.Submit([late] {
      late->done(Fail(Error{.code = ErrorCode::kDeadlineExceeded,
                            .reason = "save_timeout",
                            .message = "the checkpoint could not be written in time"}));
    });
  });
  auto result = save();
  if (!race->settled.exchange(true)) race->done(std::move(result));
}

void CheckpointSaver::Save(std::shared_ptr<RunHold> hold, std::shared_ptr<const Interaction> interaction, Done done) {
  Attempt([&] { return hold->Finish(*interaction); }, std::move(done));
}

void CheckpointSaver::SaveToFallback(std::shared_ptr<const Interaction> interaction, Done done) {
  if (fallbacks_.empty()) return done(Fail(ErrorCode::kIo, "there is no fallback folder"));
  TryFallback(0, std::move(interaction), std::move(done));
}

void CheckpointSaver::TryFallback(std::size_t index, std::shared_ptr<const Interaction> interaction, Done done) {
  Attempt([&] { return fallbacks_[index]->SaveInteraction(*interaction); },
          [this, index, interaction, done = std::move(done)](Result<void> saved) mutable {
            if (saved || index + 1 == fallbacks_.size()) return done(std::move(saved));
            TryFallback(index + 1, std::move(interaction), std::move(done));
          });
}

}  // namespace reprise
