#pragma once

#include <cstddef>

namespace reprise {

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
