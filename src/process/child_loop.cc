#include "process/child_loop.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace reprise {
namespace {

constexpr int kMaxLeftReads = 64;

// Makes a write to a command that has closed its stdin merely fail, however SIGPIPE is handled.
class PipeSignalBlocked {
 public:
  PipeSignalBlocked() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~PipeSignalBlocked() {
    const timespec at_once{};
    while (::sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  PipeSignalBlocked(const PipeSignalBlocked&) = delete;
  PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;

 private:
  sigset_t pipe_{}, before_{};
};

}  // namespace

bool ChildLoop::Run() {
  while (!gone_ && ending_ != Ending::kGivenUp) Step();
  // Read what is left in the pipes, with a limit in case an escaped process goes on writing.
  for (int i = 0; i < kMaxLeftReads && gone_ && ReadOutput(); ++i) {
  }
  for (int i = 0; i < kMaxLeftReads && ReadErrors(); ++i) {
  }
  if (gone_) return process_.Reap();
  process_.Abandon();
  return false;
}

void ChildLoop::Step() {
  std::array<pollfd, 5> waits{{{process_.report(), POLLIN, 0},
                               {output_open_ ? process_.output() : -1, POLLIN, 0},
                               {errors_open_ ? process_.errors() : -1, POLLIN, 0},
                               {Unsent().empty() ? -1 : process_.input(), POLLOUT, 0},
                               {wake_, POLLIN, 0}}};
  ::poll(waits.data(), waits.size(), TimeLeft());
  if (waits[4].revents != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t taken = ::read(wake_, &count, sizeof count);
    OnWake();
  }
  if (deadline_ && Clock::now() >= *deadline_) OnDeadline();
  if (waits[2].revents != 0) ReadErrors();
  if (waits[1].revents != 0) ReadOutput();
  if (waits[3].revents != 0) WriteInput();
  if (waits[0].revents != 0) gone_ = process_.ReadReports();
}

int ChildLoop::TimeLeft() const {
  if (!deadline_) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

void ChildLoop::End(Ending step) {
  ending_ = step;
  switch (step) {
    case Ending::kNot:
    case Ending::kGivenUp:
      return;
    case Ending::kInputClosed:
      process_.CloseInput();
      return EndAfter(patience_.input_closed);
    case Ending::kTerminated:
      process_.Terminate();
      return EndAfter(patience_.terminated);
    case Ending::kKilled:
      process_.Kill();
      return EndAfter(patience_.killed);
    case Ending::kForced:
      process_.KillSupervisor();
      return EndAfter(patience_.forced);
  }
}

bool ChildLoop::ReadOutput() {
  if (!output_open_) return false;
  const ssize_t got = ::read(process_.output(), buffer_.data(), buffer_.size());
  if (got > 0) OnOutput({buffer_.data(), static_cast<std::size_t>(got)});
  if (got == 0) {
    output_open_ = false;
    OnOutputEnd();
  }
  return got > 0;
}

bool ChildLoop::ReadErrors() {
  if (!errors_open_) return false;
  const ssize_t got = ::read(process_.errors(), buffer_.data(), buffer_.size());
  if (got > 0) OnErrors({buffer_.data(), static_cast<std::size_t>(got)});
  if (got == 0) errors_open_ = false;
  return got > 0;
}

void ChildLoop::WriteInput() {
  const std::string_view unsent = Unsent();
  if (unsent.empty() || process_.input() < 0) return;  // changed since the poll
  const PipeSignalBlocked blocked;
  const ssize_t written = ::write(process_.input(), unsent.data(), unsent.size());
  if (written < 0 && (errno == EAGAIN || errno == EINTR)) return;
  // The command may answer without reading everything, or may have ended, so errors drop the input.
  Sent(written < 0 ? unsent.size() : static_cast<std::size_t>(written));
}

}  // namespace reprise
