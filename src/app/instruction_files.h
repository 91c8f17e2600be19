#pragma once

#include <string>
#include <vector>

#include "app/trusted_files.h"
#include "reprise/options.h"
#include "reprise/project_instructions.h"

namespace reprise {

inline constexpr const char* kInstructionsName = "AGENTS.md";
inline constexpr std::size_t kMaxInstructions = 32 * 1024;  // bytes of all together

// AGENTS.md of the user's configuration folder, and of the folders from the workspace upwards: to the top of its git
// work tree, else to the user's home or the root. Likewise skills: those of the user lie in the configuration folder
// and in ~/.agents/skills, those of a project in .agents/skills. What tools could have written counts only as it was
// allowed; `reprise trust` and Allow keep that in one list. What leads out of its project is not used. Read each time.
class InstructionFiles final : public ProjectInstructions {
 public:
  // `workspace`: absolute, free of symbolic links; empty: there is none.
  InstructionFiles(const Options& options, std::string workspace, bool with_skills);

  std::vector<File> List() const override;
  Result<void> Allow(std::string_view path, std::string_view digest) override;

 private:
  class Consent;
  struct Folder {
    std::string path, instructions, skills;
  };

  const std::string& LimitOf(const Folder& folder) const;
  void AddSkills(std::vector<File>& files, Consent& consent) const;

  std::string workspace_, config_directory_;
  bool with_skills_;
  std::string own_;                      // the file of the user's own
  std::vector<std::string> own_skills_;  // folders of the user's own
  std::string project_;                  // the top of the git work tree; empty: there is none
  std::vector<Folder> folders_;          // down to the workspace
  TrustedFiles trusted_;
};

// What models are told of files of instructions: those that are used, as much as there is room for. What is cut or left
// out is said, the nearest is kept.
std::string TextOf(const std::vector<ProjectInstructions::File>& files);

}  // namespace reprise
