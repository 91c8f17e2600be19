#include "tools/command_runner.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tools/builtin_tool.h"
#include "tools/subprocess.h"

namespace reprise {
namespace {

using std::chrono::milliseconds;

std::string Inherited(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::move(otherwise) : std::string(value);
}

// What a command may know of the server's environment: nothing that could be a secret.
std::vector<std::string> CleanEnvironment(const ShellOptions& options, const std::string& path) {
  std::vector<std::string> environment = {
      "PATH=" + path,
      "SHELL=/bin/sh",
      "TERM=dumb",
      "LANG=" + Inherited("LANG", "C.UTF-8"),
  };
  for (const char* name : {"USER", "LOGNAME", "TZ"}) {
    if (const std::string value = Inherited(name, ""); !value.empty()) environment.push_back(name + ("=" + value));
  }
  for (const auto& [name, value] : options.extra_environment) environment.push_back(name + "=" + value);
  return environment;
}

Sandbox::Options SandboxOptions(const Workspace& workspace, const ShellOptions& options) {
  const std::string home = Inherited("HOME", "");
  Sandbox::Options sandbox{.use = options.sandbox,
                           .workspace = workspace.directory(),
                           .hidden_paths = SecretPaths(home, Inherited("XDG_CONFIG_HOME", ""))};
  const auto& closed = workspace.protected_paths();
  sandbox.hidden_paths.insert(sandbox.hidden_paths.end(), closed.begin(), closed.end());
  return sandbox;
}

std::string InSeconds(milliseconds time) {
  constexpr int kPerSecond = 1000;
  return time.count() % kPerSecond == 0 ? std::to_string(time.count() / kPerSecond) + " s"
                                        : std::to_string(time.count()) + " ms";
}

ToolOutcome Outcome(const CommandResult& result, milliseconds timeout, const Sandbox& sandbox) {
  std::string text = result.output;
  const auto add_line = [&text](const std::string& line) {
    if (!text.empty() && text.back() != '\n') text += '\n';
    text += line;
  };
  bool failed = true;
  switch (result.end) {
    case CommandResult::End::kExited:
      failed = result.status != 0;
      if (failed) add_line("(exit status " + std::to_string(result.status) + ")");
      break;
    case CommandResult::End::kSignalled:
      add_line("(ended by signal " + std::to_string(result.status) + ")");
      break;
    case CommandResult::End::kTimedOut:
      add_line("(timed out after " + InSeconds(timeout) + " and was ended, with all it had started)");
      break;
    case CommandResult::End::kCancelled:
      add_line("(cancelled, with all it had started)");
      break;
  }
  if (text.empty()) text = "(no output)";
  if (!sandbox.available()) add_line("(no sandbox on this machine: " + sandbox.unavailable_reason() + ")");
  ToolOutcome outcome{.output = std::move(text), .is_error = failed};
  if (result.end == CommandResult::End::kExited) outcome.exit_status = result.status;
  return outcome;
}

}  // namespace

CommandRunner::CommandRunner(const Workspace& workspace, ShellOptions options)
    : workspace_(workspace),
      options_(std::move(options)),
      path_(Inherited("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")),
      environment_(CleanEnvironment(options_, path_)),
      sandbox_(SandboxOptions(workspace, options_)) {}

ToolOutcome CommandRunner::Run(const Job& job, const ToolContext& context) const {
  // A plain error instead of what bubblewrap says about it.
  if (const auto directory = workspace_.OpenDirectory("."); !directory) {
    return ToolFailure("cannot run the command: " + directory.error().message);
  }
  const bool sandboxed = sandbox_.available();
  Command command{.argv = sandboxed ? sandbox_.Wrap(job.argv) : job.argv,
                  .environment = environment_,
                  .directory = workspace_.directory(),
                  .input = job.input};
  command.environment.insert(command.environment.end(), job.environment.begin(), job.environment.end());
  // Not the user's home: programs would read tokens from there and leave files.
  command.environment.push_back("HOME=" + (sandboxed ? std::string("/tmp") : workspace_.directory()));
  const CommandLimits limits{.timeout = std::min<milliseconds>({job.timeout, options_.max_timeout, context.timeout})};
  const auto result = RunCommand(command, limits, context.stop, context.on_output);
  if (!result) return ToolFailure(result.error().message);
  return Outcome(*result, limits.timeout, sandbox_);
}

std::string CommandRunner::Find(std::string_view program) const {
  for (std::string_view rest = path_; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string candidate = std::string(rest.substr(0, end)) + "/" + std::string(program);
    if (candidate.starts_with('/') && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

}  // namespace reprise
