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
#include "tools/network/job_ports.h"
#include "tools/network/relay.h"
#include "tools/shell/git_configuration.h"
#include "tools/shell/sandbox.h"
#include "tools/tool_options.h"

namespace reprise {

// Collects a command's output: its beginning, its end, and the size of the gap between. Passes on the first part as it
// arrives, in whole characters.
class OutputCapture {
 public:
  // `on_output` may be empty. It receives at most `max_bytes` in total.
  OutputCapture(std::size_t max_bytes, std::function<void(std::string_view)> on_output);

  void Add(std::string_view bytes);
  // Ends the output and returns it as valid UTF-8.
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
  std::chrono::milliseconds grace{500};  // between SIGTERM and SIGKILL after the timeout; none for a cancelled command
  std::size_t max_output_bytes = 64 * 1024;
  std::function<void(std::string_view)> on_bytes = {};  // gets all output, in any pieces
  std::function<void(pid_t supervisor)> on_start = {};  // called when the command has its descriptors
  // How long the command has waited for people so far, which does not count as its time. Any thread. Empty: not at all.
  std::function<std::chrono::milliseconds()> waited = {};
};

struct CommandResult {
  enum class End { kExited, kSignalled, kTimedOut, kCancelled };
  End end = End::kExited;
  int status = 0;            // exit status or signal number
  std::string output;        // stdout and stderr interleaved, valid UTF-8, cut in the middle if too long
  bool left_behind = false;  // some process of it could not be ended
};

// Runs a SupervisedProcess with Streams::kOutput. Returns when the command and every process that it started, daemons
// included, are gone. Thread-safe; calls `on_output` on this thread. kUnavailable if it cannot be started.
Result<CommandResult> RunCommand(const Command& command, const CommandLimits& limits, std::stop_token stop,
                                 std::function<void(std::string_view)> on_output = {});

// The same with `input` on stdin; the output is stdout only, stderr is discarded.
Result<CommandResult> RunCommandOn(std::string_view input, const Command& command, const CommandLimits& limits,
                                   std::stop_token stop);

// Runs the agent's programs in the workspace, in the sandbox if there is one (or outside of it, if the context says
// so), with a clean environment. Thread-safe.
class CommandRunner {
 public:
  // Reads HOME, PATH and the like from the server's environment in the constructor. Hides `secret_paths` (SecretPaths)
  // from programs, except those that contain the workspace. `workspace` must outlive this.
  CommandRunner(const Workspace& workspace, const std::vector<std::string>& secret_paths, ShellOptions options);

  struct Job {
    std::vector<std::string> argv;
    std::string input = {};                     // content of stdin
    std::vector<std::string> environment = {};  // "NAME=value", added to the clean one
    std::chrono::milliseconds timeout{};
  };
  // Returns the output for the model, and how the program ended unless it succeeded.
  ToolOutcome Run(const Job& job, const ToolContext& context) const;
  // Starts it as a background job of the chat, which does not need this object; `command` is for people.
  ToolOutcome RunInBackground(const Job& job, std::string command, const ToolContext& context) const;

  // The absolute path of a program in PATH that commands can run; empty if there is none.
  std::string Find(std::string_view program) const;

  // Whether a bare name would be found where the agent's commands can write: in a relative folder of PATH, in the
  // workspace or in the sandbox's writable paths.
  bool FindsAmongFiles(const std::string& program) const;

  const Sandbox& sandbox() const { return sandbox_; }
  const ShellOptions& options() const { return options_; }
  const Workspace& workspace() const { return workspace_; }

 private:
  struct Prepared;
  Result<Prepared> Prepare(const Job& job, bool outside, bool in_background) const;

  const Workspace& workspace_;
  const ShellOptions options_;
  const std::string path_;
  const std::vector<std::string> environment_;
  const Sandbox sandbox_;
  const GitConfiguration git_;
  const std::shared_ptr<const NetworkRelay::Options> network_;
};

}  // namespace reprise
