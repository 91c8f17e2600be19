#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/trust.h"
#include "reprise/options.h"
#include "reprise/project_instructions.h"
#include "reprise/result.h"
#include "reprise/system_prompt.h"

namespace reprise {

// The head of a skill's file (https://agentskills.io/specification): YAML between two lines "---".
struct SkillHead {
  std::string name;         // 1 to 64 small letters, digits and single hyphens between them
  std::string description;  // one line, hidden characters spelled out, at most kMaxSkillDescription bytes
};
inline constexpr std::size_t kMaxSkillDescription = 1024;

// 1 to 64 small letters, digits and single hyphens between them.
bool IsSkillName(std::string_view name);
// On one line of at most kMaxSkillDescription bytes, with hidden characters spelled out, so that it cannot imitate
// other parts of its surroundings.
std::string DescriptionLine(std::string_view text);

// The errors of ReadFrontMatter, and of a head without name or description. REQUIRES: `text` is valid UTF-8.
Result<SkillHead> ReadSkillHead(std::string_view text);

// The configured folder, or $XDG_CONFIG_HOME/reprise/prompt.
std::string PromptDirectoryOf(const Options& options);

// The folder of the user's own configuration, closed to all tools, so its files need no further permission.
std::string ConfigDirectoryOf(const Options& options);

// The modules that tools could have written, which count only with their allowed content (app/trust.h).
std::vector<std::string> PromptModulesOpenToTools(const Options& options);

// The system prompt that a user can edit: the built-in modules and the files `NN-name.md` of a folder, in the order of
// their names. A file replaces the built-in module of its name (an empty one removes it) or is added; other names are
// ignored. An unusable file (not this user's, writable by others, too large, not UTF-8, an unknown placeholder, open to
// tools and not allowed with this content) is logged once for each reason, and the built-in module is used. The folder
// need not exist. Reads the files at each call; a PromptSource.
class PromptFolder {
 public:
  // `workspace` is free of symbolic links. The modules 70-project and 72-skills hold the instructions of `project`,
  // unless null; files may replace or remove them like the built-in ones.
  PromptFolder(const Options& options, std::string workspace,
               std::shared_ptr<const ProjectInstructions> project = nullptr);
  SystemPrompt operator()() const;
  // kInvalidArgument if a file of the folder is unusable, or the folder.
  Result<void> Check() const;

 private:
  struct Told;
  void Warn(const std::string& message, bool has_built_in = false) const;
  std::vector<ProjectInstructions::File> ProjectFiles() const;
  Result<std::string> ReadModule(const std::string& path) const;

  std::string directory_, workspace_, config_directory_;
  TrustedFiles trusted_;
  std::shared_ptr<const ProjectInstructions> project_;
  std::shared_ptr<Told> told_;  // shared by copies; synchronises itself
};

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
