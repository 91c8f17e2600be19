#include "terminal/progress.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/logging.h"
#include "base/terminal_text.h"
#include "terminal/console.h"

namespace reprise {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBeforeFirst{30}, kBetween{33};
constexpr std::size_t kUsualColumns = 80;
constexpr std::string_view kErase = "\r\x1b[K";

// Empty for a very low rate.
std::string RateText(double per_second) {
  if (per_second >= 10) return ", " + Grouped(static_cast<std::uint64_t>(std::llround(per_second))) + "/s";
  if (per_second < 0.1) return {};
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), ", %.1f/s", per_second);
  return text.data();
}

std::string LeftText(double seconds) {
  constexpr double kMost = 100 * 3600.0;  // more than that is no estimate
  if (!(seconds < kMost)) return {};
  const auto left = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(seconds)));
  if (left < 100) return ", " + std::to_string(left) + " s left";
  const std::uint64_t minutes = (left + 59) / 60;
  if (minutes < 100) return ", " + std::to_string(minutes) + " min left";
  return ", " + std::to_string(minutes / 60) + " h " + std::to_string(minutes % 60) + " min left";
}

// The only progress line of this process.
struct TerminalLine {
  std::atomic<bool> in_use = false;
  Mutex mutex;
  bool is_drawn = false;  // guarded by mutex
};
TerminalLine& OnlyLine() {
  static auto* const line = new TerminalLine;  // never destroyed, because threads may log to the end
  return *line;
}

void WriteToErrorOutput(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nothing depends on it
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// REQUIRES: the line's mutex is held.
void EraseLine() {
  if (std::exchange(OnlyLine().is_drawn, false)) WriteToErrorOutput(kErase);
}

std::size_t Columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

// False, for example, while a shell shows its prompt.
bool InForeground() {
  const pid_t foreground = ::tcgetpgrp(STDERR_FILENO);
  return foreground < 0 || foreground == ::getpgrp();
}

// The signals that would end this process. Leaves out ignored ones (nohup), which would arrive here when blocked.
sigset_t EndingSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  return set;
}

}  // namespace

std::string ProgressText(const LongTask& task, std::uint64_t steps_done, std::chrono::milliseconds elapsed,
                         std::size_t columns) {
  const std::uint64_t things = steps_done / task.steps_each, all_steps = task.total * task.steps_each;
  const bool has_total = task.total > 0 && steps_done <= all_steps;
  const std::string what =
      task.doing + " " + Grouped(things) + (has_total ? " of " + Grouped(task.total) : "") + " " + task.things;
  const double seconds = std::chrono::duration<double>(elapsed).count();
  std::string rate, left;
  if (steps_done > 0 && seconds > 0) {
    const double steps_per_second = static_cast<double>(steps_done) / seconds;
    rate = RateText(steps_per_second / static_cast<double>(task.steps_each));
    if (has_total) left = LeftText(static_cast<double>(all_steps - steps_done) / steps_per_second);
  }
  for (const std::string& text : {what + rate + left, what + left, what}) {
    if (text.size() <= columns) return text;
  }
  return what.substr(0, columns);
}

// Blocks the signals, and has a thread that takes them and draws.
class Progress::Watcher {
 public:
  Watcher(WorkCounter& counter, bool draws)
      : counter_(counter), draws_(draws), ended_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    const sigset_t signals = EndingSignals();
    ::pthread_sigmask(SIG_BLOCK, &signals, &signals_before_);
    signals_ = UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    OnlyLine().in_use = draws;
    if (draws) SetLogGuard([]() -> std::shared_ptr<void> { return std::make_shared<ProgressPause>(); });
    try {
      if (signals_) thread_ = std::thread([this] { Watch(); });
    } catch (const std::system_error&) {  // no more threads
    }
    // Without the thread nothing is drawn, and signals have their usual effect.
    if (!thread_.joinable()) ::pthread_sigmask(SIG_SETMASK, &signals_before_, nullptr);
  }
  Watcher(const Watcher&) = delete;  // its thread refers to it
  Watcher& operator=(const Watcher&) = delete;

  // Returns the signal that has arrived, 0 if none.
  int End() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = ::write(ended_.get(), &one, sizeof one);
    if (thread_.joinable()) thread_.join();
    if (draws_) {
      SetLogGuard(nullptr);
      const MutexLock lock(OnlyLine().mutex);
      EraseLine();
      OnlyLine().in_use = false;
    }
    ::pthread_sigmask(SIG_SETMASK, &signals_before_, nullptr);
    return signal_;
  }

  void Begin(LongTask task) {
    const MutexLock lock(OnlyLine().mutex);
    counter_.Restart();
    task_ = std::move(task);
    begun_ = Clock::now();
  }
  void Expect(std::uint64_t more_things) {
    const MutexLock lock(OnlyLine().mutex);
    task_.total += more_things;
  }

 private:
  void Watch() {
    auto next = Clock::now() + kBeforeFirst;
    std::array<pollfd, 2> waits{{{signals_.get(), POLLIN, 0}, {ended_.get(), POLLIN, 0}}};
    for (;;) {
      const bool draws = draws_ && signal_ == 0;
      const auto until_next = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
      const int patience = draws ? static_cast<int>(std::max<std::int64_t>(0, until_next.count())) : -1;
      const int ready = ::poll(waits.data(), waits.size(), patience);
      if (ready < 0 && errno != EINTR) return;
      if (ready > 0 && waits[1].revents != 0) return;
      if (ready > 0 && waits[0].revents != 0) {
        TakeSignal();
        waits[0].fd = -1;
      } else if (ready == 0) {
        Draw();
        next = Clock::now() + kBetween;
      }
    }
  }

  void TakeSignal() {
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) != sizeof info) return;
    signal_ = static_cast<int>(info.ssi_signo);
    counter_.RequestStop();
    {
      const MutexLock lock(OnlyLine().mutex);
      EraseLine();
    }
    // The next signal comes to this thread, and ends the process.
    ::pthread_sigmask(SIG_SETMASK, &signals_before_, nullptr);
  }

  void Draw() {
    const MutexLock lock(OnlyLine().mutex);
    if (task_.doing.empty() || !InForeground()) return;
    const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun_);
    // The last column stays free, because some terminals begin another line after it.
    const std::string text = ProgressText(task_, counter_.done(), elapsed, Columns() - 1);
    WriteToErrorOutput("\r" + text + "\x1b[K");
    OnlyLine().is_drawn = true;
  }

  WorkCounter& counter_;
  const bool draws_;
  const UniqueFd ended_;
  UniqueFd signals_;
  sigset_t signals_before_{};
  LongTask task_{};              // guarded by the line's mutex, as is begun_
  Clock::time_point begun_{};    // of the task
  std::atomic<int> signal_ = 0;  // that has arrived
  std::thread thread_;           // last, because it uses all of the above
};

Progress::Progress(WorkCounter& counter, const Environment& environment)
    : counter_(counter),
      is_shown_(::isatty(STDERR_FILENO) == 1 && environment("TERM") != "dumb"),
      watcher_(std::make_unique<Watcher>(counter, is_shown_)) {}

Progress::~Progress() { End(); }

void Progress::Begin(LongTask task) { watcher_->Begin(std::move(task)); }
void Progress::Expect(std::uint64_t more_things) { watcher_->Expect(more_things); }

void Progress::End() {
  if (!watcher_) return;
  const int signal = watcher_->End();
  watcher_.reset();
  if (signal == 0) return;
  static_cast<void>(FlushOutput());  // the output so far
  ::raise(signal);
}

ProgressPause::ProgressPause() {
  TerminalLine& line = OnlyLine();
  if (!line.in_use) return;
  lock_ = std::unique_lock(line.mutex);
  EraseLine();
}

ProgressPause::~ProgressPause() = default;

}  // namespace reprise
