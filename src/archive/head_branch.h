#pragma once

#include <set>

#include "reprise/interaction.h"

namespace reprise {

// The numbers on the head's branch.
std::set<InteractionId> HeadBranch(const Chat& chat);

}  // namespace reprise
