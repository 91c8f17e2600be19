#include "tools/shell/code_tool.h"

#include <string>
#include <utility>

#include "tools/arguments.h"
#include "tools/shell/command_tool.h"

namespace reprise {
namespace {

// The program comes in as stdin, a file without a name: nothing has to be quoted, it is in no list of processes and on
// no disk. It is moved away from there, so that the program cannot read itself when it asks for input.
constexpr const char* kRunDescriptor3 = "exec 3<&0 </dev/null; exec \"$@\" /dev/fd/3";

ToolSpec CodeSpec() {
  return {.name = "run_code",
          .description =
              "Runs a program in Python 3 or for /bin/sh in the workspace and returns what it prints (stdout "
              "and stderr). Nothing it starts outlives it. Usually there is no network and only the "
              "workspace and /tmp can be written. Nothing can be typed into it.",
          .parameters = R"({"type":"object","additionalProperties":false,"required":["language","code"],
"properties":{"language":{"type":"string","enum":["python","shell"]},
"code":{"type":"string","minLength":1,"maxLength":200000,"description":"The whole program."}}})"};
}

class CodeTool final : public CommandTool {
 public:
  explicit CodeTool(std::shared_ptr<const CommandRunner> runner)
      : CommandTool(CodeSpec(), "runs a program", std::move(runner)) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    const Arguments given(arguments);
    const bool python = given.String("language") == "python";
    // Some interpreters run what stands before it, and say nothing.
    if (given.String("code").value_or("").find('\0') != std::string::npos) {
      return ToolFailure("the program contains a NUL character");
    }
    CommandRunner::Job job{.argv = {"/bin/sh", "-c", kRunDescriptor3, "sh"},
                           .input = given.String("code").value_or(""),
                           .timeout = runner().options().default_timeout};
    if (python) {
      const std::string interpreter = runner().Find("python3");
      if (interpreter.empty()) {
        return ToolFailure("python3 is not installed on this machine; programs for \"shell\" can be run");
      }
      job.argv.push_back(interpreter);
      // What it prints is shown at once, modules are found in the workspace and not where the program seems to lie, and
      // importing them leaves no files behind.
      job.environment = {"PYTHONUNBUFFERED=1", "PYTHONSAFEPATH=1", "PYTHONDONTWRITEBYTECODE=1",
                         "PYTHONPATH=" + runner().workspace().directory()};
    } else {
      job.argv.emplace_back("/bin/sh");
    }
    return runner().Run(job, context);
  }
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeCodeTool(std::shared_ptr<const CommandRunner> runner) {
  return std::make_unique<CodeTool>(std::move(runner));
}

}  // namespace reprise
