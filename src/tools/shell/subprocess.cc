#include "tools/shell/subprocess.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/logging.h"
#include "base/unique_fd.h"
#include "tools/shell/output_capture.h"

namespace reprise {
namespace {

using Clock = std::chrono::steady_clock;

// How long processes that were killed may take to vanish (one may hang in the kernel, on a dead network disk, say).
constexpr std::chrono::seconds kMaxDying{5};
// How long the supervisor may take for it.
constexpr std::chrono::seconds kMaxEnding{1};
constexpr std::size_t kReadSize = 64 * 1024;
constexpr int kMaxLeftReads = 64;

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

// A write to a command that has closed its stdin only fails, whatever the program has made of SIGPIPE.
class PipeSignalBlocked {
 public:
  PipeSignalBlocked() {
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  ~PipeSignalBlocked() {
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    const timespec at_once{};
    while (::sigtimedwait(&pipe, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  PipeSignalBlocked(const PipeSignalBlocked&) = delete;
  PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;

 private:
  sigset_t before_{};
};

// One run from start to end, on the caller's thread.
class Run {
 public:
  Run(SupervisedProcess process, const CommandLimits& limits, const std::stop_token& stop,
      std::function<void(std::string_view)> on_output, std::string_view input = {})
      : process_(std::move(process)),
        input_(input),
        limits_(limits),
        stop_(stop),
        capture_(limits.max_output_bytes, std::move(on_output)),
        deadline_(Clock::now() + limits.timeout) {}

  Result<CommandResult> Finish() {
    while (!gone_ && state_ != State::kGivenUp) Step();
    // What is left in the pipe; not more, in case something escaped and goes on writing.
    for (int i = 0; i < kMaxLeftReads && gone_ && ReadOutput(); ++i) {
    }
    if (gone_) {
      left_behind_ = !process_.Reap();
    } else {
      process_.Abandon();
      left_behind_ = true;
    }
    if (left_behind_) LogError("processes of a command do not die", {});
    if (const auto error = process_.start_error()) return Fail(*error);
    return Outcome();
  }

 private:
  enum class State { kRunning, kTerminating, kKilled, kForced, kGivenUp };

  void Step() {
    std::array<pollfd, 5> waits{{{process_.report(), POLLIN, 0},
                                 {output_open_ ? process_.output() : -1, POLLIN, 0},
                                 {state_ < State::kKilled ? stop_.fd() : -1, POLLIN, 0},
                                 {input_.empty() ? -1 : process_.input(), POLLOUT, 0},
                                 {errors_open_ ? process_.errors() : -1, POLLIN, 0}}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    ::poll(waits.data(), waits.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000)));
    if (waits[2].revents != 0) {
      end_ = CommandResult::End::kCancelled;
      KillAll();
    }
    if (Clock::now() >= deadline_) OnDeadline();
    if (waits[1].revents != 0) ReadOutput();
    if (waits[3].revents != 0) WriteInput();
    if (waits[4].revents != 0) SkipErrors();
    if (waits[0].revents != 0) gone_ = process_.ReadReports();
  }

  void OnDeadline() {
    switch (state_) {
      case State::kRunning:
        end_ = CommandResult::End::kTimedOut;
        process_.Terminate();
        state_ = State::kTerminating;
        deadline_ = Clock::now() + limits_.grace;
        return;
      case State::kTerminating:
        KillAll();
        return;
      case State::kKilled:
        process_.KillSupervisor();
        state_ = State::kForced;
        deadline_ = Clock::now() + kMaxDying;
        return;
      case State::kForced:
        state_ = State::kGivenUp;
        return;
      case State::kGivenUp:
        return;
    }
  }

  void KillAll() {
    process_.Kill();
    state_ = State::kKilled;
    deadline_ = Clock::now() + kMaxEnding;
  }

  // False: nothing there now, or nothing will come any more.
  bool ReadOutput() {
    if (!output_open_) return false;
    const ssize_t got = ::read(process_.output(), buffer_.data(), buffer_.size());
    if (got > 0) capture_.Add({buffer_.data(), static_cast<std::size_t>(got)});
    if (got == 0) output_open_ = false;
    return got > 0;
  }

  void WriteInput() {
    const PipeSignalBlocked blocked;
    const ssize_t written = ::write(process_.input(), input_.data(), input_.size());
    if (written < 0 && (errno == EAGAIN || errno == EINTR)) return;
    // It may answer without having read all.
    input_.remove_prefix(written < 0 ? input_.size() : static_cast<std::size_t>(written));
    if (input_.empty()) process_.CloseInput();
  }

  void SkipErrors() {
    const ssize_t got = ::read(process_.errors(), buffer_.data(), buffer_.size());
    if (got == 0) errors_open_ = false;
  }

  CommandResult Outcome() {
    CommandResult result{
        .end = end_.value_or(CommandResult::End::kExited), .output = capture_.Finish(), .left_behind = left_behind_};
    // Without a status somebody killed the supervisor itself.
    const int status = process_.status().value_or(SIGKILL);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    if (!end_ && !WIFEXITED(status)) result.end = CommandResult::End::kSignalled;
    return result;
  }

  SupervisedProcess process_;
  std::string_view input_;  // what is left of it
  const CommandLimits limits_;
  StopEvent stop_;
  OutputCapture capture_;
  Clock::time_point deadline_;  // of the state
  State state_ = State::kRunning;
  std::optional<CommandResult::End> end_;  // set if it did not end by itself
  bool output_open_ = true;
  bool errors_open_ = process_.errors() >= 0;
  bool gone_ = false;
  bool left_behind_ = false;
  std::vector<char> buffer_ = std::vector<char>(kReadSize);
};

}  // namespace

Result<CommandResult> RunCommand(const Command& command, const CommandLimits& limits, std::stop_token stop,
                                 std::function<void(std::string_view)> on_output) {
  auto process = SupervisedProcess::Start(command);
  if (!process) return Fail(process.error());
  return Run(std::move(*process), limits, stop, std::move(on_output)).Finish();
}

Result<CommandResult> RunCommandOn(std::string_view input, const Command& command, const CommandLimits& limits,
                                   std::stop_token stop) {
  auto process = SupervisedProcess::Start(command, SupervisedProcess::Streams::kSeparate);
  if (!process) return Fail(process.error());
  return Run(std::move(*process), limits, stop, {}, input).Finish();
}

}  // namespace reprise
