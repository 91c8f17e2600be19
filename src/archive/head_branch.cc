#include "archive/head_branch.h"

#include <map>
#include <optional>

namespace reprise {

std::set<InteractionId> HeadBranch(const Chat& chat) {
  std::map<InteractionId, std::optional<InteractionId>> parents;
  for (const Interaction& interaction : chat.interactions) parents[interaction.id] = interaction.parent_id;
  std::set<InteractionId> branch;
  for (auto id = chat.summary.head; id && branch.insert(*id).second;) {
    const auto parent = parents.find(*id);
    id = parent == parents.end() ? std::nullopt : parent->second;  // a damaged one ends what is known of the branch
  }
  return branch;
}

}  // namespace reprise
