#include "cli/terminal_input.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace reprise {

TerminalInput::TerminalInput() {
  sigset_t interrupt;
  ::sigemptyset(&interrupt);
  ::sigaddset(&interrupt, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &interrupt, nullptr);
  interrupts_ = UniqueFd(::signalfd(-1, &interrupt, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool TerminalInput::TakeInterrupt() {
  signalfd_siginfo info;
  return ::read(interrupts_.get(), &info, sizeof info) == sizeof info;
}

TerminalInput::Came TerminalInput::ReadLine(std::string& line) {
  for (;;) {
    if (const std::size_t end = read_.find('\n'); end != std::string::npos || (ended_ && !read_.empty())) {
      line = read_.substr(0, end);
      read_.erase(0, end == std::string::npos ? end : end + 1);
      if (line.ends_with('\r')) line.pop_back();
      return Came::kLine;
    }
    if (ended_) return Came::kEnd;
    std::array<pollfd, 2> waits = {pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{interrupts_.get(), POLLIN, 0}};
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return Came::kEnd;
    if (waits[1].revents != 0 && TakeInterrupt()) return Came::kInterrupt;
    if (waits[0].revents == 0) continue;
    std::array<char, 4096> bytes;
    const ssize_t size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (size > 0) read_.append(bytes.data(), static_cast<std::size_t>(size));
    if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN)) ended_ = true;
  }
}

bool TerminalInput::WaitForOrInterrupt(int descriptor) {
  std::array<pollfd, 2> waits = {pollfd{descriptor, POLLIN, 0}, pollfd{interrupts_.get(), POLLIN, 0}};
  ::poll(waits.data(), waits.size(), -1);
  return waits[1].revents != 0 && TakeInterrupt();
}

}  // namespace reprise
