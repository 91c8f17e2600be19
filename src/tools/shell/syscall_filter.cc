#include "tools/shell/syscall_filter.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <memory>

#include "base/unique_fd.h"

namespace reprise {
namespace {

// The same number on every architecture; older headers do not know the names.
constexpr int kQuotactlFd = 443, kFchmodat2 = 452;

// Without a reason to be in there.
constexpr auto kForbidden = std::to_array<int>(
    {SCMP_SYS(add_key), SCMP_SYS(request_key), SCMP_SYS(keyctl),
     // namespaces and mounts
     SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(setns), SCMP_SYS(unshare),
     SCMP_SYS(open_tree), SCMP_SYS(move_mount), SCMP_SYS(fsopen), SCMP_SYS(fsconfig), SCMP_SYS(fsmount),
     SCMP_SYS(fspick), SCMP_SYS(mount_setattr), SCMP_SYS(open_by_handle_at),
     // the kernel's insides
     SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd), SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load),
     SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module), SCMP_SYS(syslog), SCMP_SYS(acct),
     SCMP_SYS(quotactl), kQuotactlFd, SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(reboot), SCMP_SYS(vhangup),
     SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(settimeofday), SCMP_SYS(clock_settime), SCMP_SYS(clock_adjtime),
     SCMP_SYS(adjtimex)});

// Whoever calls these tries another call then. The flags of clone3 and the mode of openat2 lie in memory, where a
// filter cannot look; io_uring does calls that no filter sees.
constexpr auto kMissing = std::to_array<int>({SCMP_SYS(clone3), SCMP_SYS(openat2), SCMP_SYS(io_uring_setup),
                                              SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register)});

struct Release {
  void operator()(void* filter) const { ::seccomp_release(filter); }
};
using Filter = std::unique_ptr<void, Release>;

bool Deny(const Filter& filter, int error, int call, std::initializer_list<scmp_arg_cmp> conditions = {}) {
  const int added = ::seccomp_rule_add_array(filter.get(), SCMP_ACT_ERRNO(static_cast<unsigned>(error)), call,
                                             static_cast<unsigned>(conditions.size()), conditions.begin());
  return added == 0 || added == -EDOM;  // EDOM: this architecture has no such call
}

scmp_arg_cmp Bits(unsigned argument, std::uint64_t bits) { return {argument, SCMP_CMP_MASKED_EQ, bits, bits}; }

bool DenySetIdBits(const Filter& filter) {
  bool ok = true;
  for (const std::uint64_t bit : {S_ISUID, S_ISGID}) {
    ok = ok && Deny(filter, EPERM, SCMP_SYS(chmod), {Bits(1, bit)}) &&
         Deny(filter, EPERM, SCMP_SYS(fchmod), {Bits(1, bit)}) &&
         Deny(filter, EPERM, SCMP_SYS(fchmodat), {Bits(2, bit)}) && Deny(filter, EPERM, kFchmodat2, {Bits(2, bit)}) &&
         Deny(filter, EPERM, SCMP_SYS(creat), {Bits(1, bit)}) && Deny(filter, EPERM, SCMP_SYS(mknod), {Bits(1, bit)}) &&
         Deny(filter, EPERM, SCMP_SYS(mknodat), {Bits(2, bit)});
    // The mode counts only for a file that is made; it may be anything otherwise.
    for (const std::uint64_t makes : {O_CREAT, O_TMPFILE & ~O_DIRECTORY}) {
      ok = ok && Deny(filter, EPERM, SCMP_SYS(open), {Bits(1, makes), Bits(2, bit)}) &&
           Deny(filter, EPERM, SCMP_SYS(openat), {Bits(2, makes), Bits(3, bit)});
    }
  }
  return ok;
}

// All but Unix, IP and netlink: what else the kernel speaks, nobody needs here, and much of it is little tried.
bool DenyOtherSockets(const Filter& filter) {
  constexpr std::uint64_t kLow = 0xFFFFFFFF;  // the kernel looks at no more
  if (!Deny(filter, EAFNOSUPPORT, SCMP_SYS(socket), {{0, SCMP_CMP_GT, AF_NETLINK, 0}})) return false;
  if (!Deny(filter, EAFNOSUPPORT, SCMP_SYS(socketpair), {{0, SCMP_CMP_GT, AF_UNIX, 0}})) return false;
  for (std::uint64_t family = AF_UNIX + 1; family < AF_NETLINK; ++family) {
    if (family == AF_INET || family == AF_INET6) continue;
    if (!Deny(filter, EAFNOSUPPORT, SCMP_SYS(socket), {{0, SCMP_CMP_MASKED_EQ, kLow, family}})) return false;
  }
  return true;
}

bool DenyTyping(const Filter& filter) {
  constexpr std::uint64_t kTiocLinux = 0x541C, kLow = 0xFFFFFFFF;
  for (const std::uint64_t request : {std::uint64_t{TIOCSTI}, kTiocLinux}) {
    if (!Deny(filter, EPERM, SCMP_SYS(ioctl), {{1, SCMP_CMP_MASKED_EQ, kLow, request}})) return false;
  }
  return true;
}

std::string Exported(const Filter& filter) {
  const UniqueFd file(::memfd_create("filter", MFD_CLOEXEC));
  if (!file || ::seccomp_export_bpf(filter.get(), file.get()) != 0 || ::lseek(file.get(), 0, SEEK_SET) != 0) return {};
  std::string program;
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = ::read(file.get(), buffer.data(), buffer.size())) > 0;) {
    program.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return program;
}

}  // namespace

std::string SyscallFilter() {
  const Filter filter(::seccomp_init(SCMP_ACT_ALLOW));
  if (!filter) return {};
  // Programs for another architecture (32 bits) are told that there are no such calls.
  bool ok = ::seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)) == 0;
  for (const int call : kForbidden) ok = ok && Deny(filter, EPERM, call);
  for (const int call : kMissing) ok = ok && Deny(filter, ENOSYS, call);
  ok = ok && Deny(filter, EPERM, SCMP_SYS(clone), {Bits(0, CLONE_NEWUSER)});
  ok = ok && DenyOtherSockets(filter) && DenySetIdBits(filter) && DenyTyping(filter);
  return ok ? Exported(filter) : std::string();
}

}  // namespace reprise
