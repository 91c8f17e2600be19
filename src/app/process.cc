#include "app/process.h"

#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

// Drops the pages of an object's segments that are never written, and so are the same in the file. Relocated data is in
// writable segments (made read-only only later) and is left alone. An madvise that fails has changed nothing.
int ReleaseSegments(dl_phdr_info* object, std::size_t, void*) {
  const auto page = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const ElfW(Addr) begin = (object->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const ElfW(Addr) end = (object->dlpi_addr + segment.p_vaddr + segment.p_memsz + page - 1) & ~(page - 1);
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

extern "C" void ExitAtOnce(int number) { _exit(128 + number); }

}  // namespace

void HideMemory() {
  const rlimit no_core{0, 0};
  if (setrlimit(RLIMIT_CORE, &no_core) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0) {
    LogWarning("core dumps cannot be turned off");  // possible under a foreign sandbox; no reason not to go on
  }
}

void PrepareProcess() {
  umask(077);
  RaiseDescriptorLimit();
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);  // cannot fail for a valid signal; a lost client is an error of write(2)
  // glibc gives each of the first 8 * cores threads an arena of its own, each with a free list that keeps what it once
  // had. The runs' threads come and go; two arenas hold what they share without a measurable wait for the lock.
  mallopt(M_ARENA_MAX, 2);
}

void ReleaseStartUpMemory() {
  malloc_trim(0);
  dl_iterate_phdr(ReleaseSegments, nullptr);
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
