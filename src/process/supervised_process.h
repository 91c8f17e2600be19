#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/system.h"
#include "reprise/result.h"

namespace reprise {

struct Command {
  std::vector<std::string> argv;         // argv[0] is the absolute path of the program
  std::vector<std::string> environment;  // "NAME=value"; complete, nothing is inherited
  std::string directory;
  // The content of stdin (Streams::kOutput), a nameless file in memory. Empty: /dev/null.
  std::string input = {};
  // The contents of further descriptors, likewise: kExtraDescriptor and those after it.
  std::vector<std::string> extra_inputs = {};
  // Open descriptors of the caller that the command gets after these, until Start returns. At most kMaxExtra together.
  std::vector<int> extra_descriptors = {};
  std::uint64_t memory_bytes = 0;  // limit for each process; 0: no limit
  std::uint64_t file_bytes = 0;    // limit for each file that it writes; 0: no limit
  bool quiet = false;              // its stderr is discarded (Streams::kOutput)
  bool confined = false;           // gets no session keys, and is killed first when memory runs out
};

// A command with its supervisor. It runs in its own session with only the descriptors 0, 1, 2 and the extra ones.
// No process that it starts outlives it, the server or this object. Movable, not thread-safe.
//
// The first Start makes this process the reaper for killed supervisors (PR_SET_CHILD_SUBREAPER). It ends their orphans,
// which are the children outside its own session that are not supervisors.
class SupervisedProcess {
 public:
  // Exempts a child that was started in another way, perhaps in its own session.
  static void Spare(pid_t child);

  enum class Streams {
    kOutput,    // stdin is Command::input; output() carries stdout and, unless quiet, stderr
    kSeparate,  // input() is stdin, output() is stdout, errors() is stderr
  };
  // kUnavailable if the system is out of descriptors or processes. A program that cannot be executed shows later, in
  // start_error().
  static Result<SupervisedProcess> Start(const Command& command, Streams streams = Streams::kOutput);

  pid_t supervisor() const { return pid_; }

  // Descriptors for the caller to poll; reads and writes never block. Writing raises SIGPIPE if the command has closed
  // stdin.
  int input() const { return input_.get(); }
  int output() const { return output_.get(); }
  int errors() const { return errors_.get(); }
  int report() const { return report_.get(); }  // readable: call ReadReports
  void CloseInput() { input_.Reset(); }

  void Terminate();  // SIGTERM to the command's process group
  void Kill();
  // For when Kill() has no effect because a command without a sandbox keeps stopping its supervisor: kills the
  // supervisor. Reap then ends the orphans.
  void KillSupervisor();

  // Reads the pending reports. True if the supervisor is gone, and with it everything else.
  bool ReadReports();
  // REQUIRES: ReadReports was true. False if the supervisor was killed and its orphans could not all be ended within a
  // few seconds.
  bool Reap();
  // Instead of Reap if ReadReports does not become true: the supervisor is reaped when it ends.
  void Abandon();

  // Why the command could not be started.
  std::optional<Error> start_error() const;
  // From waitpid; nullopt if the supervisor itself was killed.
  std::optional<int> status() const { return status_; }

 private:
  explicit SupervisedProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  UniqueFd input_, output_, errors_, control_, report_;
  std::optional<int> start_error_, status_;
};

inline constexpr int kExtraDescriptor = 8;
inline constexpr int kMaxExtra = 6;

// The supervisor's data, made before the fork because nothing may be allocated after it.
struct SupervisorPlan {
  const char* directory = nullptr;
  char* const* argv = nullptr;  // argv[0] is the path of the program
  char* const* environment = nullptr;
  int input_fd = -1;  // the command's stdin, stdout and stderr; two may be the same
  int output_fd = -1;
  int errors_fd = -1;
  // The command gets them from kExtraDescriptor on; -1: none.
  std::array<int, kMaxExtra> extra_fds = {-1, -1, -1, -1, -1, -1};
  int null_fd = -1;                // /dev/null, for the supervisor itself
  int control_fd = -1;             // 'T': SIGTERM to the command's process group; end of file: kill everything
  int report_fd = -1;              // SupervisorReports; end of file: nothing of the command is left
  std::uint64_t memory_bytes = 0;  // limit for each process; 0: no limit
  std::uint64_t file_bytes = 0;    // limit for each file it writes; likewise
  bool confined = false;           // no session keys, and killed first when memory runs out
};

struct SupervisorReport {
  enum Kind : std::int32_t { kStartFailed = 1, kEnded = 2 };
  std::int32_t kind;
  std::int32_t value;  // errno; the status of waitpid
};

inline constexpr char kTerminateRequest = 'T';

// The main function of the process between the server and a command. It runs in a fork of a multithreaded process, so
// everything in it is async-signal-safe. It reaps all descendants of the command, even those with their own sessions.
// When the command ends, on request, or when the server dies, it kills them all, waits until none is left and exits.
// REQUIRES: all signals are blocked.
[[noreturn]] void Supervise(const SupervisorPlan& plan);

}  // namespace reprise
