#include "tools/shell_tool.h"

#include <chrono>
#include <mutex>
#include <string>
#include <utility>

#include "tools/arguments.h"

namespace reprise {
namespace {

constexpr std::string_view kWhat = "runs a shell command";

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
          .approval_reason = std::string(kWhat).append(kSandboxedReason)};
}

class ShellTool final : public BuiltinTool {
 public:
  explicit ShellTool(std::shared_ptr<const CommandRunner> runner)
      : BuiltinTool(ShellTraits(runner->options())), runner_(std::move(runner)) {}

  const ToolTraits& traits() const override {
    if (runner_->sandbox().available()) return fixed_traits();
    std::call_once(bare_traits_made_, [this] {
      bare_traits_ = fixed_traits();
      bare_traits_.approval_reason = BareReason(*runner_, kWhat);
    });
    return bare_traits_;
  }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    const Arguments given(arguments);
    const std::string command = given.String("command").value_or("");
    // The system would run what stands before it: another command than the one that was approved.
    if (command.find('\0') != std::string::npos) return ToolFailure("the command contains a NUL character");
    const auto timeout = given.Integer("timeout_s") ? std::chrono::seconds(*given.Integer("timeout_s"))
                                                    : runner_->options().default_timeout;
    return runner_->Run({.argv = {"/bin/sh", "-c", command}, .timeout = timeout}, context);
  }

 private:
  const std::shared_ptr<const CommandRunner> runner_;
  mutable std::once_flag bare_traits_made_;
  mutable ToolTraits bare_traits_;
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeShellTool(std::shared_ptr<const CommandRunner> runner) {
  return std::make_unique<ShellTool>(std::move(runner));
}

}  // namespace reprise
