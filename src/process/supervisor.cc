#include "process/supervisor.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace reprise {
namespace {

// Where the descriptors are after TakeDescriptors.
constexpr int kControl = 3;
constexpr int kReport = 4;
constexpr int kInput = 5;
constexpr int kOutput = 6;
constexpr int kErrors = 7;
constexpr int kFirstOther = kExtraDescriptor + 1;

constexpr rlim_t kMaxOpenFiles = 4096;

void CloseFrom(int first) {
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (int fd = first; static_cast<rlim_t>(fd) < limit.rlim_cur; ++fd) ::close(fd);
}

// Keeps what the plan names, at fixed numbers, and nothing else: not the server's locks, sockets and files.
void TakeDescriptors(const SupervisorPlan& plan) {
  // Out of the way of the final numbers first.
  constexpr int kAside = 16;
  struct Move {
    int from, to, aside;
  };
  std::array<Move, 9> moves{{{plan.null_fd, 0, -1},
                             {plan.null_fd, 1, -1},
                             {plan.null_fd, 2, -1},
                             {plan.control_fd, kControl, -1},
                             {plan.report_fd, kReport, -1},
                             {plan.input_fd, kInput, -1},
                             {plan.output_fd, kOutput, -1},
                             {plan.errors_fd, kErrors, -1},
                             {plan.extra_fd < 0 ? plan.null_fd : plan.extra_fd, kExtraDescriptor, -1}}};
  bool ok = true;
  for (Move& move : moves) ok = (move.aside = ::fcntl(move.from, F_DUPFD_CLOEXEC, kAside)) >= 0 && ok;
  for (const Move& move : moves) ok = ok && ::dup3(move.aside, move.to, move.to < kControl ? 0 : O_CLOEXEC) >= 0;
  if (!ok) ::_exit(1);  // the server sees the end without a report
  CloseFrom(kFirstOther);
}

// The server's handlers must not run here: they would write to what is the server's.
void ResetSignalHandlers() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &standard, nullptr);
}

void Report(SupervisorReport::Kind kind, int value) {
  const SupervisorReport report{.kind = kind, .value = value};
  // Shorter than PIPE_BUF, so all or nothing; without a server nobody wants to know.
  [[maybe_unused]] const ssize_t written = ::write(kReport, &report, sizeof report);
}

void Limit(__rlimit_resource_t resource, rlim_t value) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  limit.rlim_max = limit.rlim_max < value ? limit.rlim_max : value;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(resource, &limit);
}

void Confine() {
  // What fails here is defence in depth: the command runs all the same.
  ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(score, "1000", 4);
  ::close(score);
}

[[noreturn]] void BecomeCommand(const SupervisorPlan& plan, pid_t supervisor) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(1);  // it died before the line above
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_NOFILE, kMaxOpenFiles);
  if (plan.confined) Confine();
  if (plan.extra_fd >= 0) ::fcntl(kExtraDescriptor, F_SETFD, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::chdir(plan.directory) == 0 && ::dup2(kInput, 0) >= 0 && ::dup2(kOutput, 1) >= 0 && ::dup2(kErrors, 2) >= 0) {
    // Last: until then this is a copy of the server, which may be larger than that already.
    if (plan.file_bytes > 0) Limit(RLIMIT_FSIZE, plan.file_bytes);
    if (plan.memory_bytes > 0) Limit(RLIMIT_DATA, plan.memory_bytes);
    ::execve(plan.argv[0], plan.argv, plan.environment);
  }
  Report(SupervisorReport::kStartFailed, errno);
  ::_exit(127);
}

// Sends SIGKILL to every child the kernel lists. False: it listed none.
bool KillChildren(int children_file) {
  std::array<char, 4096> text;
  bool any = false;
  pid_t pid = 0;
  ::lseek(children_file, 0, SEEK_SET);
  for (ssize_t got; (got = ::read(children_file, text.data(), text.size())) > 0;) {
    for (ssize_t i = 0; i < got; ++i) {
      const char c = text[static_cast<std::size_t>(i)];
      if (c >= '0' && c <= '9') {
        pid = pid * 10 + (c - '0');
      } else if (pid > 0) {  // numbers end with a space, also the last
        ::kill(pid, SIGKILL);
        any = true;
        pid = 0;
      }
    }
  }
  return any;
}

// The children of the killed become children of this process, so it goes on until there are none. `status` is set if
// `command` is among the dead.
void KillDescendants(pid_t command, int& status) {
  const int children_file = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  for (;;) {
    ::kill(-command, SIGKILL);
    if (children_file < 0) ::kill(command, SIGKILL);
    const bool killed = children_file >= 0 && KillChildren(children_file);
    int ended = 0;
    // The list may miss a child that comes or goes meanwhile: wait only for one that was surely killed.
    const pid_t pid = ::waitpid(-1, &ended, killed ? 0 : WNOHANG);
    if (pid == command) status = ended;
    if (pid < 0 && errno != EINTR) return;
    if (pid == 0 && children_file < 0) return;  // no /proc: the process group is all that can be found
    if (pid == 0) ::sched_yield();
  }
}

// Waits until the command has ended (true, and its status) or must be ended.
bool WaitForEnd(pid_t command, int child_signals, int& status) {
  std::array<pollfd, 2> waits{{{kControl, POLLIN, 0}, {child_signals, POLLIN, 0}}};
  for (;;) {
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;  // EINTR
    if (waits[1].revents != 0) {
      signalfd_siginfo info;
      while (::read(child_signals, &info, sizeof info) > 0) {
      }
      int ended = 0;
      for (pid_t pid; (pid = ::waitpid(-1, &ended, WNOHANG)) > 0;) {
        if (pid != command) continue;  // a descendant that was left to us
        status = ended;
        return true;
      }
    }
    if (waits[0].revents != 0) {
      char request = 0;
      if (::read(kControl, &request, 1) <= 0) return false;
      if (request == kTerminateRequest) ::kill(-command, SIGTERM);
    }
  }
}

}  // namespace

void Supervise(const SupervisorPlan& plan) {
  ResetSignalHandlers();
  TakeDescriptors(plan);
  ::setsid();  // a Ctrl-C for the server is none for this process
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t child_ended;
  ::sigemptyset(&child_ended);
  ::sigaddset(&child_ended, SIGCHLD);
  const int child_signals = ::signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK);
  const pid_t self = ::getpid();
  const pid_t command = child_signals < 0 ? -1 : ::fork();
  if (command == 0) BecomeCommand(plan, self);
  if (command < 0) {
    Report(SupervisorReport::kStartFailed, errno);
    ::_exit(1);
  }
  for (const int its : {kInput, kOutput, kErrors, kExtraDescriptor}) ::close(its);
  int status = 0;
  WaitForEnd(command, child_signals, status);
  KillDescendants(command, status);
  Report(SupervisorReport::kEnded, status);
  ::_exit(0);
}

}  // namespace reprise
