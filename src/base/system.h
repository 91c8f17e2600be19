#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "reprise/error.h"

namespace reprise {

// Looks up an environment variable; nullopt if it is not set or empty (shells unset a variable for one command by
// emptying it). Passed as a parameter so that tests need not edit the process's environment.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

Environment ProcessEnvironment();

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

// Maps an errno, for all rooms: no space is kStorageFull; no descriptors, memory or threads is kUnavailable (reason
// "too_many_files" or "overloaded"), retryable; a missing file is kNotFound, an existing one kConflict; anything else
// is kIo with `io_message`. `what` (a call, a path) goes to the log.
Error SystemError(int error, const std::string& what, std::string io_message = "the disk could not be read or written");

// Makes the calling thread a background thread, which does not preempt the thread that wakes it (SCHED_BATCH,
// sched(7)). Has no effect where the system forbids it.
void BecomeBackgroundThread();

// Fills `size` bytes from the operating system (getrandom(2)). Unguessable, so fit for keys. Ends the process if there
// is no randomness, because guessable keys are worse than no server. Thread-safe.
void FillRandom(void* data, std::size_t size);

// `bytes` random bytes of FillRandom as lower-case hex.
std::string RandomHex(std::size_t bytes);

// Whether `text` has the form of RandomHex(bytes).
bool IsRandomHex(std::string_view text, std::size_t bytes);

// A number in [0, 1); not for secrets. Thread-safe.
double RandomFraction();

// Memory held back so that running work can finish when there is no other left. `new` falls back on it; new work asks
// HasRoom first. One for the process; thread-safe.
class MemoryReserve {
 public:
  // Called once, before there are threads.
  static void Install(std::size_t bytes = 16u << 20);
  // False if the reserve is used up and cannot be refilled, or if less than a few megabytes are free beside it. True
  // may be a few milliseconds old; always true if none was installed.
  static bool HasRoom();
};

// A descriptor that becomes readable, and stays so, when a stop is requested.
class StopEvent {
 public:
  explicit StopEvent(const std::stop_token& stop)
      : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), signal_(stop, Signal{fd_.get()}) {}
  int fd() const { return fd_.get(); }

 private:
  struct Signal {
    int fd;
    void operator()() const {
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
    }
  };

  UniqueFd fd_;
  std::stop_callback<Signal> signal_;  // last, so that it goes before the descriptor
};

}  // namespace reprise
