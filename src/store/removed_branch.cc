#include "store/removed_branch.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "store/store_errors.h"

namespace reprise {

Result<RemovedBranch> BranchToRemove(const Chat& chat, InteractionId from) {
  std::set<InteractionId> gone;
  std::optional<InteractionId> before;
  // Parents are older.
  for (const Interaction& each : chat.interactions) {
    if (each.id == from) before = each.parent_id;
    if (each.id == from || (each.parent_id && gone.contains(*each.parent_id))) gone.insert(each.id);
  }
  if (gone.empty()) return NoSuchInteraction();
  if (chat.summary.head && gone.contains(*chat.summary.head)) {
    return Conflict("on_head_branch", "the chat ends on this branch: go to another one first");
  }
  // What is damaged may continue any of them.
  for (const DamagedInteraction& each : chat.damaged) {
    if (each.parent_id && gone.contains(*each.parent_id)) {
      return Conflict("still_used", each.id.str() + " is damaged and continues this branch");
    }
  }
  bool goes_on = false;
  for (const Interaction& each : chat.interactions) {
    if (gone.contains(each.id)) continue;
    goes_on = goes_on || (before && each.parent_id == before);
    const bool uses = each.record && each.record->resumed_from && gone.contains(each.record->resumed_from->interaction);
    if (uses) return Conflict("still_used", each.id.str() + " goes on where this branch was left");
  }
  RemovedBranch removed{.interactions = {gone.begin(), gone.end()}};
  if (before && !goes_on) removed.new_leaf = before;
  return removed;
}

}  // namespace reprise
