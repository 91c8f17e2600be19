#include "tools/shell/subprocess.h"

#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

#include "base/logging.h"
#include "base/system.h"
#include "base/try.h"
#include "base/utf8.h"
#include "process/child_loop.h"

namespace reprise {

OutputCapture::OutputCapture(std::size_t max_bytes, std::function<void(std::string_view)> on_output)
    : max_head_(max_bytes / 2),
      max_tail_(max_bytes - max_bytes / 2),
      max_streamed_(max_bytes),
      on_output_(std::move(on_output)) {}

void OutputCapture::Add(std::string_view bytes) {
  total_ += bytes.size();
  if (on_output_) Stream(bytes);
  const std::size_t for_head = std::min(bytes.size(), max_head_ - head_.size());
  head_ += bytes.substr(0, for_head);
  tail_ += bytes.substr(for_head);
  // Cut seldom, so that each byte is moved once on average.
  if (tail_.size() > 2 * max_tail_) tail_.erase(0, tail_.size() - max_tail_);
}

void OutputCapture::Stream(std::string_view bytes) {
  const std::size_t room = max_streamed_ - streamed_;
  if (room == 0) return;
  streamed_ += std::min(room, bytes.size());
  held_back_ += bytes.substr(0, room);
  const std::size_t whole = held_back_.size() - IncompleteUtf8Tail(held_back_);
  if (whole > 0) on_output_(ToValidUtf8(std::string_view(held_back_).substr(0, whole)));
  held_back_.erase(0, whole);
}

std::string OutputCapture::Finish() {
  // What was held back in mid-stream is cut there; at the true end it is a broken character and shown as one.
  if (!held_back_.empty() && streamed_ == total_) on_output_(ToValidUtf8(held_back_));
  held_back_.clear();
  if (tail_.size() > max_tail_) tail_.erase(0, tail_.size() - max_tail_);
  const std::uint64_t cut = total_ - head_.size() - tail_.size();
  if (cut == 0) return ToValidUtf8(head_ + tail_);
  const std::string_view head = std::string_view(head_).substr(0, head_.size() - IncompleteUtf8Tail(head_));
  return ToValidUtf8(head) + "\n(... " + std::to_string(cut) + " bytes cut ...)\n" + ToValidUtf8(FromUtf8Start(tail_));
}

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
