#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "process/supervised_process.h"
#include "reprise/result.h"
#include "reprise/tool.h"
#include "tools/files/workspace.h"
#include "tools/shell/sandbox.h"
#include "tools/tool_options.h"

namespace reprise {

// Gathers what a command prints: the beginning and the end of it, and how much is missing between. Passes the first
// part on while it comes in, in whole characters.
class OutputCapture {
 public:
  // `on_output` may be empty. It gets at most `max_bytes` in all.
  OutputCapture(std::size_t max_bytes, std::function<void(std::string_view)> on_output);

  void Add(std::string_view bytes);
  // No more will come. Valid UTF-8.
  std::string Finish();

 private:
  void Stream(std::string_view bytes);

  const std::size_t max_head_, max_tail_, max_streamed_;
  const std::function<void(std::string_view)> on_output_;
  std::string head_, tail_;
  std::uint64_t total_ = 0;
  std::size_t streamed_ = 0;
  std::string held_back_;  // the beginning of a character
};

struct CommandLimits {
  std::chrono::milliseconds timeout{60'000};
  std::chrono::milliseconds grace{
      500};  // between SIGTERM and SIGKILL after the time-out; a cancelled command gets none
  std::size_t max_output_bytes = 64 * 1024;
};

struct CommandResult {
  enum class End { kExited, kSignalled, kTimedOut, kCancelled };
  End end = End::kExited;
  int status = 0;            // exit status or number of the signal
  std::string output;        // stdout and stderr as they came, valid UTF-8, cut in the middle if too long
  bool left_behind = false;  // something of it could not be ended
};

// Runs a command with stdin from /dev/null, in a session of its own, with no descriptor but 0, 1 and 2. Returns when it
// has ended and every process it started is gone, daemons included. Thread-safe; `on_output` is called on this thread.
// kUnavailable if it cannot be started.
Result<CommandResult> RunCommand(const Command& command, const CommandLimits& limits, std::stop_token stop,
                                 std::function<void(std::string_view)> on_output = {});

// The same with `input` on stdin; the output is stdout alone, what it says on stderr is thrown away.
Result<CommandResult> RunCommandOn(std::string_view input, const Command& command, const CommandLimits& limits,
                                   std::stop_token stop);

// Runs what the agent wants to have run: in the workspace, in the sandbox where there is one, with a clean environment.
// Thread-safe.
class CommandRunner {
 public:
  // Reads HOME, PATH and the like from the server's environment now, not later. `secret_paths` (SecretPaths) are hidden
  // from what it runs, but for those that the workspace lies in. `workspace` must outlive this.
  CommandRunner(const Workspace& workspace, const std::vector<std::string>& secret_paths, ShellOptions options);

  struct Job {
    std::vector<std::string> argv;
    std::string input = {};                     // what its stdin holds
    std::vector<std::string> environment = {};  // "NAME=value", beside the clean one
    std::chrono::milliseconds timeout{};
  };
  // What it printed, and how it ended if that was not well, for the model.
  ToolOutcome Run(const Job& job, const ToolContext& context) const;

  // The absolute path of a program in PATH that a command can run; empty if there is none.
  std::string Find(std::string_view program) const;

  // Whether a bare name would be looked up in a place that the agent's commands can change: in a relative folder of
  // PATH, in the workspace, or in what the sandbox may write.
  bool FindsAmongFiles(const std::string& program) const;

  const Sandbox& sandbox() const { return sandbox_; }
  const ShellOptions& options() const { return options_; }
  const Workspace& workspace() const { return workspace_; }

 private:
  const Workspace& workspace_;
  const ShellOptions options_;
  const std::string path_;
  const std::vector<std::string> environment_;
  const Sandbox sandbox_;
};

}  // namespace reprise
