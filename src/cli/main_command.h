#pragma once

namespace reprise {

// The whole program: understands the command line, runs the command, returns the exit status.
int RunMain(int argc, const char* const* argv);

}  // namespace reprise
