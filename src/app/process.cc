#include "app/process.h"

#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/logging.h"
#include "base/text.h"

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

// What only the start has needed: free memory, and pages of programs and libraries. Nothing writes to those, so what is
// needed again comes back out of the page cache.
void LetGoOfStart() {
  dl_iterate_phdr(
      [](dl_phdr_info* loaded, std::size_t, void*) {
        const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
        for (const ElfW(Phdr) & part : std::span(loaded->dlpi_phdr, loaded->dlpi_phnum)) {
          if (part.p_type != PT_LOAD || (part.p_flags & PF_W) != 0) continue;
          const std::uintptr_t begin = loaded->dlpi_addr + part.p_vaddr, first = begin / page * page;
          madvise(reinterpret_cast<void*>(first), begin + part.p_memsz - first, MADV_DONTNEED);
        }
        return 0;
      },
      nullptr);
  malloc_trim(0);
}

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
  constexpr timespec kStart{1, 0};
  int number = sigtimedwait(&awaited, nullptr, &kStart);
  if (number < 0) LetGoOfStart();
  while (number < 0 || number == SIGHUP) {
    if (number == SIGHUP) on_hangup_();
    number = sigwaitinfo(&awaited, nullptr);
  }
  struct sigaction at_once {};
  at_once.sa_handler = ExitAtOnce;
  sigaction(SIGINT, &at_once, nullptr);
  sigaction(SIGTERM, &at_once, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  return number;
}

namespace {

constexpr int kFirstSocket = 3;  // SD_LISTEN_FDS_START

std::string TakeVariable(const char* name) {
  const char* value = std::getenv(name);
  const std::string text = value == nullptr ? "" : value;
  ::unsetenv(name);
  return text;
}

std::optional<int> ToCount(const std::string& text) {
  const auto value = ParseNumber<int>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

}  // namespace

Result<ServiceManager> ServiceManager::FromEnvironment() {
  ServiceManager manager;
  manager.notify_address = TakeVariable("NOTIFY_SOCKET");
  const std::string pid = TakeVariable("LISTEN_PID"), count = TakeVariable("LISTEN_FDS");
  TakeVariable("LISTEN_FDNAMES");
  // The sockets are for another process; its variables were inherited.
  if (pid != std::to_string(::getpid())) return manager;
  const auto sockets = ToCount(count);
  if (!sockets) return Fail(ErrorCode::kInvalidArgument, "LISTEN_FDS must be a number of descriptors");
  for (int i = 0; i < *sockets; ++i) {
    const int fd = kFirstSocket + i;
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags < 0 || ::fcntl(fd, F_SETFD, flags | FD_CLOEXEC) != 0) {
      return Fail(ErrorCode::kInvalidArgument,
                  "LISTEN_FDS names descriptor " + std::to_string(fd) + ", which is not open");
    }
    manager.sockets.emplace_back(fd);
  }
  return manager;
}

void ServiceManager::Tell(std::string_view state) const {
  if (notify_address.empty()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (notify_address.size() >= sizeof address.sun_path) return LogWarning("NOTIFY_SOCKET is too long");
  std::memcpy(address.sun_path, notify_address.data(), notify_address.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // an abstract socket name, not a file
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + notify_address.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                          reinterpret_cast<const sockaddr*>(&address), size) < 0) {
    LogWarning("the service manager cannot be told", {{"state", state}, {"error", std::strerror(errno)}});
  }
}

}  // namespace reprise
