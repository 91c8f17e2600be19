#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace reprise {

// One flag, or one argument that stands by its place.
struct OptionDoc {
  std::vector<std::string> names = {};    // "-o", "--output"; empty: it stands by its place
  std::string value = {};                 // what help shows for its value; empty: a switch
  std::vector<std::string> choices = {};  // the values there are; empty: any
  std::string help = {};
  bool required = false, repeated = false;
  // What its value names; several may hold.
  bool is_file = false, is_folder = false, is_chat = false, is_command = false;
};

// A command of the command line, as man pages and completions tell of it. What the grammar hides is left out.
struct CommandDoc {
  std::string name;  // "serve", "keys init"; empty: reprise itself
  std::string help;
  std::vector<OptionDoc> flags, arguments;
  std::vector<CommandDoc> commands;
};

CommandDoc DescribeGrammar(const CLI::App& app);

// `root` and all commands below it, each in front of its own.
std::vector<const CommandDoc*> AllCommands(const CommandDoc& root);
// Null if there is none of that name.
const CommandDoc* FindCommand(const CommandDoc& root, std::string_view name);

}  // namespace reprise
