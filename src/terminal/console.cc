#include "terminal/console.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/system.h"
#include "base/terminal_text.h"
#include "terminal/progress.h"

namespace reprise {

void Print(std::string_view text) {
  const ProgressPause pause;
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (pause.is_needed()) std::fflush(stdout);  // stdout may be the same terminal
}

bool FlushOutput() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

int Complain(const Error& error) {
  // Often the message begins with the detail.
  const bool adds = !error.detail.empty() && error.message.find(error.detail) == std::string::npos;
  Warn(error.message + (adds ? " (" + error.detail + ")" : ""));
  return kExitFailure;
}

int ComplainOfUse(const Error& error) {
  Complain(error);
  return error.code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

int Misused(std::string_view message) {
  Warn(message);
  return kExitUsage;
}

void Warn(std::string_view message) {
  const std::string line = "reprise: " + VisibleLine(message) + "\n";
  const ProgressPause pause;
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Interrupts::Interrupts() {
  sigset_t held;
  ::sigemptyset(&held);
  ::sigaddset(&held, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
  signals_ = UniqueFd(::signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool Interrupts::Take() {
  signalfd_siginfo info;
  return ::read(signals_.get(), &info, sizeof info) == sizeof info;
}

namespace {

void Write(int fd, std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(fd, text.data(), text.size());  // to a person; nothing depends on it
}

// The terminal without echo. Holds signals back, so that none ends the process before the echo is restored.
class HiddenTerminal {
 public:
  HiddenTerminal() : fd_(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (!is_open()) return;
    sigset_t held;
    sigemptyset(&held);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) sigaddset(&held, number);
    pthread_sigmask(SIG_BLOCK, &held, &signals_before_);
    signals_ = UniqueFd(::signalfd(-1, &held, SFD_CLOEXEC));
    tcgetattr(fd(), &before_);
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    hidden.c_lflag |= ECHONL | ICANON | ISIG;
    hidden.c_iflag |= ICRNL;  // the terminal client turns it off
    hidden.c_iflag &= ~static_cast<tcflag_t>(INLCR | IGNCR);
    tcsetattr(fd(), TCSAFLUSH, &hidden);  // FLUSH drops keys typed before the question
  }
  ~HiddenTerminal() {
    if (!is_open()) return;
    tcsetattr(fd(), TCSAFLUSH, &before_);
    pthread_sigmask(SIG_SETMASK, &signals_before_, nullptr);
  }

  bool is_open() const { return static_cast<bool>(fd_); }
  int fd() const { return fd_.get(); }

  // False if no line will come.
  bool WaitForInput() const {
    std::array<pollfd, 2> waits{{{fd(), POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
    while (::poll(waits.data(), waits.size(), -1) < 0) {
      if (errno != EINTR) return false;
    }
    return waits[1].revents == 0 && (waits[0].revents & POLLIN) != 0;
  }

 private:
  const UniqueFd fd_;
  UniqueFd signals_;
  sigset_t signals_before_{};
  termios before_{};
};

}  // namespace

Result<SecretText> AskHidden(const std::string& prompt) {
  const HiddenTerminal terminal;
  if (!terminal.is_open()) return Fail(ErrorCode::kUnavailable, "there is no terminal to ask at");
  Write(terminal.fd(), prompt);
  SecretText line;
  for (;;) {
    std::array<char, 256> part;
    const ssize_t got = terminal.WaitForInput() ? ::read(terminal.fd(), part.data(), part.size()) : 0;
    if (got <= 0) {
      Write(terminal.fd(), "\n");
      return Fail(ErrorCode::kCancelled, "no passphrase was given");
    }
    Append(line, {part.data(), static_cast<std::size_t>(got)});
    WipeBytes(part.data(), part.size());
    if (line.back() != '\n') continue;
    line.pop_back();
    return line;
  }
}

}  // namespace reprise
