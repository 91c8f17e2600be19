#pragma once

#include <string>
#include <variant>

#include "cli/options.h"

namespace reprise {

// A command line that was understood.
struct CommandLine {
  std::string command;  // "serve", "ls", "cat", "show", "keys init", "keys list", "doctor"
  Flags flags;
  std::string argument;  // what `ls`, `cat` and `show` are about; may be empty for `ls`
  bool json = false;
  bool all_branches = false;
};

// Nothing to run: help or the version for stdout, or an error (one line) for stderr.
struct EarlyExit {
  int status;
  std::string text;
};

std::variant<CommandLine, EarlyExit> ParseCommandLine(int argc, const char* const* argv);

}  // namespace reprise
