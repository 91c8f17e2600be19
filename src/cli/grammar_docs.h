#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace CLI {
class App;
}

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

// The commands of `app`, parents before children, for scripts/package.d/docs/make, which makes man pages and
// completions of them: [{"name": "keys init", "help", "flags": [{"names": ["-o", "--output"], "value": "FILE", "help",
// "required", "repeated", "choices", "variable"}], "arguments" (likewise), "examples": [{"line", "what"}]}]. `app`
// itself has the empty name. Hidden options are left out.
Json DescribeGrammar(const CLI::App& app);

// The same for the grammar of ParseCommandLine.
Json DescribeCommands();

}  // namespace reprise
