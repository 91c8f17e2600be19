#include "tools/shell_tool.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>

#include "tools/arguments.h"
#include "tools/sandbox.h"
#include "tools/subprocess.h"

namespace reprise {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string Inherited(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::move(otherwise) : std::string(value);
}

// What a command may know of the server's environment: nothing that could be a secret.
std::vector<std::string> CleanEnvironment(const ShellOptions& options) {
  std::vector<std::string> environment = {
      "PATH=" + Inherited("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
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

std::string Schema(const ShellOptions& options) {
  return R"({"type":"object","additionalProperties":false,"required":["command"],"properties":{)"
         R"("command":{"type":"string","minLength":1,"maxLength":100000,"description":"The command, as for sh -c."},)"
         R"("timeout_s":{"type":"integer","minimum":1,"maximum":)" +
         std::to_string(options.max_timeout.count()) +
         R"(,"description":"Seconds until the command is ended. Default: )" +
         std::to_string(options.default_timeout.count()) + R"(."}}})";
}

ToolTraits ShellTraits(const ShellOptions& options) {
  return {.spec = {.name = "run_shell",
                   .description =
                       "Runs a command with /bin/sh in the workspace and returns what it prints (stdout and stderr). "
                       "Nothing it starts outlives it. Usually there is no network and only the workspace and /tmp can "
                       "be written. Nothing can be typed into it.",
                   .parameters = Schema(options)},
          .read_only = false,
          .idempotent = false,
          .requires_approval = true,
          .risk = Risk::kHigh,
          .concurrency = Concurrency::kAllowed,
          .approval_reason = "runs a shell command in a sandbox: no network, only the workspace can be written"};
}

class ShellTool final : public BuiltinTool {
 public:
  ShellTool(const Workspace& workspace, ShellOptions options)
      : BuiltinTool(ShellTraits(options)),
        workspace_(workspace),
        options_(std::move(options)),
        environment_(CleanEnvironment(options_)),
        sandbox_(SandboxOptions(workspace, options_)) {}

  const ToolTraits& traits() const override {
    if (sandbox_.available()) return fixed_traits();
    std::call_once(bare_traits_made_, [this] {
      bare_traits_ = fixed_traits();
      bare_traits_.approval_reason = "runs a shell command WITHOUT a sandbox (" + sandbox_.unavailable_reason() +
                                     "): it can do all that you can do";
    });
    return bare_traits_;
  }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    const Arguments given(arguments);
    const std::string command = given.String("command").value_or("");
    // The system would run what stands before it: another command than the one that was approved.
    if (command.find('\0') != std::string::npos) return ToolFailure("the command contains a NUL character");
    // A plain error instead of what bubblewrap says about it.
    if (const auto directory = workspace_.OpenDirectory("."); !directory) {
      return ToolFailure("cannot run the command: " + directory.error().message);
    }
    const milliseconds wanted =
        given.Integer("timeout_s") ? seconds(*given.Integer("timeout_s")) : options_.default_timeout;
    const CommandLimits limits{.timeout = std::min<milliseconds>({wanted, options_.max_timeout, context.timeout})};
    const auto result = RunCommand(CommandFor(command), limits, context.stop, context.on_output);
    if (!result) return ToolFailure(result.error().message);
    return Outcome(*result, limits.timeout);
  }

 private:
  Command CommandFor(const std::string& command) const {
    const std::vector<std::string> argv = {"/bin/sh", "-c", command};
    const bool sandboxed = sandbox_.available();
    Command made{.argv = sandboxed ? sandbox_.Wrap(argv) : argv,
                 .environment = environment_,
                 .directory = workspace_.directory()};
    // Not the user's home: programs would read tokens from there and leave files.
    made.environment.push_back("HOME=" + (sandboxed ? std::string("/tmp") : workspace_.directory()));
    return made;
  }

  ToolOutcome Outcome(const CommandResult& result, milliseconds timeout) const {
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
    if (!sandbox_.available()) add_line("(no sandbox on this machine: " + sandbox_.unavailable_reason() + ")");
    ToolOutcome outcome{.output = std::move(text), .is_error = failed};
    if (result.end == CommandResult::End::kExited) outcome.exit_status = result.status;
    return outcome;
  }

  static std::string InSeconds(milliseconds time) {
    constexpr int kPerSecond = 1000;
    return time.count() % kPerSecond == 0 ? std::to_string(time.count() / kPerSecond) + " s"
                                          : std::to_string(time.count()) + " ms";
  }

  const Workspace& workspace_;
  const ShellOptions options_;
  const std::vector<std::string> environment_;
  const Sandbox sandbox_;
  mutable std::once_flag bare_traits_made_;
  mutable ToolTraits bare_traits_;
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeShellTool(const Workspace& workspace, ShellOptions options) {
  return std::make_unique<ShellTool>(workspace, std::move(options));
}

}  // namespace reprise
