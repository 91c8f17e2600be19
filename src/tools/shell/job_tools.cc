#include <chrono>
#include <memory>
#include <string>

#include "base/terminal_text.h"
#include "tools/arguments.h"
#include "tools/builtin_tools.h"
#include "tools/text_file.h"

namespace reprise {
namespace {

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

std::unique_ptr<BuiltinTool> MakeReadJobTool() { return std::make_unique<ReadJobTool>(); }
std::unique_ptr<BuiltinTool> MakeStopJobTool() { return std::make_unique<StopJobTool>(); }

}  // namespace reprise
