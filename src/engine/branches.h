#pragma once

#include <optional>
#include <set>
#include <vector>

#include "reprise/engine.h"
#include "reprise/interaction.h"

namespace reprise {

// The ids from `leaf` back to the root of its branch. Stops at an interaction that is not among `interactions`.
std::set<InteractionId> BranchOf(const std::vector<Interaction>& interactions, std::optional<InteractionId> leaf);

// What an edit of `edited` would do to a chat that ends at `head`.
EditPreview PreviewOf(const std::vector<Interaction>& interactions, const std::optional<InteractionId>& head,
                      const Interaction& edited, const ToolRegistry& tools);

}  // namespace reprise
