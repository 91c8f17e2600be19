#pragma once

#include <optional>
#include <set>
#include <vector>

#include "reprise/engine.h"
#include "reprise/interaction.h"

namespace reprise {

// The ids from `leaf` back to the root of its branch, the damaged ones on it included. Stops at an interaction that is
// in neither list.
std::set<InteractionId> BranchOf(const std::vector<Interaction>& interactions,
                                 const std::vector<DamagedInteraction>& damaged, std::optional<InteractionId> leaf);

// Whether it has called a tool that is not read-only.
bool HasSideEffects(const Interaction& interaction, const ToolSet& tools);

// What an edit of `edited` would do to a chat that ends at `head`.
EditPreview PreviewOf(const Chat& chat, const Interaction& edited, const ToolSet& tools);

}  // namespace reprise
