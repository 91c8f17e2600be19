#include "tools/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "base/logging.h"
#include "tools/output_capture.h"
#include "tools/supervisor.h"
#include "tools/unique_fd.h"

namespace reprise {
namespace {

using Clock = std::chrono::steady_clock;

// How long processes that were killed may take to vanish (one may hang in the kernel, on a dead network disk, say).
constexpr std::chrono::seconds kMaxDying{5};
constexpr std::size_t kReadSize = 64 * 1024;
constexpr int kMaxLeftReads = 64;

struct Pipe {
  UniqueFd read, write;
};

std::optional<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// A socket rather than a pipe, as only a socket can be written to without risking SIGPIPE.
std::optional<Pipe> MakeSocketPair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Error CannotStart(int error_number) {
  return MakeError(ErrorCode::kUnavailable,
                   std::string("the command cannot be started: ") + std::strerror(error_number));
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings)
    pointers.push_back(const_cast<char*>(text.c_str()));  // execve changes nothing
  pointers.push_back(nullptr);
  return pointers;
}

// No handler of the server may run in the child before it has reset them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// The server's side of one supervised command.
class Supervised {
 public:
  static Result<Supervised> Start(const Command& command) {
    UniqueFd null_fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
    auto output = MakePipe();
    auto control = MakeSocketPair();
    auto report = MakePipe();
    if (!null_fd || !output || !control || !report) return Fail(CannotStart(errno));
    ::fcntl(output->read.get(), F_SETFL, O_NONBLOCK);
    ::fcntl(report->read.get(), F_SETFL, O_NONBLOCK);
    const auto argv = Pointers(command.argv);
    const auto environment = Pointers(command.environment);
    const SupervisorPlan plan{.directory = command.directory.c_str(),
                              .argv = argv.data(),
                              .environment = environment.data(),
                              .null_fd = null_fd.get(),
                              .output_fd = output->write.get(),
                              .control_fd = control->read.get(),
                              .report_fd = report->write.get()};
    const pid_t pid = Fork(plan);
    if (pid < 0) return Fail(CannotStart(errno));
    return Supervised(pid, std::move(output->read), std::move(control->write), std::move(report->read));
  }

  int output() const { return output_.get(); }
  int report() const { return report_.get(); }

  void Terminate() {
    // If it fails the supervisor has just ended, which its report says.
    [[maybe_unused]] const ssize_t sent = ::send(control_.get(), &kTerminateRequest, 1, MSG_NOSIGNAL);
  }
  void Kill() { control_.Reset(); }

  // Takes what reports there are. True: the supervisor has gone, and with it everything else.
  bool ReadReports() {
    SupervisorReport report{};
    for (;;) {
      const ssize_t got = ::read(report_.get(), &report, sizeof report);
      if (got < 0) return errno != EAGAIN && errno != EINTR;
      if (got == 0) return true;
      if (report.kind == SupervisorReport::kStartFailed) start_error_ = report.value;
      if (report.kind == SupervisorReport::kEnded) status_ = report.value;
    }
  }

  // REQUIRES: ReadReports was true.
  void Reap() {
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  std::optional<int> start_error() const { return start_error_; }
  std::optional<int> status() const { return status_; }

 private:
  Supervised(pid_t pid, UniqueFd output, UniqueFd control, UniqueFd report)
      : pid_(pid), output_(std::move(output)), control_(std::move(control)), report_(std::move(report)) {}

  static pid_t Fork(const SupervisorPlan& plan) {
    const SignalsBlocked blocked;
    const pid_t pid = ::fork();
    if (pid == 0) Supervise(plan);
    return pid;
  }

  pid_t pid_;
  UniqueFd output_, control_, report_;
  std::optional<int> start_error_, status_;
};

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

// One run from start to end, on the caller's thread.
class Run {
 public:
  Run(Supervised process, const CommandLimits& limits, const std::stop_token& stop,
      std::function<void(std::string_view)> on_output)
      : process_(std::move(process)),
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
      process_.Reap();
    } else {
      LogError("processes of a command do not die", {});
    }
    if (process_.start_error()) return Fail(CannotStart(*process_.start_error()));
    return Outcome();
  }

 private:
  enum class State { kRunning, kTerminating, kKilled, kGivenUp };

  void Step() {
    std::array<pollfd, 3> waits{{{process_.report(), POLLIN, 0},
                                 {output_open_ ? process_.output() : -1, POLLIN, 0},
                                 {state_ < State::kKilled ? stop_.fd() : -1, POLLIN, 0}}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    ::poll(waits.data(), waits.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000)));
    if (waits[2].revents != 0) {
      end_ = CommandResult::End::kCancelled;
      KillAll();
    }
    if (Clock::now() >= deadline_) OnDeadline();
    if (waits[1].revents != 0) ReadOutput();
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
        state_ = State::kGivenUp;
        return;
      case State::kGivenUp:
        return;
    }
  }

  void KillAll() {
    process_.Kill();
    state_ = State::kKilled;
    deadline_ = Clock::now() + kMaxDying;
  }

  // False: nothing there now, or nothing will come any more.
  bool ReadOutput() {
    if (!output_open_) return false;
    const ssize_t got = ::read(process_.output(), buffer_.data(), buffer_.size());
    if (got > 0) capture_.Add({buffer_.data(), static_cast<std::size_t>(got)});
    if (got == 0) output_open_ = false;
    return got > 0;
  }

  CommandResult Outcome() {
    CommandResult result{.end = end_.value_or(CommandResult::End::kExited), .output = capture_.Finish()};
    // Without a status somebody killed the supervisor itself.
    const int status = process_.status().value_or(SIGKILL);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    if (!end_ && !WIFEXITED(status)) result.end = CommandResult::End::kSignalled;
    return result;
  }

  Supervised process_;
  const CommandLimits limits_;
  StopEvent stop_;
  OutputCapture capture_;
  Clock::time_point deadline_;  // of the state
  State state_ = State::kRunning;
  std::optional<CommandResult::End> end_;  // set if it did not end by itself
  bool output_open_ = true;
  bool gone_ = false;
  std::vector<char> buffer_ = std::vector<char>(kReadSize);
};

}  // namespace

Result<CommandResult> RunCommand(const Command& command, const CommandLimits& limits, std::stop_token stop,
                                 std::function<void(std::string_view)> on_output) {
  auto process = Supervised::Start(command);
  if (!process) return Fail(process.error());
  return Run(std::move(*process), limits, stop, std::move(on_output)).Finish();
}

}  // namespace reprise
