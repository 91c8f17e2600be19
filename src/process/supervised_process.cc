#include "process/supervised_process.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
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
#include "process/supervisor.h"

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

// A socket rather than a pipe, as only a socket can be written to without risking SIGPIPE.
std::optional<Pipe> MakeSocketPair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Nothing to read: no descriptor.
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

struct ProcessStatus {
  pid_t parent = 0, session = 0;
};

// Nothing if there is no such process any more.
std::optional<ProcessStatus> StatusOf(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // "pid (name) state parent group session ...", where the name may hold anything.
  const std::size_t end = line.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(end + 1));
  std::string state;
  pid_t group = 0;
  ProcessStatus status;
  if (!(rest >> state >> status.parent >> group >> status.session)) return std::nullopt;
  return status;
}

// Children that are not for Supervisors. Thread-safe.
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

// The supervisors of this process, and what those that were killed have left behind: it becomes this process's. A
// child is one of these if it is no supervisor and not of this process's session, which descendants of a supervisor
// cannot come back to. Thread-safe.
class Supervisors {
 public:
  static Supervisors& Instance() {
    static auto* const instance = new Supervisors;  // never destroyed: used by threads that may outlive main
    return *instance;
  }

  pid_t Fork(const SupervisorPlan& plan) {
    ReapAbandoned();
    const MutexLock lock(mutex_);  // a new supervisor is not taken for something left behind
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

  // False: something is still there after some seconds.
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
  auto extra = MakeInput(command.extra_input);
  if (!null_fd || !output || !control || !report || !input || !errors || !extra) return Fail(CannotStart(errno));
  for (const UniqueFd* ours : {&output->read, &report->read, &input->write, &errors->read}) NeverBlock(*ours);
  const auto argv = Pointers(command.argv);
  const auto environment = Pointers(command.environment);
  const SupervisorPlan plan{.directory = command.directory.c_str(),
                            .argv = argv.data(),
                            .environment = environment.data(),
                            .input_fd = input->read ? input->read.get() : null_fd.get(),
                            .output_fd = output->write.get(),
                            .errors_fd = separate ? errors->write.get() : output->write.get(),
                            .extra_fd = extra->read.get(),
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
  // If it fails the supervisor has just ended, which its report says.
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

}  // namespace reprise
