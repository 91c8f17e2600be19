#pragma once

#include <string_view>
#include <vector>

#include "reprise/project_instructions.h"
#include "reprise/result.h"

namespace reprise {

// A sub-agent is a file NAME.md: front matter (description, tools, model, mode), and its instructions. A file with
// other members in front is unusable, because an author who asks for something must not get less than that silently.

// ReadNamedHeads for agents.
void ReadAgentHeads(std::vector<ProjectInstructions::File>& files);

// As ProjectInstructions::FindAgent, in files that ReadAgentHeads has read.
Result<ProjectInstructions::Agent> AgentNamed(const std::vector<ProjectInstructions::File>& files,
                                              std::string_view name);

}  // namespace reprise
