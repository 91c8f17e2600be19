#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/text_match.h"
#include "reprise/timestamp.h"
#include "reprise/tool.h"
#include "reprise/transport.h"
#include "tools/files/workspace.h"
#include "tools/shell/command_runner.h"
#include "tools/tool_options.h"

namespace reprise {

// A tool whose traits are known when it is made.
class BuiltinTool : public Tool {
 public:
  explicit BuiltinTool(ToolTraits traits) : traits_(std::move(traits)) {}
  const ToolTraits& traits() const override { return traits_; }
  const ToolTraits& fixed_traits() const override { return traits_; }
  const ToolSpec& spec() const { return traits_.spec; }
  bool asks_by_default() const { return traits_.requires_approval; }

 private:
  const ToolTraits traits_;
};

inline ToolOutcome ToolFailure(std::string message) { return {.output = std::move(message), .is_error = true}; }

// Tools that touch nothing outside the process.

std::unique_ptr<BuiltinTool> MakeEchoTool();
std::unique_ptr<BuiltinTool> MakeCalculatorTool();
// Takes the names of the system's zoneinfo.
std::unique_ptr<BuiltinTool> MakeCurrentTimeTool(std::function<Timestamp()> now);

// Tools with which an agent keeps its tasks and its plan (reprise/agenda.h).

std::unique_ptr<BuiltinTool> MakeManageTasksTool();
std::unique_ptr<BuiltinTool> MakeUpdatePlanTool();

// Asks the people who follow the run; the answer is the tool's result.
std::unique_ptr<BuiltinTool> MakeAskHumanTool();

// Tools for the files of the agent's chat, both uploaded ones and its own, but not for files of the workspace.
std::unique_ptr<BuiltinTool> MakeListChatFilesTool();
std::unique_ptr<BuiltinTool> MakeReadChatFileTool();
std::unique_ptr<BuiltinTool> MakeSaveChatFileTool();
std::unique_ptr<BuiltinTool> MakeDeleteChatFileTool();

// present_plan{plan}: asks a person to approve the plan; in ApprovalMode::kPlan only.
std::unique_ptr<BuiltinTool> MakePresentPlanTool();
// research{question, agent?}: has a sub-agent answer the question.
std::unique_ptr<BuiltinTool> MakeResearchTool();

// recall{query, everywhere}: searches earlier turns of the chat; other chats only with a person's approval.
std::unique_ptr<BuiltinTool> MakeRecallTool();

// Tools that read the workspace, which must outlive them.

std::unique_ptr<BuiltinTool> MakeListFilesTool(const Workspace& workspace);
// `elsewhere` opens the permitted files outside the workspace, kForbidden for others; null if there are none.
std::unique_ptr<BuiltinTool> MakeReadFileTool(const Workspace& workspace,
                                              std::function<Result<UniqueFd>(const std::string& path)> elsewhere = {});

// find_files: files by a glob pattern, without those that .gitignore names.
std::unique_ptr<BuiltinTool> MakeFindFilesTool(const Workspace& workspace);

// search_files: a regular expression over the text files of the workspace, which must outlive the tool.
std::unique_ptr<BuiltinTool> MakeSearchFilesTool(const Workspace& workspace);

// Tools that change files of the workspace, which must outlive them. All ask before they run.

std::unique_ptr<BuiltinTool> MakeWriteFileTool(Workspace& workspace);
// `quoting`: whether its failures may show lines of the file to the model, before a person has agreed to the call.
std::unique_ptr<BuiltinTool> MakeEditFileTool(Workspace& workspace, Quoting quoting);
std::unique_ptr<BuiltinTool> MakeApplyPatchTool(Workspace& workspace, Quoting quoting);
std::unique_ptr<BuiltinTool> MakeDeleteFileTool(Workspace& workspace);

// http_get through `transport`, which must outlive the tool. Reaches public addresses only unless the options say
// otherwise.
std::unique_ptr<BuiltinTool> MakeHttpGetTool(Transport& transport, HttpGetOptions options);

// run_code: a program in Python or for the shell.
std::unique_ptr<BuiltinTool> MakeCodeTool(std::shared_ptr<const CommandRunner> runner);
std::unique_ptr<BuiltinTool> MakeReadJobTool();
std::unique_ptr<BuiltinTool> MakeStopJobTool();

// run_shell: a command line.
std::unique_ptr<BuiltinTool> MakeShellTool(std::shared_ptr<const CommandRunner> runner);

}  // namespace reprise
