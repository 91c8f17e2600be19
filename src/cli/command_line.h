#pragma once

#include <string>
#include <variant>

#include "cli/options.h"

namespace reprise {

// What the `keys` commands are told beside the settings.
struct KeysRequest {
  bool rewrap = false, remove_old = false;
  bool remove_passphrase = false;
  std::string new_passphrase_file;  // empty: asks
};

// A command line that was understood.
struct CommandLine {
  std::string command;  // "serve", "ls", "cat", "show", "keys init" (list, rotate, rewrap, passphrase), "doctor"
  Flags flags;
  std::string argument;  // what `ls`, `cat` and `show` are about; may be empty for `ls`
  bool json = false;
  bool all_branches = false;
  KeysRequest keys;
};

// Nothing to run: help or the version for stdout, or an error (one line) for stderr.
struct EarlyExit {
  int status;
  std::string text;
};

std::variant<CommandLine, EarlyExit> ParseCommandLine(int argc, const char* const* argv);

}  // namespace reprise
