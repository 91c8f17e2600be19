#pragma once

#include <cstddef>
#include <cstdint>

namespace reprise {

// Limits for one command of the agent; 0: no limit.
struct ResourceLimits {
  // Of each process: used memory (RLIMIT_DATA), not reserved memory, which is far more for Node, Go and Java.
  std::uint64_t memory_mb = 4096;
  std::uint64_t processes = 1024;     // of the command in total, with threads; only in the sandbox
  std::uint64_t file_size_mb = 4096;  // of each written file
  std::uint64_t tmp_mb = 1024;        // of each folder in memory (/tmp, home); only in the sandbox
  bool operator==(const ResourceLimits&) const = default;
};

// Of commands and background jobs.
struct OutputLimits {
  std::size_t told_kb = 16;    // KiB of the beginning, and as much of the end, that a model gets
  std::uint64_t kept_mb = 64;  // MiB of longer outputs that a chat keeps together; 0: nothing is kept
};

// Background jobs that run at once; 0: none can be started.
struct JobLimits {
  std::size_t per_chat = 8;
  std::size_t per_server = 32;
};

}  // namespace reprise
