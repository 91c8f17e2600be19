#pragma once

#include <string_view>

#include "cli/exit_status.h"
#include "reprise/error.h"

namespace reprise {

// Writes to stdout. Whether all of it arrived is asked once, by FlushOutput.
void Print(std::string_view text);
// True if everything that was printed has been written (a full disk behind a redirection is a failure of the command).
bool FlushOutput();

// "reprise: MESSAGE (DETAIL)" on stderr, on one line whatever they hold: the terminal is this person's log. Returns
// kExitFailure.
int Complain(const Error& error);

}  // namespace reprise
