#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "reprise/project_instructions.h"
#include "reprise/result.h"

namespace reprise {

// A command is a file NAME.md: the text of a message, perhaps with front matter (description, model) before it.
inline constexpr std::size_t kMaxExpanded = 256 * 1024;  // bytes of the message

// ReadNamedHeads for commands.
void ReadCommandHeads(std::vector<ProjectInstructions::File>& files);

// As ProjectInstructions::Expand. A command comes before a skill of its name.
Result<ProjectInstructions::Expanded> ExpandCommand(const std::vector<ProjectInstructions::File>& files,
                                                    std::string_view name, std::string_view arguments);

}  // namespace reprise
