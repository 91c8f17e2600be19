#include "engine/branches.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/json.h"

namespace reprise {
namespace {

const Interaction* Find(const std::vector<Interaction>& interactions, InteractionId id) {
  const auto found =
      std::find_if(interactions.begin(), interactions.end(), [&](const Interaction& each) { return each.id == id; });
  return found == interactions.end() ? nullptr : &*found;
}

std::optional<std::string> PathIn(const std::string& arguments) {
  const auto json = ParseJson(arguments);
  if (!json || !json->is_object()) return std::nullopt;
  const auto path = json->find("path");
  if (path == json->end() || !path->is_string()) return std::nullopt;
  return path->get<std::string>();
}

// `tool_call` is shown when the tool runs, so a call that was refused is none of these.
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
      const auto found = std::find_if(damaged.begin(), damaged.end(),
                                      [&](const DamagedInteraction& each) { return each.id == *leaf; });
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
    if (interaction == nullptr) continue;  // damaged: what it did cannot be said
    AddSideEffects(*interaction, tools, preview.side_effects);
  }
  return preview;
}

}  // namespace reprise
