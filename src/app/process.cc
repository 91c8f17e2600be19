#include "app/process.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/logging.h"

namespace reprise {
namespace {

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) LogWarning("the descriptor limit stays low");
}

sigset_t StopSet() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

extern "C" void ExitAtOnce(int number) { _exit(128 + number); }

}  // namespace

void HideMemory() {
  const rlimit no_core{0, 0};
  if (setrlimit(RLIMIT_CORE, &no_core) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0) {
    LogWarning("core dumps cannot be turned off");  // possible under a foreign sandbox; no reason to stop
  }
}

void PrepareProcess() {
  RaiseDescriptorLimit();
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);  // cannot fail for a valid signal; a lost client is an error of write(2)
  // glibc gives each of the first 8 * cores threads an arena, with a free list that keeps its peak. The runs' threads
  // come and go; two arenas keep their memory shared, without a measurable wait for the lock.
  mallopt(M_ARENA_MAX, 2);
}

StopSignals::StopSignals(std::function<void()> on_hangup) : on_hangup_(std::move(on_hangup)) {
  sigset_t set = StopSet();
  if (on_hangup_) sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int StopSignals::Wait() {
  const sigset_t set = StopSet();
  sigset_t awaited = set;
  if (on_hangup_) sigaddset(&awaited, SIGHUP);
  int number = 0;
  while (sigwait(&awaited, &number) != 0 || number == SIGHUP) {
    if (number == SIGHUP) on_hangup_();
    number = 0;
  }
  struct sigaction at_once {};
  at_once.sa_handler = ExitAtOnce;
  sigaction(SIGINT, &at_once, nullptr);
  sigaction(SIGTERM, &at_once, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  return number;
}

}  // namespace reprise
