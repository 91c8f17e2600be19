#pragma once

#include "base/environment.h"
#include "cli/command_line.h"

namespace reprise {

// The tables of the database that the configuration names. All return the exit status.

// `reprise db init`: makes them in a database that has none.
int RunDbInit(const CommandLine& line, const Environment& environment);
// `reprise db migrate`: brings them up to date.
int RunDbMigrate(const CommandLine& line, const Environment& environment);
// `reprise db status`: how far they have come. kExitFailure unless a server could use them.
int RunDbStatus(const CommandLine& line, const Environment& environment);

}  // namespace reprise
