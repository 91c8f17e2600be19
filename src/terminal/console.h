#pragma once

#include <string_view>

#include "base/system.h"
#include "reprise/error.h"

namespace reprise {

// The exit statuses of all commands.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// Writes to stdout. FlushOutput reports failures of all writes at once.
void Print(std::string_view text);
// True if all printed text has been written (a full disk behind a redirection is a failure of the command).
bool FlushOutput();

// Prints "reprise: MESSAGE (DETAIL)" to stderr, on one line whatever they hold, because the terminal is this person's
// log. Returns kExitFailure.
int Complain(const Error& error);
// The same for flags, environment or configuration. Returns kExitUsage for kInvalidArgument (the person must change
// them), else kExitFailure.
int ComplainOfUse(const Error& error);
// The same for invalid arguments. Returns kExitUsage.
int Misused(std::string_view message);
// The same for a problem that does not stop the command.
void Warn(std::string_view message);

// Ctrl-C as an event to wait for. Construct it before any thread starts, because it blocks SIGINT. One at a time.
class Interrupts {
 public:
  Interrupts();

  // Readable when Take would return true.
  int descriptor() const { return signals_.get(); }
  // Whether Ctrl-C was pressed since the last call.
  bool Take();

 private:
  UniqueFd signals_;
};

}  // namespace reprise
