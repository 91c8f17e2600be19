#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/trust.h"
#include "base/mutex.h"
#include "reprise/options.h"
#include "reprise/project_instructions.h"

namespace reprise {

inline constexpr const char* kInstructionsName = "AGENTS.md";
// Those of other agents, in the order in which they stand in for a missing AGENTS.md of a project's folder.
inline constexpr const char* kOtherInstructions[] = {"CLAUDE.md", ".cursorrules"};
inline constexpr std::size_t kMaxInstructionFile = 256 * 1024;  // bytes; larger files are not read
inline constexpr std::size_t kMaxInstructions = 32 * 1024;      // bytes, all files together

// AGENTS.md of the user's configuration folder, and AGENTS.md (else CLAUDE.md, else .cursorrules) of the workspace and
// the folders above it: up to the top of its git work tree, else to the user's home or the root. Likewise skills: the
// user's lie in the configuration folder and in ~/.agents/skills, a project's in .agents/skills. Commands lie in
// "commands" of the configuration folder and in .reprise/commands of a project, agents in "agents" and .reprise/agents.
// A file that tools could have written counts only with its allowed content; `reprise trust` and Allow keep these in
// one list. A file outside its project is not used. Reads the files again when the times of one of them, or of a folder
// where one may appear, have changed.
class InstructionFiles final : public ProjectInstructions {
 public:
  // `workspace` is absolute and free of symbolic links; empty if there is none.
  InstructionFiles(const Options& options, std::string workspace, bool with_skills);

  std::vector<File> List() const override;
  Result<void> Allow(std::string_view path, std::string_view digest) override;
  Result<Expanded> Expand(std::string_view name, std::string_view arguments) const override;
  std::vector<File> Agents() const override;
  Result<Agent> FindAgent(std::string_view name) const override;

 private:
  class Reading;
  struct Folder {
    std::string path, skills;
    std::vector<std::string> instructions;  // the first that is there counts
  };

  const std::string& LimitOf(const Folder& folder) const;
  void AddSkills(std::vector<File>& files, Reading& reading) const;
  std::vector<File> NamedFiles(const char* own, const char* shared, Reading& reading) const;

  std::string workspace_, config_directory_;
  bool with_skills_;
  std::string own_;                      // the user's own file
  std::vector<std::string> own_skills_;  // folders of the user's own skills
  std::string project_;                  // the top of the git work tree; empty if there is none
  std::vector<Folder> folders_;          // from the top down to the workspace
  std::string trust_file_;
  mutable Mutex mutex_;
  mutable std::shared_ptr<const Reading> last_ GUARDED_BY(mutex_);  // null: none yet
};

// The text for models: the files in use, as far as they fit, the nearest first. It names cut and omitted files.
std::string TextOf(const std::vector<ProjectInstructions::File>& files);

}  // namespace reprise
