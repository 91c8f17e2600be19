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
  // What a further descriptor holds, likewise (kExtraDescriptor of process/supervisor.h). Empty: there is none.
  std::string extra_input = {};
  std::uint64_t memory_bytes = 0;  // what each of its processes may fill; 0: no limit
  std::uint64_t file_bytes = 0;    // of each file that it writes; 0: no limit
  bool confined = false;           // it gets no keys of the session, and is the first to go when memory runs out
};

// A command with its supervisor (process/supervisor.h): it runs in a session of its own, with no descriptor but 0, 1
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

}  // namespace reprise
