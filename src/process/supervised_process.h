#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "reprise/result.h"

namespace reprise {

struct Command {
  std::vector<std::string> argv;         // argv[0] is the absolute path of the program
  std::vector<std::string> environment;  // "NAME=value"; all of it, nothing is inherited
  std::string directory;
  // What its stdin holds (Streams::kOutput): a file in memory that has no name on any disk. Empty: /dev/null.
  std::string input = {};
};

// A command with its supervisor (process/supervisor.h): it runs in a session of its own, with no descriptor but 0, 1
// and 2, and nothing it starts outlives it, the server or this object. Movable, not thread-safe.
class SupervisedProcess {
 public:
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
  void Kill() { control_.Reset(); }

  // Takes what reports there are. True: the supervisor has gone, and with it everything else.
  bool ReadReports();
  // REQUIRES: ReadReports was true.
  void Reap();

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
