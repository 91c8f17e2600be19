#include "engine/branches.h"

#include <algorithm>
#include <variant>

namespace reprise {
namespace {

const Interaction* Find(const std::vector<Interaction>& interactions, InteractionId id) {
  const auto found =
      std::find_if(interactions.begin(), interactions.end(), [&](const Interaction& each) { return each.id == id; });
  return found == interactions.end() ? nullptr : &*found;
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

EditPreview PreviewOf(const Chat& chat, const Interaction& edited, const ToolSet& tools) {
  const std::set<InteractionId> kept = BranchOf(chat.interactions, chat.damaged, edited.parent_id);
  EditPreview preview;
  for (const InteractionId id : BranchOf(chat.interactions, chat.damaged, chat.summary.head)) {
    if (kept.contains(id)) continue;
    preview.superseded.push_back(id);
    const Interaction* interaction = Find(chat.interactions, id);
    if (interaction == nullptr) continue;  // damaged: what it did cannot be said
    for (const AgentEvent& event : interaction->events) {
      const auto* call = std::get_if<event::ToolCallStarted>(&event.payload);
      if (call == nullptr) continue;
      const Tool* tool = tools.Find(call->tool_name);
      if (tool != nullptr && tool->traits().read_only) continue;
      preview.side_effects.push_back({id, call->id, call->tool_name, call->tool_input});
    }
  }
  return preview;
}

}  // namespace reprise
