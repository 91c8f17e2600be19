#include "tools/code_tool.h"

#include <mutex>
#include <string>
#include <utility>

#include "tools/arguments.h"

namespace reprise {
namespace {

constexpr std::string_view kWhat = "runs a program";

// The program comes in as stdin, a file without a name: nothing has to be quoted, it is in no list of processes and on
// no disk. It is moved away from there, so that the program cannot read itself when it asks for input.
constexpr const char* kRunDescriptor3 = "exec 3<&0 </dev/null; exec \"$@\" /dev/fd/3";

ToolTraits CodeTraits() {
  return {.spec = {.name = "run_code",
                   .description = "Runs a program in Python 3 or for /bin/sh in the workspace and returns what it "
                                  "prints (stdout and stderr). Nothing it starts outlives it. Usually there is no "
                                  "network and only the workspace and /tmp can be written. Nothing can be typed into "
                                  "it.",
                   .parameters = R"({"type":"object","additionalProperties":false,"required":["language","code"],
"properties":{"language":{"type":"string","enum":["python","shell"]},
"code":{"type":"string","minLength":1,"maxLength":200000,"description":"The whole program."}}})"},
          .read_only = false,
          .idempotent = false,
          .requires_approval = true,
          .risk = Risk::kHigh,
          .concurrency = Concurrency::kAllowed,
          .approval_reason = std::string(kWhat).append(kSandboxedReason)};
}

class CodeTool final : public BuiltinTool {
 public:
  explicit CodeTool(std::shared_ptr<const CommandRunner> runner)
      : BuiltinTool(CodeTraits()), runner_(std::move(runner)) {}

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
    const bool python = given.String("language") == "python";
    CommandRunner::Job job{.argv = {"/bin/sh", "-c", kRunDescriptor3, "sh"},
                           .input = given.String("code").value_or(""),
                           .timeout = runner_->options().default_timeout};
    if (python) {
      const std::string interpreter = runner_->Find("python3");
      if (interpreter.empty()) {
        return ToolFailure("python3 is not installed on this machine; programs for \"shell\" can be run");
      }
      job.argv.push_back(interpreter);
      // What it prints is shown at once, modules are found in the workspace and not where the program seems to lie, and
      // importing them leaves no files behind.
      job.environment = {"PYTHONUNBUFFERED=1", "PYTHONSAFEPATH=1", "PYTHONDONTWRITEBYTECODE=1",
                         "PYTHONPATH=" + runner_->workspace().directory()};
    } else {
      job.argv.emplace_back("/bin/sh");
    }
    return runner_->Run(job, context);
  }

 private:
  const std::shared_ptr<const CommandRunner> runner_;
  mutable std::once_flag bare_traits_made_;
  mutable ToolTraits bare_traits_;
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeCodeTool(std::shared_ptr<const CommandRunner> runner) {
  return std::make_unique<CodeTool>(std::move(runner));
}

}  // namespace reprise
