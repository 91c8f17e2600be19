#include "tools/shell/command_tool.h"

#include <utility>
#include <vector>

#include "base/path.h"
#include "tools/text_file.h"

namespace reprise {

namespace {

std::string List(const std::vector<std::string>& paths) {
  std::string list;
  for (const std::string& path : paths) list.append(list.empty() ? "" : ", ").append(QuotedPath(path));
  return list;
}

// As they lead now: another folder behind the same link is something else to agree to.
std::vector<std::string> AllResolved(const std::vector<std::string>& paths) {
  std::vector<std::string> resolved;
  for (const std::string& path : paths) resolved.push_back(Resolved(path).string());
  return resolved;
}

// Why it asks, in full: that says what confines the command. The terms hold what it may reach and use as well.
void SetReason(ToolTraits& traits, const CommandRunner& runner, std::string reason) {
  const ResourceLimits& limits = runner.options().limits;
  std::string terms = runner.workspace().directory() + "\n" + reason;
  for (const std::uint64_t limit : {limits.memory_mb, limits.processes, limits.file_size_mb, limits.tmp_mb}) {
    terms += "\n" + std::to_string(limit);
  }
  traits.terms = std::move(terms);
  traits.approval_reason = std::move(reason);
}

ToolTraits Sandboxed(ToolTraits traits, const CommandRunner& runner, const std::string& what) {
  const std::string writable = List(AllResolved(runner.options().writable_paths));
  const std::string readable = List(AllResolved(runner.options().readable_paths));
  std::string reason = what + " in a sandbox: no network, only the workspace";
  reason += writable.empty() ? " can be written" : " and " + writable + " can be written";
  if (!readable.empty()) reason += ", " + readable + " can be read as well";
  SetReason(traits, runner, std::move(reason));
  return traits;
}

}  // namespace

CommandTool::CommandTool(ToolSpec spec, const std::string& what, std::shared_ptr<const CommandRunner> runner)
    : BuiltinTool(Sandboxed({.spec = std::move(spec),
                             .read_only = false,
                             .idempotent = false,
                             .requires_approval = true,
                             .risk = Risk::kHigh,
                             .concurrency = Concurrency::kAllowed,
                             .approval_reason = {}},
                            *runner, what)),
      runner_(std::move(runner)),
      what_(what) {}

const ToolTraits& CommandTool::traits() const {
  const Sandbox::State state = runner_->sandbox().state();
  if (state.missing.empty()) return fixed_traits();
  const MutexLock lock(mutex_);
  const auto [known, is_new] = lacking_.try_emplace(state.missing);
  if (!is_new) return known->second;
  ToolTraits& traits = known->second;
  traits = fixed_traits();
  SetReason(traits, *runner_,
            state.available ? fixed_traits().approval_reason + "; the sandbox lacks " + state.missing
                            : what_ + " WITHOUT a sandbox (" + state.missing + "): it can do all that you can do");
  traits.lacks = state.missing;
  traits.asks_each_time = state.must_ask();
  return traits;
}

}  // namespace reprise
