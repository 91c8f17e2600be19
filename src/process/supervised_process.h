#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/system.h"
#include "reprise/result.h"

namespace reprise {

struct Command {
  std::vector<std::string> argv;         // argv[0] is the absolute path of the program
  std::vector<std::string> environment;  // "NAME=value"; all of it, nothing is inherited
  std::string directory;
  // What its stdin holds (Streams::kOutput): a file in memory that has no name on any disk. Empty: /dev/null.
  std::string input = {};
  // What a further descriptor holds, likewise (kExtraDescriptor). Empty: there is none.
  std::string extra_input = {};
  std::uint64_t memory_bytes = 0;  // what each of its processes may fill; 0: no limit
  std::uint64_t file_bytes = 0;    // of each file that it writes; 0: no limit
  bool confined = false;           // it gets no keys of the session, and is the first to go when memory runs out
};

// A command with its supervisor: it runs in a session of its own, with no descriptor but 0, 1
// and 2, and nothing it starts outlives it, the server or this object. Movable, not thread-safe.
//
// From the first one on this process is the reaper of what a killed supervisor leaves behind (PR_SET_CHILD_SUBREAPER):
// children of sessions other than this process's own that are no supervisors. They are ended.
class SupervisedProcess {
 public:
  // A child that this process has started in another way, which may be in a session of its own: it is left alone.
  static void Spare(pid_t child);

  enum class Streams {
    kOutput,    // stdin is Command::input, stdout and stderr come together in output()
    kSeparate,  // input() is written to, output() is stdout, errors() is stderr
  };
  // kUnavailable if the system is out of descriptors or processes. A program that cannot be executed shows later, in
  // start_error().
  static Result<SupervisedProcess> Start(const Command& command, Streams streams = Streams::kOutput);

  // What the caller polls; reading and writing never block. Writing raises SIGPIPE once the command has closed its
  // stdin.
  int input() const { return input_.get(); }
  int output() const { return output_.get(); }
  int errors() const { return errors_.get(); }
  int report() const { return report_.get(); }  // readable: call ReadReports
  void CloseInput() { input_.Reset(); }

  void Terminate();  // SIGTERM to the command's process group
  void Kill();
  // If Kill() has no effect: ends the supervisor itself, which a command without a sandbox can stop again and again.
  // Reap then ends what it has left behind.
  void KillSupervisor();

  // Takes what reports there are. True: the supervisor has gone, and with it everything else.
  bool ReadReports();
  // REQUIRES: ReadReports was true. False: somebody has killed the supervisor, and not all that it has left behind
  // could be ended within a few seconds.
  bool Reap();
  // Instead of Reap, when ReadReports does not become true: it is reaped when it ends.
  void Abandon();

  // Why the command could not be started.
  std::optional<Error> start_error() const;
  // Of waitpid; none if somebody killed the supervisor itself.
  std::optional<int> status() const { return status_; }

 private:
  explicit SupervisedProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  UniqueFd input_, output_, errors_, control_, report_;
  std::optional<int> start_error_, status_;
};

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
