#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/project_instructions.h"
#include "reprise/result.h"

namespace reprise {

// Files NAME.md, each a thing that people or models call by its name: commands and agents.
inline constexpr std::size_t kMaxNamedFile = 64 * 1024;
inline constexpr std::size_t kMaxNamedFiles = 100;  // in one folder

using EntryFilter = std::function<bool(const std::filesystem::path& entry)>;
// The entries of `folder` that `keeps` accepts, sorted by name; at most `most` (`cut` if there are more, or too many
// entries).
std::vector<std::string> PathsIn(const std::string& folder, std::size_t most, const EntryFilter& keeps, bool& cut);

// The files NAME.md of `folder`, sorted by name; at most kMaxNamedFiles (`cut` if there are more).
std::vector<std::string> NamedFilesIn(const std::string& folder, bool& cut);

// The description in a file, on one line; an error if the file cannot be used.
using HeadReader = std::function<Result<std::string>(std::string_view text)>;

// Makes `files` ones of `kind`: fills in names, and the descriptions of those in use. A file with an invalid name or
// head, or the name of a nearer file, becomes unusable.
void ReadNamedHeads(std::vector<ProjectInstructions::File>& files, ProjectInstructions::Kind kind,
                    const HeadReader& read);

// Why a file that is not kUsed or kUnusable cannot be used (reason "untrusted").
Error NotAllowedYet(const ProjectInstructions::File& file);

// A sub-agent is a file NAME.md: front matter (description, tools, model, mode), and its instructions. A file with
// other members in front is unusable, because an author who asks for something must not get less than that silently.

// ReadNamedHeads for agents.
void ReadAgentHeads(std::vector<ProjectInstructions::File>& files);

// As ProjectInstructions::FindAgent, in files that ReadAgentHeads has read.
Result<ProjectInstructions::Agent> AgentNamed(const std::vector<ProjectInstructions::File>& files,
                                              std::string_view name);

// A command is a file NAME.md: the text of a message, perhaps with front matter (description, model) before it.
inline constexpr std::size_t kMaxExpanded = 256 * 1024;  // bytes of the message

// ReadNamedHeads for commands.
void ReadCommandHeads(std::vector<ProjectInstructions::File>& files);

// As ProjectInstructions::Expand. A command comes before a skill of its name.
Result<ProjectInstructions::Expanded> ExpandCommand(const std::vector<ProjectInstructions::File>& files,
                                                    std::string_view name, std::string_view arguments);

}  // namespace reprise
