#include "tools/shell/command_tool.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/path.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "tools/arguments.h"
#include "tools/builtin_tools.h"
#include "tools/shell/command_pattern.h"
#include "tools/text_file.h"

namespace reprise {

namespace {

constexpr const char* kOutsideArgument = "outside_sandbox";

// The property of the arguments, behind others; empty if calls cannot leave the sandbox.
std::string OutsideProperty(const ShellOptions& options) {
  if (!options.allow_unsandboxed || options.sandbox == SandboxUse::kNever) return {};
  return R"(,"outside_sandbox":{"type":"string","minLength":1,"maxLength":1000,"description":"Why this has to run )"
         R"(outside the sandbox. The user is asked each time. Only after it has failed in the sandbox for want of a )"
         R"(file or the network."})";
}

// For people. Resolves links, because another folder behind the same link needs a new agreement.
std::vector<std::string> AllResolved(const std::vector<std::string>& paths) {
  std::vector<std::string> resolved;
  for (const std::string& path : paths) resolved.push_back(QuotedPath(Resolved(path).string()));
  return resolved;
}

// Sets the full reason, which says what confines the command. The terms also include what it may reach and use.
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
  const std::string writable = Joined(AllResolved(runner.options().writable_paths), ", ");
  const std::string readable = Joined(AllResolved(runner.options().readable_paths), ", ");
  const NetworkRules& network = runner.options().network;
  std::vector<std::string> reachable = network.allow;
  reachable.insert(reachable.end(), network.unasked.begin(), network.unasked.end());
  std::string reason =
      what + " in a sandbox: " + (reachable.empty() ? "no network" : "the network only to " + Joined(reachable, ", ")) +
      (reachable.empty() || network.deny.empty() ? "" : " but not " + Joined(network.deny, ", ")) +
      ", only the workspace";
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
                             .approval_reason = {},
                             .confined = runner->options().network.allow.empty()},
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
  traits.confined = false;
  traits.asks_each_time = state.must_ask();
  return traits;
}

OutsideSandbox CommandTool::OutsideOf(std::string_view arguments) const {
  if (!runner_->options().allow_unsandboxed || !runner_->sandbox().available()) return OutsideSandbox::kNo;
  return Arguments(arguments).String(kOutsideArgument) ? OutsideSandbox::kAsked : OutsideSandbox::kOffered;
}

std::optional<std::string> CommandTool::ReasonToAsk(std::string_view arguments) const {
  if (OutsideOf(arguments) != OutsideSandbox::kAsked) return std::nullopt;
  return "this call asks to run OUTSIDE it, where it reaches all your files, the network and your secrets";
}

ToolOutcome CommandTool::Run(std::string_view arguments, const ToolContext& context) {
  if (OutsideOf(arguments) == OutsideSandbox::kAsked && !context.outside_sandbox) {
    return ToolFailure("not run: nobody has agreed to run this outside the sandbox");
  }
  return Execute(arguments, context);
}

namespace {

// The program arrives on stdin as a nameless file, so it needs no quoting and appears in no process list and on no
// disk. It moves to descriptor 3, so that the program does not read itself as its input.
constexpr const char* kRunDescriptor3 = "exec 3<&0 </dev/null; exec \"$@\" /dev/fd/3";

ToolSpec CodeSpec(const ShellOptions& options) {
  return {.name = "run_code",
          .description =
              "Runs a program in Python 3 or for /bin/sh in the workspace and returns what it prints (stdout "
              "and stderr). Nothing it starts outlives it. Usually there is no network and only the "
              "workspace and /tmp can be written. Nothing can be typed into it.",
          .parameters = R"({"type":"object","additionalProperties":false,"required":["language","code"],
"properties":{"language":{"type":"string","enum":["python","shell"]},
"code":{"type":"string","minLength":1,"maxLength":200000,"description":"The whole program."})" +
                        OutsideProperty(options) + "}}"};
}

class CodeTool final : public CommandTool {
 public:
  explicit CodeTool(const std::shared_ptr<const CommandRunner>& runner)
      : CommandTool(CodeSpec(runner->options()), "runs a program", runner) {}

 private:
  ToolOutcome Execute(std::string_view arguments, const ToolContext& context) override {
    const Arguments given(arguments);
    const bool python = given.String("language") == "python";
    // Some interpreters silently run only the part before it.
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
      // Shows output at once, finds modules in the workspace instead of beside the program, and leaves no files of
      // imports.
      job.environment = {"PYTHONUNBUFFERED=1", "PYTHONSAFEPATH=1", "PYTHONDONTWRITEBYTECODE=1",
                         "PYTHONPATH=" + runner().workspace().directory()};
    } else {
      job.argv.emplace_back("/bin/sh");
    }
    return runner().Run(job, context);
  }
};

std::string Schema(const ShellOptions& options) {
  return R"({"type":"object","additionalProperties":false,"required":["command"],"properties":{)"
         R"("command":{"type":"string","minLength":1,"maxLength":100000,"description":"The command, as for sh -c."},)"
         R"("timeout_s":{"type":"integer","minimum":1,"maximum":)" +
         std::to_string(options.max_timeout.count()) +
         R"(,"description":"Seconds until the command is ended. Default: )" +
         std::to_string(options.default_timeout.count()) +
         R"(; in the background: none."},)"
         R"("background":{"type":"boolean","description":"Returns at once with the id of a background job, which goes )"
         R"(on after this turn: for servers and watchers. read_job and stop_job take the id."})" +
         OutsideProperty(options) + "}}";
}

ToolSpec ShellSpec(const ShellOptions& options) {
  return {.name = "run_shell",
          .description =
              "Runs a command with /bin/sh in the workspace and returns what it prints (stdout and stderr). "
              "Nothing it starts outlives it. Usually there is no network and only the workspace and /tmp can "
              "be written. Nothing can be typed into it. A server or a watcher runs with \"background\".",
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
    // Patterns cover only the system's programs, not replacements in writable places.
    for (const std::string& program : ProgramsBelieved(command)) {
      if (runner().FindsAmongFiles(program)) return std::nullopt;
    }
    return covering;
  }
  Touch Touches(std::string_view pattern, std::string_view arguments) const override {
    return CommandTouches(pattern, CommandOf(arguments));
  }

 private:
  ToolOutcome Execute(std::string_view arguments, const ToolContext& context) override {
    const Arguments given(arguments);
    const std::string command = CommandOf(arguments);
    // The system would run only the part before it, which is not the approved command.
    if (command.find('\0') != std::string::npos) return ToolFailure("the command contains a NUL character");
    constexpr std::chrono::hours kNoTimeout{24 * 365 * 10};
    if (given.Boolean("background").value_or(false)) {
      const auto limit = given.Integer("timeout_s") ? std::chrono::milliseconds(*given.Integer("timeout_s") * 1000)
                                                    : std::chrono::milliseconds(kNoTimeout);
      return runner().RunInBackground({.argv = {"/bin/sh", "-c", command}, .timeout = limit}, command, context);
    }
    const auto timeout = given.Integer("timeout_s") ? std::chrono::seconds(*given.Integer("timeout_s"))
                                                    : runner().options().default_timeout;
    return runner().Run({.argv = {"/bin/sh", "-c", command}, .timeout = timeout}, context);
  }

  static std::string CommandOf(std::string_view arguments) {
    return Arguments(arguments).String("command").value_or("");
  }
};

ToolOutcome NoJobs() { return ToolFailure("This chat has no background jobs."); }

std::string StateLine(const Job& job) {
  std::string line = "(The job " + Described(job) + ".)";
  if (!job.kept.empty()) line += "\n" + job.kept;
  return line;
}

class ReadJobTool final : public BuiltinTool {
 public:
  ReadJobTool()
      : BuiltinTool({.spec = {.name = "read_job",
                              .description = "Returns the output of a background job since you last read it, and its "
                                             "state. Can wait for output or the job's end. Without an id, lists the "
                                             "jobs of this chat.",
                              .parameters = R"({"type":"object","additionalProperties":false,
"properties":{"job_id":{"type":"string","minLength":1,"maxLength":64},
"wait_s":{"type":"integer","minimum":0,"maximum":50,"description":"How many seconds to wait for output or the end. Default: 0."}}})"},
                     .idempotent = false,  // it counts what was read
                     .approval_reason = "reads the output of a background job"}) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    if (context.jobs == nullptr) return NoJobs();
    const Arguments given(arguments);
    const auto id = given.String("job_id");
    if (!id) return {.output = Listed(*context.jobs)};
    const std::chrono::milliseconds wait(given.Integer("wait_s").value_or(0) * 1000);
    const auto read = context.jobs->Read(*id, std::nullopt, std::min(wait, context.timeout), context.stop);
    if (!read) return ToolFailure(read.error().message);
    std::string text;
    if (read->left_out > 0) text = "(... " + Counted(read->left_out, "byte") + " before this are no longer here ...)\n";
    text += read->text;
    if (!text.empty() && text.back() != '\n') text += '\n';
    return {.output = text + StateLine(read->job)};
  }

 private:
  static std::string Listed(const JobsOfChat& jobs) {
    std::string text;
    for (const Job& job : jobs.List()) text += job.id + " " + QuotedPath(job.command) + " " + Described(job) + "\n";
    return text.empty() ? "This chat has no background jobs." : text;
  }
};

class StopJobTool final : public BuiltinTool {
 public:
  StopJobTool()
      : BuiltinTool({.spec = {.name = "stop_job",
                              .description = "Ends a background job with all that it has started.",
                              .parameters = R"({"type":"object","additionalProperties":false,"required":["job_id"],
"properties":{"job_id":{"type":"string","minLength":1,"maxLength":64}}})"},
                     .read_only = false,
                     .approval_reason = "ends a background job",
                     .file_effect = FileEffect::kNothing}) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    if (context.jobs == nullptr) return NoJobs();
    const auto stopped = context.jobs->Stop(Arguments(arguments).String("job_id").value_or(""));
    if (!stopped) return ToolFailure(stopped.error().message);
    return {.output = StateLine(*stopped)};
  }
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeCodeTool(std::shared_ptr<const CommandRunner> runner) {
  return std::make_unique<CodeTool>(std::move(runner));
}
std::unique_ptr<BuiltinTool> MakeShellTool(std::shared_ptr<const CommandRunner> runner) {
  return std::make_unique<ShellTool>(std::move(runner));
}
std::unique_ptr<BuiltinTool> MakeReadJobTool() { return std::make_unique<ReadJobTool>(); }
std::unique_ptr<BuiltinTool> MakeStopJobTool() { return std::make_unique<StopJobTool>(); }

}  // namespace reprise
