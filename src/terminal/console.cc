#include "terminal/console.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <string>

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

}  // namespace reprise
