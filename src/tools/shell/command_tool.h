#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "tools/builtin_tools.h"
#include "tools/shell/command_runner.h"

namespace reprise {

// A tool that runs what the agent writes. Whoever is asked for approval is told whether there is a sandbox around it;
// where it is not whole, a person is asked each time.
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
  mutable Mutex mutex_;
  // By what the sandbox lacks; what is in it stays as and where it is.
  mutable std::map<std::string, ToolTraits> lacking_ GUARDED_BY(mutex_);
};

}  // namespace reprise
