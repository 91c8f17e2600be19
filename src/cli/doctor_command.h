#pragma once

#include "cli/command_line.h"

namespace reprise {

// `reprise doctor`: checks what the server needs (key file, data folder, workspace, sandbox, curl library, provider,
// port) and says of each whether it is ok. Changes nothing and asks nobody on the network. Returns the exit status: a
// warning is ok, a failure is not.
int RunDoctor(const CommandLine& line, const Environment& environment);

}  // namespace reprise
