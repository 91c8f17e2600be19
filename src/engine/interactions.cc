#include "engine/interactions.h"

#include <algorithm>

#include "base/try.h"
#include "engine/run_journal.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxRescued = 100;

}  // namespace

Result<Interaction> Interactions::Find(const ChatId& chat, InteractionId id) const {
  if (const auto run = busy_.RunOf(chat, id)) return run->Snapshot();
  auto finished = FindFinished(chat, id);
  if (finished || !IsNotFound(finished.error())) return finished;
  auto running = FindElsewhere({chat, id});
  if (!running) return Fail(std::move(running.error()));
  return *running ? Result<Interaction>(**std::move(running)) : FindFinished(chat, id);  // it may have ended just now
}

Result<std::optional<Interaction>> Interactions::FindElsewhere(const InteractionRef& ref) const {
  auto running = ReadElsewhere(ref);
  if (running && *running) (*running)->status = WaitingElsewhere(ref.chat_id).Status();
  return running;
}

Result<std::optional<Interaction>> Interactions::ReadElsewhere(const InteractionRef& ref) const {
  const auto held = services_.parts.runs.ReadHeld(ref);
  if (!held && !IsNotFound(held.error())) return Fail(held.error());
  if (!held || held->has_ended) return std::nullopt;
  auto run = ReadRun(ref, held->content);
  if (!run) return Fail(std::move(run.error()));
  return *run ? std::optional(std::move((*run)->interaction)) : std::nullopt;
}

WaitingQuestions Interactions::WaitingElsewhere(const ChatId& chat) const {
  WaitingQuestions waiting;
  const auto questions =
      services_.parts.questions ? services_.parts.questions->Waiting() : std::vector<PendingQuestion>();
  for (const PendingQuestion& each : questions.value_or(std::vector<PendingQuestion>())) {
    if (QuestionRun(each).chat_id != chat) continue;
    ++(std::holds_alternative<PendingApproval>(each) ? waiting.approvals : waiting.inputs);
  }
  return waiting;
}

Result<Interaction> Interactions::FindFinished(const ChatId& chat, InteractionId id) const {
  auto stored = services_.parts.store.LoadInteraction(chat, id);
  if (stored) return stored;
  const MutexLock lock(mutex_);
  const auto rescued = rescued_.find({chat, id});
  if (rescued == rescued_.end()) return stored;
  return rescued->second;
}

Result<Interaction> Interactions::FindReplayable(const ChatId& chat, InteractionId id) const {
  if (!busy_.RunOf(chat, id)) {
    auto finished = FindFinished(chat, id);
    if (finished || !IsNotFound(finished.error())) return finished;
    if (TRY(services_.parts.runs.HeldElsewhere(chat)) != id) return finished;
  }
  return Fail(Error{.code = ErrorCode::kConflict,
                    .reason = "not_replayable",
                    .message = "the interaction has not come to its end yet"});
}

Result<void> Interactions::CheckChat(const ChatId& chat) const {
  if (busy_.RunOf(chat)) return {};
  return services_.parts.store.LoadSummary(chat).map([](const ChatSummary&) {});
}

void Interactions::Rescue(const Interaction& finished) {
  const MutexLock lock(mutex_);
  rescued_.insert_or_assign({finished.chat_id, finished.id}, finished);
  if (rescued_.size() > kMaxRescued) rescued_.erase(rescued_.begin());
}

bool Interactions::IsRescued(const InteractionRef& ref) {
  for (InteractionStore* fallback : services_.parts.fallback_stores) {
    auto rescued = fallback->LoadInteraction(ref.chat_id, ref.interaction_id);
    if (!rescued) continue;
    const MutexLock lock(mutex_);
    rescued_.insert_or_assign({ref.chat_id, ref.interaction_id}, *std::move(rescued));
    return true;
  }
  return false;
}

bool Interactions::HasRescued(const ChatId& chat) const {
  const MutexLock lock(mutex_);
  return std::any_of(rescued_.begin(), rescued_.end(), [&](const auto& each) { return each.first.first == chat; });
}

std::vector<Interaction> Interactions::RescuedAfter(const ChatId& chat, std::optional<InteractionId> head) {
  std::vector<Interaction> rescued;
  {
    const MutexLock lock(mutex_);
    for (const auto& [place, interaction] : rescued_) {
      if (place.first != chat || interaction.parent_id != head) continue;
      head = place.second;
      rescued.push_back(interaction);
    }
  }
  // The disk may work again.
  while (!rescued.empty() && services_.parts.store.SaveInteraction(rescued.front())) {
    const MutexLock lock(mutex_);
    rescued_.erase({chat, rescued.front().id});
    rescued.erase(rescued.begin());
  }
  return rescued;
}

void Interactions::Forget(const ChatId& chat) {
  const MutexLock lock(mutex_);
  std::erase_if(rescued_, [&](const auto& each) { return each.first.first == chat; });
}

}  // namespace reprise
