// Preloaded (LD_PRELOAD) by scripts/shake: makes each thread of a program pause at random before it takes a lock, after
// it releases one and before it reads, writes or polls. This causes orders of events within minutes that a scheduler
// would cause once in a million runs.
//   REPRISE_SHAKE_ONE_IN  the number of calls per pause (60)
//   REPRISE_SHAKE_US      the longest pause, in microseconds (5000)
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

std::uint64_t Setting(const char* name, std::uint64_t otherwise) {
  const char* const value = std::getenv(name);
  const std::uint64_t number = value == nullptr ? 0 : std::strtoull(value, nullptr, 10);
  return number == 0 ? otherwise : number;
}

// The C library's function that the one of this file replaces. The address is looked up once per call site, not in a
// static with a guard, because that would take a lock.
template <typename Function>
Function Real(Function& known, const char* name) {
  if (known == nullptr) known = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
  return known;
}

// Shared by all threads. Several threads may set them at first, but to the same values.
std::uint64_t one_in = 0, longest_us = 0;
thread_local std::uint64_t dice = 0;

void MayPause() {
  if (one_in == 0) {
    longest_us = Setting("REPRISE_SHAKE_US", 5000);
    one_in = Setting("REPRISE_SHAKE_ONE_IN", 60);
  }
  if (dice == 0) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    dice = static_cast<std::uint64_t>(now.tv_nsec) * 2654435761U;
    dice ^= static_cast<std::uint64_t>(::syscall(SYS_gettid)) << 32;
    dice |= 1;
  }
  // xorshift64: Marsaglia, Xorshift RNGs, 2003.
  dice ^= dice << 13;
  dice ^= dice >> 7;
  dice ^= dice << 17;
  if (dice % one_in != 0) return;
  const int error = errno;
  const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>((dice >> 20) % longest_us) * 1000};
  ::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, nullptr);  // the function is a cancellation point
  errno = error;
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static decltype(&pthread_mutex_lock) real = nullptr;
  MayPause();
  return Real(real, "pthread_mutex_lock")(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  static decltype(&pthread_mutex_unlock) real = nullptr;
  const int result = Real(real, "pthread_mutex_unlock")(mutex);
  MayPause();
  return result;
}

ssize_t read(int file, void* to, size_t bytes) {
  static decltype(&read) real = nullptr;
  MayPause();
  return Real(real, "read")(file, to, bytes);
}

ssize_t write(int file, const void* from, size_t bytes) {
  static decltype(&write) real = nullptr;
  MayPause();
  return Real(real, "write")(file, from, bytes);
}

ssize_t send(int socket, const void* from, size_t bytes, int flags) {
  static decltype(&send) real = nullptr;
  MayPause();
  return Real(real, "send")(socket, from, bytes, flags);
}

ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  static decltype(&sendmsg) real = nullptr;
  MayPause();
  return Real(real, "sendmsg")(socket, message, flags);
}

int poll(pollfd* files, nfds_t count, int timeout) {
  static decltype(&poll) real = nullptr;
  MayPause();
  return Real(real, "poll")(files, count, timeout);
}
}
