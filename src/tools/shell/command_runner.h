#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/tool.h"
#include "tools/files/workspace.h"
#include "tools/shell/sandbox.h"
#include "tools/tool_options.h"

namespace reprise {

// Runs what the agent wants to have run: in the workspace, in the sandbox where there is one, with a clean environment.
// Thread-safe.
class CommandRunner {
 public:
  // Reads HOME, PATH and the like from the server's environment now, not later. `secret_paths` (SecretPaths) are hidden
  // from what it runs, but for those that the workspace lies in. `workspace` must outlive this.
  CommandRunner(const Workspace& workspace, const std::vector<std::string>& secret_paths, ShellOptions options);

  struct Job {
    std::vector<std::string> argv;
    std::string input = {};                     // what its stdin holds
    std::vector<std::string> environment = {};  // "NAME=value", beside the clean one
    std::chrono::milliseconds timeout{};
  };
  // What it printed, and how it ended if that was not well, for the model.
  ToolOutcome Run(const Job& job, const ToolContext& context) const;

  // The absolute path of a program in PATH that a command can run; empty if there is none.
  std::string Find(std::string_view program) const;

  // Whether a bare name would be looked up in a place that the agent's commands can change: in a relative folder of
  // PATH, in the workspace, or in what the sandbox may write.
  bool FindsAmongFiles(const std::string& program) const;

  const Sandbox& sandbox() const { return sandbox_; }
  const ShellOptions& options() const { return options_; }
  const Workspace& workspace() const { return workspace_; }

 private:
  const Workspace& workspace_;
  const ShellOptions options_;
  const std::string path_;
  const std::vector<std::string> environment_;
  const Sandbox sandbox_;
};

}  // namespace reprise
