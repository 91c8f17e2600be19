#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "tools/builtin_tools.h"
#include "tools/shell/command_runner.h"

namespace reprise {

// A tool that runs code of the agent. A request for approval says whether there is a sandbox; if it is incomplete,
// every call asks.
class CommandTool : public BuiltinTool {
 public:
  const ToolTraits& traits() const override;

 protected:
  // `what` is part of the approval's reason: "runs a shell command".
  CommandTool(ToolSpec spec, const std::string& what, std::shared_ptr<const CommandRunner> runner);
  const CommandRunner& runner() const { return *runner_; }

 private:
  const std::shared_ptr<const CommandRunner> runner_;
  const std::string what_;
  mutable Mutex mutex_;
  // Keyed by what the sandbox lacks. Entries never change or move.
  mutable std::map<std::string, ToolTraits> lacking_ GUARDED_BY(mutex_);
};

}  // namespace reprise
