#include "engine/checkpoint_saver.h"

#include <future>
#include <utility>

namespace reprise {

Result<void> CheckpointSaver::SaveTo(InteractionStore& store, std::shared_ptr<const Interaction> interaction) {
  // A write that hangs in the kernel cannot be interrupted, so it is left to a thread of its own.
  auto done = std::make_shared<std::promise<Result<void>>>();
  auto result = done->get_future();
  pool_.Submit([&store, interaction = std::move(interaction), done] {
    done->set_value(store.SaveInteraction(*interaction));
  });
  if (result.wait_for(time_limit_) == std::future_status::ready) return result.get();
  return Fail(Error{.code = ErrorCode::kDeadlineExceeded,
                    .reason = "save_timeout",
                    .message = "the checkpoint could not be written in time"});
}

Result<void> CheckpointSaver::Save(std::shared_ptr<const Interaction> interaction) {
  return SaveTo(store_, std::move(interaction));
}

Result<void> CheckpointSaver::SaveToFallback(std::shared_ptr<const Interaction> interaction) {
  Result<void> last = Fail(ErrorCode::kIo, "there is no fallback folder");
  for (InteractionStore* fallback : fallbacks_) {
    last = SaveTo(*fallback, interaction);
    if (last) break;
  }
  return last;
}

}  // namespace reprise
