#pragma once

#include <optional>
#include <string>

#include "base/unique_fd.h"

namespace reprise {

// Lines from standard input, and Ctrl-C as an event. Construct before any thread starts: SIGINT is blocked from then
// on.
class TerminalInput {
 public:
  TerminalInput();
  TerminalInput(const TerminalInput&) = delete;  // the signal mask is the process's
  TerminalInput& operator=(const TerminalInput&) = delete;

  enum class Came { kLine, kEnd, kInterrupt };
  // Blocks for the next line, which is without its line end.
  Came ReadLine(std::string& line);
  // Blocks until `descriptor` is readable. True: Ctrl-C was pressed instead, or as well.
  bool WaitForOrInterrupt(int descriptor);

 private:
  bool TakeInterrupt();

  UniqueFd interrupts_;
  std::string read_;  // behind the last line
  bool ended_ = false;
};

}  // namespace reprise
