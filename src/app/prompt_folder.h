#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/trusted_files.h"
#include "reprise/options.h"
#include "reprise/project_instructions.h"
#include "reprise/system_prompt.h"

namespace reprise {

// The folder that the configuration names, or $XDG_CONFIG_HOME/reprise/prompt.
std::string PromptDirectoryOf(const Options& options);

// The folder of the user's own configuration, closed to all tools: what lies there needs no further word of anybody.
std::string ConfigDirectoryOf(const Options& options);

// The modules that tools could have written: they count only as they were allowed (app/trust.h).
std::vector<std::string> PromptModulesOpenToTools(const Options& options);

// The system prompt that a user can edit: the built-in modules and the files `NN-name.md` of a folder, in the order of
// their names. A file takes the place of the built-in module of its name (an empty one removes it) or stands beside
// them; other names are passed over. A file that cannot be used (not this user's, writable by others, too large, not
// UTF-8, an unknown placeholder, open to tools and not allowed as it is) is told in the log, once for each reason, and
// what is built in stands instead. The folder need not be there. Files are read each time it is asked; a PromptSource.
class PromptFolder {
 public:
  // `workspace` is free of symbolic links.
  // `project`: what the project tells of itself, as the modules 70-project and 72-skills; they may be replaced or
  // removed like the built-in ones. Null: nothing.
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
