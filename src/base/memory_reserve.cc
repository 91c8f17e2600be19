#include "base/memory_reserve.h"

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <new>

namespace reprise {
namespace {

constexpr std::size_t kRoom = 8u << 20;  // beside the reserve

std::atomic<std::size_t> reserve_bytes{0};
std::atomic<void*> reserve{nullptr};  // untouched: it takes no page

// To look costs two calls of the kernel, in which all threads are in each other's way: what was seen holds for a
// moment.
constexpr std::chrono::milliseconds kMoment{5};
std::atomic<std::chrono::steady_clock::rep> seen_at{0};

// Past malloc, which would learn from such sizes which ones to keep. Null: there is not so much.
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
