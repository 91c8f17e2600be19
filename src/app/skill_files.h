#pragma once

#include <string>
#include <vector>

#include "reprise/project_instructions.h"

namespace reprise {

inline constexpr const char* kSkillName = "SKILL.md";
inline constexpr std::size_t kMaxSkillFile = 64 * 1024;  // the standard recommends at most 5,000 tokens
inline constexpr std::size_t kMaxSkills = 100;           // in one folder
inline constexpr std::size_t kMaxSkillsToldOf = 64;
inline constexpr std::size_t kMaxSkillList = 8 * 1024;  // bytes of the list for models

// The files SKILL.md in the subfolders of `folder`, sorted by name; at most kMaxSkills (`cut` if there are more).
std::vector<std::string> SkillsIn(const std::string& folder, bool& cut);

// Fills in the heads of used skills. A skill with an invalid head, or the name of a nearer skill, becomes unusable.
void ReadHeads(std::vector<ProjectInstructions::File>& files);

// The list of used skills for models, one per line, as far as they fit, the nearest first; says how many are left out.
// `workspace` is absolute and free of symbolic links; skills in it get relative paths.
std::string SkillsText(const std::vector<ProjectInstructions::File>& files, const std::string& workspace);

// The folders of used skills outside of `workspace`, which tools may read.
std::vector<std::string> SkillFoldersOutside(const std::vector<ProjectInstructions::File>& files,
                                             const std::string& workspace);

}  // namespace reprise
