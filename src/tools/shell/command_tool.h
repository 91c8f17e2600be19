#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "tools/builtin_tools.h"
#include "tools/shell/command_runner.h"

namespace reprise {

// A tool that runs code of the agent. A request for approval says whether there is a sandbox; if it is incomplete,
// every call asks. A call can ask to run outside of it, by the argument "outside_sandbox".
class CommandTool : public BuiltinTool {
 public:
  const ToolTraits& traits() const override;
  OutsideSandbox OutsideOf(std::string_view arguments) const override;
  std::optional<std::string> ReasonToAsk(std::string_view arguments) const override;
  ToolOutcome Run(std::string_view arguments, const ToolContext& context) final;

 protected:
  // Run, for a call that may run in this context.
  virtual ToolOutcome Execute(std::string_view arguments, const ToolContext& context) = 0;
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
