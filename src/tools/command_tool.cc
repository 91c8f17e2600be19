#include "tools/command_tool.h"

#include <utility>

namespace reprise {

CommandTool::CommandTool(ToolSpec spec, const std::string& what, std::shared_ptr<const CommandRunner> runner)
    : BuiltinTool({.spec = std::move(spec),
                   .read_only = false,
                   .idempotent = false,
                   .requires_approval = true,
                   .risk = Risk::kHigh,
                   .concurrency = Concurrency::kAllowed,
                   .approval_reason = what + " in a sandbox: no network, only the workspace can be written"}),
      runner_(std::move(runner)),
      what_(what) {}

const ToolTraits& CommandTool::traits() const {
  const Sandbox& sandbox = runner_->sandbox();
  if (sandbox.available()) return fixed_traits();
  std::call_once(bare_traits_made_, [&] {
    bare_traits_ = fixed_traits();
    bare_traits_.approval_reason =
        what_ + " WITHOUT a sandbox (" + sandbox.unavailable_reason() + "): it can do all that you can do";
  });
  return bare_traits_;
}

}  // namespace reprise
