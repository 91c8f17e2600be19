#pragma once

#include <string_view>

#include "reprise/error.h"
#include "terminal/exit_status.h"

namespace reprise {

// Writes to stdout. Whether all of it arrived is asked once, by FlushOutput.
void Print(std::string_view text);
// True if everything that was printed has been written (a full disk behind a redirection is a failure of the command).
bool FlushOutput();

// "reprise: MESSAGE (DETAIL)" on stderr, on one line whatever they hold: the terminal is this person's log. Returns
// kExitFailure.
int Complain(const Error& error);
// The same of flags, environment or configuration. Returns kExitUsage for kInvalidArgument (they cannot be followed),
// else kExitFailure.
int ComplainOfUse(const Error& error);
// The same for arguments that cannot be followed. Returns kExitUsage.
int Misused(std::string_view message);
// The same for what does not keep the command from doing what it was asked to.
void Warn(std::string_view message);

}  // namespace reprise
