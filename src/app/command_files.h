#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/project_instructions.h"
#include "reprise/result.h"

namespace reprise {

// A command is a file NAME.md: the text of a message, perhaps with front matter (description, model) before it.
inline constexpr std::size_t kMaxCommandFile = 64 * 1024;
inline constexpr std::size_t kMaxCommands = 100;         // in one folder
inline constexpr std::size_t kMaxExpanded = 256 * 1024;  // bytes of the message

// The files NAME.md of `folder`, sorted by name; at most kMaxCommands (`cut` if there are more).
std::vector<std::string> CommandsIn(const std::string& folder, bool& cut);

// Makes `files` commands: fills in names, and the descriptions of those in use. A command with an invalid name or front
// matter, or the name of a nearer command, becomes unusable.
void ReadCommandHeads(std::vector<ProjectInstructions::File>& files);

// As ProjectInstructions::Expand. A command comes before a skill of its name.
Result<ProjectInstructions::Expanded> ExpandCommand(const std::vector<ProjectInstructions::File>& files,
                                                    std::string_view name, std::string_view arguments);

}  // namespace reprise
