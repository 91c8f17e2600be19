#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/system.h"
#include "cli/command_line.h"
#include "cli/commands.h"

namespace reprise {

// `what-if --keep`: the run is made by the server of the data folder, which alone may store it as a branch. `what`:
// CHAT/INTERACTION.
Exited KeepWhatIf(const CommandLine& line, const Environment& environment, const std::string& what,
                  std::optional<std::uint64_t> at);

}  // namespace reprise
