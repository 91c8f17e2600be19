#include "engine/interactions.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/json.h"
#include "base/try.h"
#include "engine/attachments.h"
#include "engine/request_body.h"
#include "engine/run_journal.h"
#include "engine/told_request.h"

namespace reprise {

namespace {

const Interaction* Find(const std::vector<Interaction>& interactions, InteractionId id) {
  const auto found = std::ranges::find(interactions, id, &Interaction::id);
  return found == interactions.end() ? nullptr : &*found;
}

std::optional<std::string> PathIn(const std::string& arguments) {
  const auto json = ParseJson(arguments);
  if (!json || !json->is_object()) return std::nullopt;
  const auto path = json->find("path");
  if (path == json->end() || !path->is_string()) return std::nullopt;
  return path->get<std::string>();
}

// `tool_call` is shown when a tool runs, so a refused call does not count.
void AddSideEffects(const Interaction& interaction, const ToolSet& tools,
                    std::vector<EditPreview::SideEffect>& effects) {
  const auto first = static_cast<std::ptrdiff_t>(effects.size());
  for (const AgentEvent& event : interaction.events) {
    if (const auto* call = std::get_if<event::ToolCallStarted>(&event.payload)) {
      const Tool* tool = tools.Find(call->tool_name);
      if (tool != nullptr && tool->traits().read_only) continue;
      effects.push_back({interaction.id, call->id, call->tool_name, call->tool_input, PathIn(call->tool_input)});
    } else if (const auto* result = std::get_if<event::ToolResult>(&event.payload)) {
      const auto found = std::find_if(effects.begin() + first, effects.end(),
                                      [&](const auto& effect) { return effect.call_id == result->id; });
      if (found != effects.end()) found->failed = result->is_error;
    }
  }
}

}  // namespace

std::set<InteractionId> BranchOf(const std::vector<Interaction>& interactions,
                                 const std::vector<DamagedInteraction>& damaged, std::optional<InteractionId> leaf) {
  std::set<InteractionId> branch;
  while (leaf) {
    std::optional<InteractionId> parent;
    if (const Interaction* interaction = Find(interactions, *leaf)) {
      parent = interaction->parent_id;
    } else {
      const auto found = std::ranges::find(damaged, *leaf, &DamagedInteraction::id);
      if (found == damaged.end()) break;
      parent = found->parent_id;
    }
    if (!branch.insert(*leaf).second) break;
    leaf = parent;
  }
  return branch;
}

bool HasSideEffects(const Interaction& interaction, const ToolSet& tools) {
  std::vector<EditPreview::SideEffect> effects;
  AddSideEffects(interaction, tools, effects);
  return !effects.empty();
}

EditPreview PreviewOf(const Chat& chat, const Interaction& edited, const ToolSet& tools) {
  const std::set<InteractionId> kept = BranchOf(chat.interactions, chat.damaged, edited.parent_id);
  EditPreview preview;
  for (const InteractionId id : BranchOf(chat.interactions, chat.damaged, chat.summary.head)) {
    if (kept.contains(id)) continue;
    preview.superseded.push_back(id);
    const Interaction* interaction = Find(chat.interactions, id);
    if (interaction == nullptr) continue;  // damaged: its effects are unknown
    AddSideEffects(*interaction, tools, preview.side_effects);
  }
  return preview;
}

Result<Interaction> Interactions::Find(const ChatId& chat, InteractionId id) const {
  if (const auto run = busy_.RunOf(chat, id)) return run->Snapshot();
  auto finished = FindFinished(chat, id);
  if (finished || !IsNotFound(finished.error())) return finished;
  auto running = TRY(FindElsewhere({chat, id}));
  return running ? Result<Interaction>(*std::move(running)) : FindFinished(chat, id);  // it may have ended just now
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
  auto run = TRY(ReadRun(ref, held->content));
  return run ? std::optional(std::move(run->interaction)) : std::nullopt;
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
  return Fail(Reason::kNotReplayable, "the interaction has not come to its end yet");
}

Result<Interaction> Interactions::FindRecorded(const ChatId& chat, InteractionId id) const {
  auto found = TRY(Find(chat, id));
  if (IsFinished(found.status)) return found;
  return Fail(Reason::kNotFinished, "the interaction has not come to its end yet");
}

Result<RequestsOnRecord> Interactions::RequestsOf(const ChatId& chat, InteractionId id) const {
  const Interaction asked = TRY(FindRecorded(chat, id));
  return RequestBodies(services_.parts.store, nullptr).AllOf(asked);
}

Result<ToldRequest> Interactions::ToldBy(const ChatId& chat, InteractionId id, std::uint64_t index) const {
  const Interaction asked = TRY(FindRecorded(chat, id));
  std::optional<FilesInStore> files;
  if (services_.parts.files) files.emplace(*services_.parts.files, chat);
  RequestBodies bodies(services_.parts.store, files ? &*files : nullptr);
  const std::string body = TRY(bodies.ForPeople(asked, index));
  const auto listed = TRY(bodies.WithLists(asked, index));
  std::string before;
  if (const auto& place = (*asked.record->requests)[index].body.before) {
    const bool is_here = place->interaction == id;
    before = TRY(bodies.ForPeople(is_here ? asked : TRY(FindRecorded(chat, place->interaction)), place->index));
  }
  return InParts(body, before, listed ? *listed->modules : std::vector<ToldModule>());
}

Result<std::string> Interactions::RequestBody(const ChatId& chat, InteractionId id, std::uint64_t index) const {
  const Interaction asked = TRY(FindRecorded(chat, id));
  std::optional<FilesInStore> files;
  if (services_.parts.files) files.emplace(*services_.parts.files, chat);
  return RequestBodies(services_.parts.store, files ? &*files : nullptr).Of(asked, index);
}

Result<void> Interactions::CheckChat(const ChatId& chat) const {
  if (busy_.RunOf(chat)) return {};
  return services_.parts.store.LoadSummary(chat).map([](const ChatSummary&) {});
}

void Interactions::Rescue(const Interaction& finished) {
  constexpr std::size_t kMaxRescued = 100;
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
  return std::ranges::any_of(rescued_, [&](const auto& each) { return each.first.first == chat; });
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
