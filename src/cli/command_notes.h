#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace reprise {

// Examples of commands, for --help and man pages, beside the grammar of the command line. Commands are named as in
// CommandLine::command; reprise itself has the empty name.
struct CommandExample {
  std::string_view command;
  std::string_view line;  // as typed
  std::string_view what;  // its effect
};

std::span<const CommandExample> AllExamples();
std::vector<CommandExample> ExamplesOf(std::string_view command);

}  // namespace reprise
