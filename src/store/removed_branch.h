#pragma once

#include <optional>
#include <vector>

#include "reprise/interaction.h"
#include "reprise/result.h"

namespace reprise {

// What goes if an interaction is removed together with all that continue it.
struct RemovedBranch {
  std::vector<InteractionId> interactions;     // by rising number
  std::optional<InteractionId> new_leaf = {};  // the one before, if nothing else continues it
};

// The failures of ChatStore::RemoveBranch.
Result<RemovedBranch> BranchToRemove(const Chat& chat, InteractionId from);

}  // namespace reprise
