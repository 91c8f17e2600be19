#pragma once

#include <string>
#include <vector>

#include "reprise/project_instructions.h"

namespace reprise {

inline constexpr const char* kSkillName = "SKILL.md";
inline constexpr std::size_t kMaxSkillFile = 64 * 1024;  // of which 5,000 tokens are recommended
inline constexpr std::size_t kMaxSkills = 100;           // in one folder
inline constexpr std::size_t kMaxSkillsToldOf = 64;
inline constexpr std::size_t kMaxSkillList = 8 * 1024;  // bytes of what models are told of all together

// The files SKILL.md in the folders that lie in `folder`, by their names; at most kMaxSkills of them (`cut`: there are
// more).
std::vector<std::string> SkillsIn(const std::string& folder, bool& cut);

// Fills in what the files of used skills say in front; where that is wrong, or a nearer skill has the name, the skill
// is unusable.
void ReadHeads(std::vector<ProjectInstructions::File>& files);

// What models are told of skills: of each that is used, on a line of its own. `workspace`: absolute, free of symbolic
// links; those that lie in it are named by their path in it. The nearest have the first claim to the room; how many are
// left out is said.
std::string SkillsText(const std::vector<ProjectInstructions::File>& files, const std::string& workspace);

// The folders of used skills that lie outside of `workspace`: what is in them may be read.
std::vector<std::string> SkillFoldersOutside(const std::vector<ProjectInstructions::File>& files,
                                             const std::string& workspace);

}  // namespace reprise
