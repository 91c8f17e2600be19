#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/trusted_files.h"
#include "reprise/options.h"
#include "reprise/project_instructions.h"
#include "reprise/system_prompt.h"

namespace reprise {

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

 private:
  struct Told;
  void Warn(const std::string& message) const;
  std::vector<ProjectInstructions::File> ProjectFiles() const;
  Result<std::string> ReadModule(const std::string& path) const;

  std::string directory_, workspace_, config_directory_;
  TrustedFiles trusted_;
  std::shared_ptr<const ProjectInstructions> project_;
  std::shared_ptr<Told> told_;  // shared by copies; synchronises itself
};

}  // namespace reprise
