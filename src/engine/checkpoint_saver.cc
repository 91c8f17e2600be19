#include "engine/checkpoint_saver.h"

#include <atomic>
#include <utility>

namespace reprise {
namespace {

// Of the attempt and its time limit the first to settle it goes on.
struct Attempt {
  CheckpointSaver::Done done;
  std::atomic<bool> settled{false};
};

}  // namespace

void CheckpointSaver::SaveTo(CheckpointStore& store, const std::shared_ptr<const Interaction>& interaction, Done done) {
  const auto attempt = std::make_shared<Attempt>();
  attempt->done = std::move(done);
  // Weak: an attempt that has ended is not kept until its limit passes.
  timer_.After(time_limit_, [this, weak = std::weak_ptr(attempt)] {
    const auto late = weak.lock();
    if (!late || late->settled.exchange(true)) return;
    pool_.Submit([late] {
      late->done(Fail(Error{.code = ErrorCode::kDeadlineExceeded,
                            .reason = "save_timeout",
                            .message = "the checkpoint could not be written in time"}));
    });
  });
  auto result = store.SaveInteraction(*interaction);
  if (!attempt->settled.exchange(true)) attempt->done(std::move(result));
}

void CheckpointSaver::Save(std::shared_ptr<const Interaction> interaction, Done done) {
  SaveTo(store_, interaction, std::move(done));
}

void CheckpointSaver::SaveToFallback(std::shared_ptr<const Interaction> interaction, Done done) {
  if (fallbacks_.empty()) return done(Fail(ErrorCode::kIo, "there is no fallback folder"));
  TryFallback(0, std::move(interaction), std::move(done));
}

void CheckpointSaver::TryFallback(std::size_t index, std::shared_ptr<const Interaction> interaction, Done done) {
  SaveTo(*fallbacks_[index], interaction,
         [this, index, interaction, done = std::move(done)](Result<void> saved) mutable {
           if (saved || index + 1 == fallbacks_.size()) return done(std::move(saved));
           TryFallback(index + 1, std::move(interaction), std::move(done));
         });
}

}  // namespace reprise
