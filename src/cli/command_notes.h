#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace reprise {

// What the command line's grammar does not know of a command: examples, which its --help and its man page show.
// Commands are named as in CommandLine::command; reprise itself has the empty name.
struct CommandExample {
  std::string_view command;
  std::string_view line;  // as it is typed
  std::string_view what;  // what it does
};

std::span<const CommandExample> AllExamples();
std::vector<CommandExample> ExamplesOf(std::string_view command);

}  // namespace reprise
