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

std::set<InteractionId> BranchOf(const std::vector<Interaction>& interactions, std::optional<InteractionId> leaf) {
  std::set<InteractionId> branch;
  while (leaf) {
    const Interaction* interaction = Find(interactions, *leaf);
    if (interaction == nullptr || !branch.insert(*leaf).second) break;
    leaf = interaction->parent_id;
  }
  return branch;
}

EditPreview PreviewOf(const std::vector<Interaction>& interactions, const std::optional<InteractionId>& head,
                      const Interaction& edited, const ToolRegistry& tools) {
  const std::set<InteractionId> kept = BranchOf(interactions, edited.parent_id);
  EditPreview preview;
  for (const InteractionId id : BranchOf(interactions, head)) {
    if (kept.contains(id)) continue;
    preview.superseded.push_back(id);
    for (const AgentEvent& event : Find(interactions, id)->events) {
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
