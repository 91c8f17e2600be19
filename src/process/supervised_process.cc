#include "process/supervised_process.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

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

pid_t Fork(const SupervisorPlan& plan) {
  const SignalsBlocked blocked;
  const pid_t pid = ::fork();
  if (pid == 0) Supervise(plan);
  return pid;
}

}  // namespace

Result<SupervisedProcess> SupervisedProcess::Start(const Command& command, Streams streams) {
  const bool separate = streams == Streams::kSeparate;
  UniqueFd null_fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  auto output = MakePipe();
  auto control = MakeSocketPair();
  auto report = MakePipe();
  auto input = separate ? MakePipe() : MakeInput(command.input);
  auto errors = separate ? MakePipe() : Pipe{};
  if (!null_fd || !output || !control || !report || !input || !errors) return Fail(CannotStart(errno));
  for (const UniqueFd* ours : {&output->read, &report->read, &input->write, &errors->read}) NeverBlock(*ours);
  const auto argv = Pointers(command.argv);
  const auto environment = Pointers(command.environment);
  const SupervisorPlan plan{.directory = command.directory.c_str(),
                            .argv = argv.data(),
                            .environment = environment.data(),
                            .input_fd = input->read ? input->read.get() : null_fd.get(),
                            .output_fd = output->write.get(),
                            .errors_fd = separate ? errors->write.get() : output->write.get(),
                            .null_fd = null_fd.get(),
                            .control_fd = control->read.get(),
                            .report_fd = report->write.get()};
  const pid_t pid = Fork(plan);
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
}

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

void SupervisedProcess::Reap() {
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<Error> SupervisedProcess::start_error() const {
  if (!start_error_) return std::nullopt;
  return CannotStart(*start_error_);
}

}  // namespace reprise
