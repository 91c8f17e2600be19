#pragma once

#include <string>
#include <vector>

#include "reprise/interaction.h"

namespace reprise {

// Chats in the formats of other programs. docs/share.md lists what each of them lacks.

// One branch, from its root on, as a trajectory of ATIF 1.7 (Harbor's Agent Trajectory Interchange Format): one JSON
// document.
std::string FormatAtif(const ChatSummary& summary, const std::vector<AddedInteraction>& branch);

// Interactions of any branches, parents first, as a session of Claude Code: a line of JSON for each message.
std::string FormatClaudeCode(const ChatSummary& summary, const std::vector<AddedInteraction>& turns);

}  // namespace reprise
