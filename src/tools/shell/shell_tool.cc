#include "tools/shell/shell_tool.h"

#include <chrono>
#include <string>
#include <utility>

#include "tools/arguments.h"
#include "tools/shell/command_pattern.h"
#include "tools/shell/command_tool.h"

namespace reprise {
namespace {

std::string Schema(const ShellOptions& options) {
  return R"({"type":"object","additionalProperties":false,"required":["command"],"properties":{)"
         R"("command":{"type":"string","minLength":1,"maxLength":100000,"description":"The command, as for sh -c."},)"
         R"("timeout_s":{"type":"integer","minimum":1,"maximum":)" +
         std::to_string(options.max_timeout.count()) +
         R"(,"description":"Seconds until the command is ended. Default: )" +
         std::to_string(options.default_timeout.count()) + R"(."}}})";
}

ToolSpec ShellSpec(const ShellOptions& options) {
  return {.name = "run_shell",
          .description =
              "Runs a command with /bin/sh in the workspace and returns what it prints (stdout and stderr). "
              "Nothing it starts outlives it. Usually there is no network and only the workspace and /tmp can "
              "be written. Nothing can be typed into it.",
          .parameters = Schema(options)};
}

class ShellTool final : public CommandTool {
 public:
  explicit ShellTool(const std::shared_ptr<const CommandRunner>& runner)
      : CommandTool(ShellSpec(runner->options()), "runs a shell command", runner) {}

  std::vector<CallPattern> PatternsOf(std::string_view arguments) const override {
    std::vector<CallPattern> patterns = PatternsOfCommand(CommandOf(arguments));
    std::erase_if(patterns, [&](const CallPattern& each) { return !CoveredBy({each.pattern}, arguments); });
    for (CallPattern& each : patterns) each.means = MeaningOf(each.pattern, PatternUse::kAllow).value_or(each.means);
    return patterns;
  }
  Result<std::string> MeaningOf(std::string_view pattern, PatternUse use) const override {
    auto meaning = MeaningOfCommandPattern(pattern, use);
    if (!meaning || use == PatternUse::kHold || !HasTail(pattern) || runner().sandbox().available()) return meaning;
    return *meaning + " Without a sandbox, as here, that reaches all your files, also where you keep secrets.";
  }
  std::optional<std::vector<std::size_t>> CoveredBy(const std::vector<std::string>& patterns,
                                                    std::string_view arguments) const override {
    const std::string command = CommandOf(arguments);
    auto covering = CommandCoveredBy(patterns, command);
    if (!covering) return covering;
    // A pattern speaks of the system's programs, not of one that somebody has put in their place.
    for (const std::string& program : ProgramsBelieved(command)) {
      if (runner().FindsAmongFiles(program)) return std::nullopt;
    }
    return covering;
  }
  Touch Touches(std::string_view pattern, std::string_view arguments) const override {
    return CommandTouches(pattern, CommandOf(arguments));
  }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    const Arguments given(arguments);
    const std::string command = CommandOf(arguments);
    // The system would run what stands before it: another command than the one that was approved.
    if (command.find('\0') != std::string::npos) return ToolFailure("the command contains a NUL character");
    const auto timeout = given.Integer("timeout_s") ? std::chrono::seconds(*given.Integer("timeout_s"))
                                                    : runner().options().default_timeout;
    return runner().Run({.argv = {"/bin/sh", "-c", command}, .timeout = timeout}, context);
  }

 private:
  static std::string CommandOf(std::string_view arguments) {
    return Arguments(arguments).String("command").value_or("");
  }
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeShellTool(std::shared_ptr<const CommandRunner> runner) {
  return std::make_unique<ShellTool>(std::move(runner));
}

}  // namespace reprise
