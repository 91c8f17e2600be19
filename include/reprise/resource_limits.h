#pragma once

#include <cstdint>

namespace reprise {

// What a command of the agent may take of the machine; 0: no limit.
struct ResourceLimits {
  // What each of its processes may fill (RLIMIT_DATA), not what it reserves: Node, Go and Java reserve far more.
  std::uint64_t memory_mb = 4096;
  std::uint64_t processes = 1024;     // all of them together, threads count; in the sandbox only
  std::uint64_t file_size_mb = 4096;  // of each file that is written
  std::uint64_t tmp_mb = 1024;        // of each of the folders that are in memory: /tmp, home; in the sandbox only
  bool operator==(const ResourceLimits&) const = default;
};

}  // namespace reprise
