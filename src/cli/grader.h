#pragma once

#include <stop_token>
#include <string>

#include "cli/suite_checks.h"
#include "tools/shell/sandbox.h"

namespace reprise {

// Runs the programs of `command` checks. Each runs in a sandbox of its own: it reads the system and the folder of the
// suite, writes to a /tmp that nobody else sees, and has no network. Thread-safe.
//
//   const Grader grader("suite");
//   if (const std::string why = grader.Judge(check, DumpJson(ToJson(turn)), stop); !why.empty()) Warn(why);
class Grader {
 public:
  // `folder`: of the suite, canonical. Programs run there.
  explicit Grader(std::string folder);

  // Gives the turn to the program on stdin. Empty if it exits with 0, else why the check fails, with what it printed.
  std::string Judge(const CommandCheck& check, const std::string& turn, const std::stop_token& stop) const;

 private:
  const std::string folder_;
  const Sandbox sandbox_;
};

}  // namespace reprise
