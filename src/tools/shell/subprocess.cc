#include "tools/shell/subprocess.h"

#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/logging.h"
#include "base/try.h"
#include "base/unique_fd.h"
#include "process/child_loop.h"
#include "tools/shell/output_capture.h"

namespace reprise {
namespace {

// How long processes that were killed may take to vanish (one may hang in the kernel, on a dead network disk, say).
constexpr std::chrono::seconds kMaxDying{5};
// How long the supervisor may take for it.
constexpr std::chrono::seconds kMaxEnding{1};

// A descriptor that becomes readable when `stop` is requested.
class StopEvent {
 public:
  explicit StopEvent(const std::stop_token& stop)
      : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), signal_(stop, Signal{fd_.get()}) {}
  int fd() const { return fd_.get(); }

 private:
  struct Signal {
    int fd;
    void operator()() const {
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
    }
  };

  UniqueFd fd_;
  std::stop_callback<Signal> signal_;  // last: gone before the descriptor is
};

// One run from start to end, on the caller's thread. A command that is cancelled is killed at once.
class CommandRun final : private StopEvent, private ChildLoop {
 public:
  CommandRun(SupervisedProcess process, const CommandLimits& limits, const std::stop_token& stop,
             std::function<void(std::string_view)> on_output, std::string_view input = {})
      : StopEvent(stop),
        ChildLoop(std::move(process), fd(), {.terminated = limits.grace, .killed = kMaxEnding, .forced = kMaxDying}),
        input_(input),
        capture_(limits.max_output_bytes, std::move(on_output)) {
    EndAfter(limits.timeout);
  }

  Result<CommandResult> Finish() {
    const bool left_behind = !Run();
    if (left_behind) LogError("processes of a command do not die", {});
    if (const auto error = process().start_error()) return Fail(*error);
    CommandResult result{
        .end = end_.value_or(CommandResult::End::kExited), .output = capture_.Finish(), .left_behind = left_behind};
    // Without a status somebody killed the supervisor itself.
    const int status = process().status().value_or(SIGKILL);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    if (!end_ && !WIFEXITED(status)) result.end = CommandResult::End::kSignalled;
    return result;
  }

 private:
  void OnWake() override {
    if (ending() >= Ending::kKilled) return;
    end_ = CommandResult::End::kCancelled;
    End(Ending::kKilled);
  }
  void OnDeadline() override {
    if (ending() != Ending::kNot) return ChildLoop::OnDeadline();
    end_ = CommandResult::End::kTimedOut;
    End(Ending::kTerminated);
  }
  void OnOutput(std::string_view bytes) override { capture_.Add(bytes); }
  std::string_view Unsent() const override { return input_; }
  void Sent(std::size_t bytes) override {
    input_.remove_prefix(bytes);
    if (input_.empty()) process().CloseInput();
  }

  std::string_view input_;  // what is left of it
  OutputCapture capture_;
  std::optional<CommandResult::End> end_;  // set if it did not end by itself
};

}  // namespace

Result<CommandResult> RunCommand(const Command& command, const CommandLimits& limits, std::stop_token stop,
                                 std::function<void(std::string_view)> on_output) {
  auto process = TRY(SupervisedProcess::Start(command));
  return CommandRun(std::move(process), limits, stop, std::move(on_output)).Finish();
}

Result<CommandResult> RunCommandOn(std::string_view input, const Command& command, const CommandLimits& limits,
                                   std::stop_token stop) {
  auto process = TRY(SupervisedProcess::Start(command, SupervisedProcess::Streams::kSeparate));
  return CommandRun(std::move(process), limits, stop, {}, input).Finish();
}

}  // namespace reprise
