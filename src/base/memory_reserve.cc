#include "base/memory_reserve.h"

#include <sys/mman.h>

#include <atomic>
#include <new>

namespace reprise {
namespace {

std::atomic<std::size_t> reserve_bytes{0};
std::atomic<void*> reserve{nullptr};  // untouched: it takes no page

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

bool MemoryReserve::HasRoom(std::size_t room) {
  if (reserve_bytes == 0) return true;
  if (reserve == nullptr) {
    void* const again = Take(reserve_bytes);
    if (again == nullptr) return false;
    void* none = nullptr;
    if (!reserve.compare_exchange_strong(none, again)) ::munmap(again, reserve_bytes);
  }
  void* const probe = Take(room);
  if (probe == nullptr) return false;
  ::munmap(probe, room);
  return true;
}

}  // namespace reprise
