#pragma once

#include <unistd.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "reprise/error.h"

namespace reprise {

// Owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

// What an errno is called, everywhere: no space left is kStorageFull; no descriptor, memory or thread left is
// kUnavailable (reason "too_many_files" or "overloaded"), retryable; not there is kNotFound, there already kConflict;
// all else is kIo with `io_message`. `what` (a call, a path) goes to the log.
Error SystemError(int error, const std::string& what, std::string io_message = "the disk could not be read or written");

// Marks the calling thread as one that works in the background: when it is woken it does not take the processor from
// the thread that woke it (SCHED_BATCH, sched(7)). Without effect where the system does not allow it.
void BecomeBackgroundThread();

// Fills `size` bytes from the operating system (getrandom(2)). Unguessable: fit for keys. Ends the process if there is
// no randomness to be had, since what can be guessed is worse than no server. Thread-safe.
void FillRandom(void* data, std::size_t size);

// `bytes` random bytes of FillRandom as lower-case hex.
std::string RandomHex(std::size_t bytes);

// Whether RandomHex(bytes) could have made it.
bool IsRandomHex(std::string_view text, std::size_t bytes);

// A number from 0 up to, but not, 1; not for secrets. Thread-safe.
double RandomFraction();

// Memory that is kept back for when there is none left, so that what runs then can come to its end. `new` takes it by
// itself; what is about to begin asks first. One for the process; thread-safe.
class MemoryReserve {
 public:
  // Called once, before there are threads.
  static void Install(std::size_t bytes = 16u << 20);
  // False if the reserve was needed and cannot be had again, or if there are not some megabytes beside it: now, or a
  // few milliseconds ago. True where none was installed.
  static bool HasRoom();
};

}  // namespace reprise
