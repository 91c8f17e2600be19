#include "terminal/interrupts.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace reprise {

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
