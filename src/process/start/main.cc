// reprise-start DESCRIPTOR FOLDER PROCESSES PROGRAM [ARGUMENT...]
//
// The first program in a command's sandbox (tools/shell/sandbox); it becomes PROGRAM.
//
// - DESCRIPTOR is this program's own, which it closes.
// - FOLDER is "DEVICE:INODE" of the folder in which it must have been started; in any other nothing runs. bubblewrap
//   mounts the workspace by its name, which may lead elsewhere by then: a chat of the folder above can put a link
//   there. What is mounted stays the same. Empty: not checked.
// - PROCESSES is the limit of processes (0: none). It is set in here, where the kernel counts only this sandbox's
//   processes instead of all of the user's.
//
// Each command waits for it, and starting the C library takes longer than all that it does (0.5 ms in a virtual
// machine, which traps each CPUID). So it calls the kernel itself where that is known to work.

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

namespace {

#if defined(__x86_64__)
long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  register long fourth asm("r10") = d;
  register long fifth asm("r8") = e;
  long result = 0;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth)
               : "rcx", "r11", "memory");
  return result;  // -errno if it failed
}
#else
extern "C" long syscall(long, ...);
long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  return syscall(number, a, b, c, d, e);
}
#endif

constexpr int kNotStarted = 126;

long Address(const void* object) { return reinterpret_cast<long>(object); }

[[noreturn]] void Refuse(const char* why) {
  std::size_t size = 0;
  while (why[size] != '\0') ++size;
  Call(SYS_write, 2, Address(why), static_cast<long>(size));
  for (;;) Call(SYS_exit_group, kNotStarted);
}

// Moves `text` behind the number.
std::uint64_t NumberIn(const char*& text) {
  std::uint64_t number = 0;
  for (; *text >= '0' && *text <= '9'; ++text) number = number * 10 + static_cast<std::uint64_t>(*text - '0');
  return number;
}

bool IsWorkingFolder(const char* folder) {
  struct statx found;
  if (Call(SYS_statx, AT_FDCWD, Address("."), 0, STATX_INO, Address(&found)) != 0) {
    Refuse("whether this is still the workspace cannot be found out: this system does not let statx run\n");
  }
  // As in stat(2).
  const std::uint64_t low = (found.stx_dev_major & 0xFFF) << 8 | (found.stx_dev_minor & 0xFF);
  const std::uint64_t device = low | std::uint64_t{found.stx_dev_minor & ~0xFFU} << 12;
  if (NumberIn(folder) != device || *folder++ != ':') return false;
  return NumberIn(folder) == found.stx_ino && *folder == '\0';
}

[[noreturn]] void Start(int argc, char** argv, char** environment) {
  constexpr int kDescriptor = 1, kFolder = 2, kProcesses = 3, kProgram = 4;
  if (argc <= kProgram) Refuse("this program is for sandboxes of Reprise\n");
  const char* descriptor = argv[kDescriptor];
  Call(SYS_close, static_cast<long>(NumberIn(descriptor)));
  if (*argv[kFolder] != '\0' && !IsWorkingFolder(argv[kFolder])) {
    Refuse("the workspace was replaced while the command was being started\n");
  }
  const char* processes = argv[kProcesses];
  if (const std::uint64_t most = NumberIn(processes); most > 0) {
    const std::uint64_t limit[] = {most, most};
    if (Call(SYS_prlimit64, 0, RLIMIT_NPROC, Address(limit), 0) != 0) Refuse("the limit of processes cannot be set\n");
  }
  Call(SYS_execve, Address(argv[kProgram]), Address(argv + kProgram), Address(environment));
  Refuse("the program cannot be executed in the sandbox\n");
}

}  // namespace

#if defined(__x86_64__)
// Linux puts argc, argv and the environment on the stack.
extern "C" [[noreturn, gnu::used]] void StartFrom(long* stack) {
  char** const argv = reinterpret_cast<char**>(stack + 1);
  Start(static_cast<int>(*stack), argv, argv + *stack + 1);
}
asm(".globl _start\n"
    "_start:\n"
    "  xorl %ebp, %ebp\n"
    "  movq %rsp, %rdi\n"
    "  andq $-16, %rsp\n"
    "  call StartFrom\n");
#else
int main(int argc, char** argv, char** environment) { Start(argc, argv, environment); }
#endif
