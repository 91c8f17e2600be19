#include "base/system.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <new>
#include <random>
#include <system_error>
#include <vector>

#include "base/text.h"

namespace reprise {

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
}

Error SystemError(int error, const std::string& what, std::string io_message) {
  std::string detail = what + ": " + std::generic_category().message(error);
  const auto unavailable = [&](const char* reason, const char* message) {
    return Error{.code = ErrorCode::kUnavailable,
                 .reason = reason,
                 .message = message,
                 .detail = std::move(detail),
                 .retryable = true};
  };
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return MakeError(ErrorCode::kNotFound, "no such file or directory", std::move(detail));
    case EEXIST:
    case ENOTEMPTY:
      return MakeError(ErrorCode::kConflict, "the file exists already", std::move(detail));
    case ENOSPC:
    case EDQUOT:
      return MakeError(ErrorCode::kStorageFull, "no space left to store this; make room on the disk, and try again",
                       std::move(detail));
    case EFBIG:
      return MakeError(ErrorCode::kStorageFull, "the file would be larger than this process may write (ulimit -f)",
                       std::move(detail));
    case EACCES:
    case EPERM:
      return MakeError(ErrorCode::kIo, "there is no permission to do this", std::move(detail));
    case EMFILE:
    case ENFILE:
      return unavailable("too_many_files", "too many files and connections are open; try again");
    case ENOMEM:
      return unavailable("overloaded", "the system has no memory left for this; try again");
    case EAGAIN:
      return unavailable("overloaded", "the system has nothing left for this; try again");
    default:
      return MakeError(ErrorCode::kIo, std::move(io_message), std::move(detail));
  }
}

void BecomeBackgroundThread() {
  const sched_param no_priority{};
  static_cast<void>(::sched_setscheduler(0, SCHED_BATCH, &no_priority));
}

void FillRandom(void* data, std::size_t size) {
  for (std::size_t have = 0; have < size;) {
    const ssize_t n = ::getrandom(static_cast<unsigned char*>(data) + have, size - have, 0);
    if (n < 0 && errno != EINTR) std::abort();
    if (n > 0) have += static_cast<std::size_t>(n);
  }
}

std::string RandomHex(std::size_t bytes) {
  std::vector<unsigned char> raw(bytes);
  FillRandom(raw.data(), raw.size());
  return EncodeHex(raw);
}

bool IsRandomHex(std::string_view text, std::size_t bytes) {
  return text.size() == 2 * bytes && text.find_first_not_of(kHexDigits) == text.npos;
}

double RandomFraction() {
  static thread_local std::minstd_rand engine{std::random_device{}()};
  return std::uniform_real_distribution<double>(0.0, 1.0)(engine);
}

namespace {

constexpr std::size_t kRoom = 8u << 20;  // on top of the reserve

std::atomic<std::size_t> reserve_bytes{0};
std::atomic<void*> reserve{nullptr};  // untouched, so it takes no page

// A check costs two system calls that contend for a lock of the process, so its result is reused for a moment.
constexpr std::chrono::milliseconds kMoment{5};
std::atomic<std::chrono::steady_clock::rep> seen_at{0};

// Bypasses malloc, which would adapt its thresholds to such sizes. Null if there is not enough memory.
void* Take(std::size_t bytes) {
  void* const taken = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return taken == MAP_FAILED ? nullptr : taken;
}

void GiveReserve() {
  void* const kept = reserve.exchange(nullptr);
  if (kept == nullptr) throw std::bad_alloc();
  ::munmap(kept, reserve_bytes);
}

}  // namespace

void MemoryReserve::Install(std::size_t bytes) {
  reserve_bytes = bytes;
  reserve = Take(bytes);
  std::set_new_handler(GiveReserve);
}

bool MemoryReserve::HasRoom() {
  if (reserve_bytes == 0) return true;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  if (reserve != nullptr && now < std::chrono::steady_clock::duration(seen_at) + kMoment) return true;
  if (reserve == nullptr) {
    void* const again = Take(reserve_bytes);
    if (again == nullptr) return false;
    void* none = nullptr;
    if (!reserve.compare_exchange_strong(none, again)) ::munmap(again, reserve_bytes);
  }
  void* const probe = Take(kRoom);
  if (probe == nullptr) return false;
  ::munmap(probe, kRoom);
  seen_at = now.count();
  return true;
}

}  // namespace reprise
