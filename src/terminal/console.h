#pragma once

#include <string>
#include <string_view>

#include "base/system.h"
#include "crypto/secret_key.h"
#include "reprise/error.h"
#include "reprise/result.h"

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

// Asks at the terminal that controls this process, whatever stdin and stdout are, and reads one line without echo.
// kUnavailable without a terminal; kCancelled at an end of input or a signal, which then has its usual effect.
Result<SecretText> AskHidden(const std::string& prompt);

}  // namespace reprise
