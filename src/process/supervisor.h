#pragma once

#include <cstdint>

namespace reprise {

// What the supervisor of one command needs to know; made before the fork, as nothing may be allocated after it.
struct SupervisorPlan {
  const char* directory = nullptr;
  char* const* argv = nullptr;  // argv[0] is the path of the program
  char* const* environment = nullptr;
  int input_fd = -1;  // the command's stdin, stdout and stderr; two may be the same
  int output_fd = -1;
  int errors_fd = -1;
  int extra_fd = -1;               // the command's kExtraDescriptor; -1: none
  int null_fd = -1;                // /dev/null, for the supervisor itself
  int control_fd = -1;             // 'T': SIGTERM to the command's process group; end of file: kill everything
  int report_fd = -1;              // SupervisorReports; its end of file: nothing of the command is left
  std::uint64_t memory_bytes = 0;  // of each of its processes; 0: no limit
  std::uint64_t file_bytes = 0;    // of each file it writes; likewise
  bool confined = false;           // no keys of the session, and the first to go when memory runs out
};

inline constexpr int kExtraDescriptor = 8;

struct SupervisorReport {
  enum Kind : std::int32_t { kStartFailed = 1, kEnded = 2 };
  std::int32_t kind;
  std::int32_t value;  // errno; the status of waitpid
};

inline constexpr char kTerminateRequest = 'T';

// The life of the process between the server and a command: runs in the child of a fork of a process with several
// threads, so everything in here is async-signal-safe. It is the reaper of all the command's descendants, also of those
// that made sessions of their own. When the command ends, when it is told to or when the server dies, it kills all of
// them, waits until none is left and exits. REQUIRES: all signals are blocked.
[[noreturn]] void Supervise(const SupervisorPlan& plan);

}  // namespace reprise
