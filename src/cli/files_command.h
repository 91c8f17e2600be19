#pragma once

#include "base/environment.h"
#include "cli/command_line.h"

namespace reprise {

// `reprise files sweep`, `push` and `pull` (store/upkeep).
int RunFilesSweep(const CommandLine& line, const Environment& environment);
int RunFilesPush(const CommandLine& line, const Environment& environment);
int RunFilesPull(const CommandLine& line, const Environment& environment);

}  // namespace reprise
