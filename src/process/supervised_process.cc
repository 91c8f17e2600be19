#include "process/supervised_process.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/mutex.h"

namespace reprise {

namespace {

struct Pipe {
  UniqueFd read, write;
};

std::optional<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// A socket, because writing to a pipe risks SIGPIPE.
std::optional<Pipe> MakeSocketPair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Returns no descriptor for empty content.
std::optional<Pipe> MakeInput(const std::string& content) {
  if (content.empty()) return Pipe{};
  UniqueFd file(::memfd_create("input", MFD_CLOEXEC));
  if (!file) return std::nullopt;
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t written = ::write(file.get(), content.data() + done, content.size() - done);
    if (written < 0) return std::nullopt;
    done += static_cast<std::size_t>(written);
  }
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return std::nullopt;
  return Pipe{std::move(file), UniqueFd()};
}

void NeverBlock(const UniqueFd& fd) {
  if (fd) ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
}

Error CannotStart(int error_number) {
  return MakeError(ErrorCode::kUnavailable,
                   "the command cannot be started: " + std::generic_category().message(error_number));
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings)
    pointers.push_back(const_cast<char*>(text.c_str()));  // execve does not change them
  pointers.push_back(nullptr);
  return pointers;
}

// No signal handler of the server may run in the child before the child has reset them.
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

struct ProcessStatus {
  pid_t parent = 0, session = 0;
};

// nullopt if the process is gone.
std::optional<ProcessStatus> StatusOf(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // "pid (name) state parent group session ...", where the name may hold any character.
  const std::size_t end = line.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(end + 1));
  std::string state;
  pid_t group = 0;
  ProcessStatus status;
  if (!(rest >> state >> status.parent >> group >> status.session)) return std::nullopt;
  return status;
}

// Children that Supervisors must leave alone. Thread-safe.
class Spared {
 public:
  static Spared& Instance() {
    static auto* const instance = new Spared;
    return *instance;
  }
  void Add(pid_t pid) {
    const MutexLock lock(mutex_);
    pids_.insert(pid);
  }
  bool Contains(pid_t pid) {
    const MutexLock lock(mutex_);
    return pids_.contains(pid);
  }

 private:
  Mutex mutex_;
  std::set<pid_t> pids_ GUARDED_BY(mutex_);
};

// The supervisors of this process and the orphans of killed supervisors, which this process inherits. An orphan is a
// child that is not a supervisor and not in this process's session, because descendants of a supervisor cannot return
// to that session. Thread-safe.
class Supervisors {
 public:
  static Supervisors& Instance() {
    static auto* const instance = new Supervisors;  // never destroyed: used by threads that may outlive main
    return *instance;
  }

  pid_t Fork(const SupervisorPlan& plan) {
    ReapAbandoned();
    const MutexLock lock(mutex_);  // so that EndOrphans does not take the new supervisor for an orphan
    const SignalsBlocked blocked;
    const pid_t pid = ::fork();
    if (pid == 0) Supervise(plan);
    if (pid > 0) running_.insert(pid);
    return pid;
  }

  void Reap(pid_t pid) {
    siginfo_t info;
    while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
    }
    const MutexLock lock(mutex_);  // the next supervisor may get the same number
    ::waitpid(pid, nullptr, 0);
    running_.erase(pid);
  }

  void Abandon(pid_t pid) {
    const MutexLock lock(mutex_);
    abandoned_.push_back(pid);
  }

  // False if an orphan is still there after some seconds.
  bool EndOrphans() {
    const auto deadline = Clock::now() + kMaxDying;
    for (;;) {
      const std::vector<Orphan> orphans = KillOrphans();
      if (orphans.empty()) return true;
      for (const Orphan& orphan : orphans) {
        pollfd ended{orphan.process.get(), POLLIN, 0};
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
        if (left <= 0 || ::poll(&ended, 1, static_cast<int>(left)) == 0) return false;
        ::waitpid(orphan.pid, nullptr, WNOHANG);
      }
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kMaxDying{5};
  struct Orphan {
    pid_t pid;
    UniqueFd process;
  };

  Supervisors() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

  std::vector<Orphan> KillOrphans() {
    const MutexLock lock(mutex_);
    std::vector<Orphan> orphans;
    std::error_code error;
    const std::filesystem::directory_iterator end;
    for (std::filesystem::directory_iterator at("/proc", error); !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const auto status = StatusOf(name);
      if (!status || status->parent != ::getpid() || status->session == ::getsid(0)) continue;
      const auto pid = static_cast<pid_t>(std::stol(name));
      if (running_.contains(pid) || Spared::Instance().Contains(pid)) continue;
      UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
      ::kill(pid, SIGKILL);
      if (process) orphans.push_back({pid, std::move(process)});
    }
    return orphans;
  }

  void ReapAbandoned() {
    bool ended = false;
    {
      const MutexLock lock(mutex_);
      std::erase_if(abandoned_, [&](pid_t pid) {
        if (::waitpid(pid, nullptr, WNOHANG) == 0) return false;
        running_.erase(pid);
        return ended = true;
      });
    }
    if (ended) EndOrphans();
  }

  Mutex mutex_;
  std::set<pid_t> running_;  // not yet reaped
  std::vector<pid_t> abandoned_;
};

std::array<int, kMaxExtra> ExtraFor(const std::vector<UniqueFd>& inputs, const std::vector<int>& descriptors) {
  std::array<int, kMaxExtra> all{-1, -1, -1, -1, -1, -1};
  std::size_t count = 0;
  for (const UniqueFd& input : inputs) all.at(count++) = input.get();
  for (const int descriptor : descriptors) all.at(count++) = descriptor;
  return all;
}

}  // namespace

void SupervisedProcess::Spare(pid_t child) { Spared::Instance().Add(child); }

Result<SupervisedProcess> SupervisedProcess::Start(const Command& command, Streams streams) {
  const bool separate = streams == Streams::kSeparate;
  UniqueFd null_fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  auto output = MakePipe();
  auto control = MakeSocketPair();
  auto report = MakePipe();
  auto input = separate ? MakePipe() : MakeInput(command.input);
  auto errors = separate ? MakePipe() : Pipe{};
  if (!null_fd || !output || !control || !report || !input || !errors) return Fail(CannotStart(errno));
  std::vector<UniqueFd> extra;
  for (const std::string& content : command.extra_inputs) {
    auto made = MakeInput(content);
    if (!made) return Fail(CannotStart(errno));
    extra.push_back(std::move(made->read));
  }
  for (const UniqueFd* ours : {&output->read, &report->read, &input->write, &errors->read}) NeverBlock(*ours);
  const auto argv = Pointers(command.argv);
  const auto environment = Pointers(command.environment);
  const SupervisorPlan plan{.directory = command.directory.c_str(),
                            .argv = argv.data(),
                            .environment = environment.data(),
                            .input_fd = input->read ? input->read.get() : null_fd.get(),
                            .output_fd = output->write.get(),
                            .errors_fd = separate        ? errors->write.get()
                                         : command.quiet ? null_fd.get()
                                                         : output->write.get(),
                            .extra_fds = ExtraFor(extra, command.extra_descriptors),
                            .null_fd = null_fd.get(),
                            .control_fd = control->read.get(),
                            .report_fd = report->write.get(),
                            .memory_bytes = command.memory_bytes,
                            .file_bytes = command.file_bytes,
                            .confined = command.confined};
  const pid_t pid = Supervisors::Instance().Fork(plan);
  if (pid < 0) return Fail(CannotStart(errno));
  SupervisedProcess process(pid);
  process.input_ = std::move(input->write);
  process.output_ = std::move(output->read);
  process.errors_ = std::move(errors->read);
  process.control_ = std::move(control->write);
  process.report_ = std::move(report->read);
  return process;
}

void SupervisedProcess::Terminate() {
  // If this fails, the supervisor has just ended, and its report will say so.
  [[maybe_unused]] const ssize_t sent = ::send(control_.get(), &kTerminateRequest, 1, MSG_NOSIGNAL);
  ::kill(pid_, SIGCONT);  // a command may have stopped it
}

void SupervisedProcess::Kill() {
  control_.Reset();
  ::kill(pid_, SIGCONT);  // a command may have stopped it
}

void SupervisedProcess::KillSupervisor() { ::kill(pid_, SIGKILL); }

bool SupervisedProcess::ReadReports() {
  SupervisorReport report{};
  for (;;) {
    const ssize_t got = ::read(report_.get(), &report, sizeof report);
    if (got < 0) return errno != EAGAIN && errno != EINTR;
    if (got == 0) return true;
    if (report.kind == SupervisorReport::kStartFailed) start_error_ = report.value;
    if (report.kind == SupervisorReport::kEnded) status_ = report.value;
  }
}

bool SupervisedProcess::Reap() {
  Supervisors::Instance().Reap(pid_);
  return status_ || start_error_ || Supervisors::Instance().EndOrphans();
}

void SupervisedProcess::Abandon() { Supervisors::Instance().Abandon(pid_); }

std::optional<Error> SupervisedProcess::start_error() const {
  if (!start_error_) return std::nullopt;
  return CannotStart(*start_error_);
}

namespace {

// The descriptors' numbers after TakeDescriptors.
constexpr int kControl = 3;
constexpr int kReport = 4;
constexpr int kInput = 5;
constexpr int kOutput = 6;
constexpr int kErrors = 7;
constexpr int kFirstOther = kExtraDescriptor + kMaxExtra;

constexpr rlim_t kMaxOpenFiles = 4096;

void CloseFrom(int first) {
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (int fd = first; static_cast<rlim_t>(fd) < limit.rlim_cur; ++fd) ::close(fd);
}

// Keeps only the plan's descriptors, at fixed numbers, and closes the server's locks, sockets and files.
void TakeDescriptors(const SupervisorPlan& plan) {
  // First move them clear of the final numbers.
  constexpr int kAside = 16;
  struct Move {
    int from, to, aside;
  };
  std::array<Move, kExtraDescriptor + kMaxExtra> moves{{{plan.null_fd, 0, -1},
                                                        {plan.null_fd, 1, -1},
                                                        {plan.null_fd, 2, -1},
                                                        {plan.control_fd, kControl, -1},
                                                        {plan.report_fd, kReport, -1},
                                                        {plan.input_fd, kInput, -1},
                                                        {plan.output_fd, kOutput, -1},
                                                        {plan.errors_fd, kErrors, -1}}};
  for (int i = 0; i < kMaxExtra; ++i) {
    const int extra = plan.extra_fds[static_cast<std::size_t>(i)];
    const int to = kExtraDescriptor + i;
    moves[static_cast<std::size_t>(to)] = {extra < 0 ? plan.null_fd : extra, to, -1};
  }
  bool ok = true;
  for (Move& move : moves) ok = (move.aside = ::fcntl(move.from, F_DUPFD_CLOEXEC, kAside)) >= 0 && ok;
  for (const Move& move : moves) ok = ok && ::dup3(move.aside, move.to, move.to < kControl ? 0 : O_CLOEXEC) >= 0;
  if (!ok) ::_exit(1);  // the server sees the end without a report
  CloseFrom(kFirstOther);
}

// The server's handlers must not run here, where they would write to the server's descriptors.
void ResetSignalHandlers() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &standard, nullptr);
}

void Report(SupervisorReport::Kind kind, int value) {
  const SupervisorReport report{.kind = kind, .value = value};
  // Shorter than PIPE_BUF, so all or nothing. It fails only if the server is gone.
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
  // Failures are ignored because this is only defence in depth.
  ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(score, "1000", 4);
  ::close(score);
}

[[noreturn]] void BecomeCommand(const SupervisorPlan& plan, pid_t supervisor) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(1);  // it died before the prctl above
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_NOFILE, kMaxOpenFiles);
  if (plan.confined) Confine();
  for (int i = 0; i < kMaxExtra; ++i) {
    if (plan.extra_fds[static_cast<std::size_t>(i)] >= 0) ::fcntl(kExtraDescriptor + i, F_SETFD, 0);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::chdir(plan.directory) == 0 && ::dup2(kInput, 0) >= 0 && ::dup2(kOutput, 1) >= 0 && ::dup2(kErrors, 2) >= 0) {
    // Last, because until now this shares the supervisor's memory, a copy of the server's, which may exceed the limits.
    if (plan.file_bytes > 0) Limit(RLIMIT_FSIZE, plan.file_bytes);
    if (plan.memory_bytes > 0) Limit(RLIMIT_DATA, plan.memory_bytes);
    ::execve(plan.argv[0], plan.argv, plan.environment);
  }
  Report(SupervisorReport::kStartFailed, errno);
  ::_exit(127);
}

// Sends SIGKILL to every child that the kernel lists; false if there is none.
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
      } else if (pid > 0) {  // a space follows every number, even the last
        ::kill(pid, SIGKILL);
        any = true;
        pid = 0;
      }
    }
  }
  return any;
}

// Children of killed processes become children of this process, so repeat until there are none. Sets `status` if
// `command` is among the dead.
void KillDescendants(pid_t command, int& status) {
  const int children_file = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  for (;;) {
    ::kill(-command, SIGKILL);
    if (children_file < 0) ::kill(command, SIGKILL);
    const bool killed = children_file >= 0 && KillChildren(children_file);
    int ended = 0;
    // The list may miss children that come or go meanwhile, so block only if one was surely killed.
    const pid_t pid = ::waitpid(-1, &ended, killed ? 0 : WNOHANG);
    if (pid == command) status = ended;
    if (pid < 0 && errno != EINTR) return;
    if (pid == 0 && children_file < 0) return;  // without /proc only the process group can be found
    if (pid == 0) ::sched_yield();
  }
}

// Waits until the command ends (true, and sets its status) or must be ended.
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
        if (pid != command) continue;  // an inherited descendant
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
  ::setsid();  // Ctrl-C for the server must not reach this process
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t child_ended;
  ::sigemptyset(&child_ended);
  ::sigaddset(&child_ended, SIGCHLD);
  const int child_signals = ::signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK);
  const pid_t self = ::getpid();
  // The child shares this process's memory until it becomes the command, and changes nothing in it: copying the page
  // tables of a large server takes as long as starting a shell.
  pid_t command = -1;
  if (child_signals >= 0) command = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork): as said above
  if (command == 0) BecomeCommand(plan, self);
  if (command < 0) {
    Report(SupervisorReport::kStartFailed, errno);
    ::_exit(1);
  }
  for (const int its : {kInput, kOutput, kErrors}) ::close(its);
  for (int i = 0; i < kMaxExtra; ++i) ::close(kExtraDescriptor + i);
  int status = 0;
  WaitForEnd(command, child_signals, status);
  KillDescendants(command, status);
  Report(SupervisorReport::kEnded, status);
  ::_exit(0);
}

}  // namespace reprise
