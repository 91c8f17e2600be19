#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "tools/builtin_tool.h"
#include "tools/shell/command_runner.h"

namespace reprise {

// A tool that runs what the agent writes. Whoever is asked for approval is told whether there is a sandbox around it.
class CommandTool : public BuiltinTool {
 public:
  const ToolTraits& traits() const override;

 protected:
  // `what` is for the approval's reason: "runs a shell command".
  CommandTool(ToolSpec spec, const std::string& what, std::shared_ptr<const CommandRunner> runner);
  const CommandRunner& runner() const { return *runner_; }

 private:
  const std::shared_ptr<const CommandRunner> runner_;
  const std::string what_;
  mutable std::once_flag bare_traits_made_;
  mutable ToolTraits bare_traits_;
};

}  // namespace reprise
