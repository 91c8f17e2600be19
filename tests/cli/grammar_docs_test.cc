#include "cli/grammar_docs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "app/settings.h"
#include "cli/command_line.h"
#include "cli/command_notes.h"
#include "cli/completion_script.h"
#include "cli/man_page.h"
#include "reprise/options.h"
#include "support/source_directory.h"
#include "support/test.h"

namespace reprise::test::grammar_docs_test {
namespace {

// The words of a line as a shell takes them apart, up to what is for the shell: a redirection, a pipe, a comment.
std::vector<std::string> Words(std::string_view line) {
  std::vector<std::string> words(1);
  char quote = 0;
  for (const char c : line) {
    if (quote == 0 ? c == '"' || c == '\'' : c == quote) {
      quote = quote == 0 ? c : '\0';
    } else if (c == ' ' && quote == 0) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  static const std::set<std::string, std::less<>> kShell{"|", ">", ">>", "<", "2>", "2>&1", "&&", "||", "&", "#"};
  const auto shell =
      std::find_if(words.begin(), words.end(), [](const std::string& word) { return kShell.contains(word); });
  words.erase(shell, words.end());
  std::erase(words, "");
  if (!words.empty() && words.back().ends_with(';')) words.back().pop_back();
  return words;
}

// The lines of a page's blocks of commands; a line that ends with a backslash has the next one too.
std::vector<std::string> CommandsIn(const std::string& page) {
  std::vector<std::string> commands;
  std::istringstream lines(page);
  bool in_commands = false, in_block = false, goes_on = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      in_commands = !in_block && line.starts_with("```sh");
      in_block = !in_block;
    } else if (in_commands) {
      const bool ends_open = line.ends_with('\\');
      if (ends_open) line.pop_back();
      if (std::exchange(goes_on, ends_open)) {
        commands.back() += line;
      } else {
        commands.push_back(line);
      }
    }
  }
  return commands;
}

const OptionDoc& Flag(const CommandDoc& root, std::string_view command, const std::string& name) {
  const CommandDoc* doc = FindCommand(root, command);
  REQUIRE(doc != nullptr);
  for (const OptionDoc& flag : doc->flags) {
    if (std::find(flag.names.begin(), flag.names.end(), name) != flag.names.end()) return flag;
  }
  throw std::runtime_error("no flag " + name);
}

}  // namespace

TEST_CASE("DescribeCommands: what the grammar says", "[grammar-docs]") {
  const CommandDoc root = DescribeCommands();
  CHECK(root.name.empty());
  const CommandDoc* init = FindCommand(root, "keys init");
  REQUIRE(init != nullptr);
  CHECK(init->help == "Create the key file if there is none");
  CHECK(FindCommand(root, "keys fly") == nullptr);

  CHECK(Flag(root, "serve", "--data-dir").is_folder);
  CHECK(Flag(root, "serve", "--key-file").is_file);
  CHECK(Flag(root, "serve", "--plain").value.empty());
  CHECK(Flag(root, "serve", "--log-level").choices == std::vector<std::string>{"debug", "info", "warning", "error"});
  CHECK(Flag(root, "replay", "--mode").choices == std::vector<std::string>{"recorded", "events"});
  CHECK(Flag(root, "replay", "--speed").value == "FACTOR");
  CHECK(Flag(root, "export", "-o").names == std::vector<std::string>{"-o", "--output"});

  const OptionDoc what = FindCommand(root, "cat")->arguments.at(0);
  CHECK(what.value == "WHAT");
  CHECK(what.required);
  CHECK_FALSE(what.repeated);
  CHECK(what.is_chat);
  CHECK(what.is_file);
  CHECK(FindCommand(root, "verify")->arguments.at(0).repeated);
  CHECK_FALSE(FindCommand(root, "export")->arguments.at(0).is_file);
}

TEST_CASE("DescribeCommands: what is hidden is left out", "[grammar-docs]") {
  const CommandDoc root = DescribeCommands();
  for (const CommandDoc* command : AllCommands(root)) {
    for (const OptionDoc& flag : command->flags) {
      CHECK(std::find(flag.names.begin(), flag.names.end(), "--chats") == flag.names.end());
    }
  }
}

TEST_CASE("Settings: the choices are those that are taken", "[grammar-docs]") {
  int with_choices = 0;
  for (const Setting& setting : Settings()) {
    if (setting.flag.name.empty()) continue;
    Options options;
    const auto choices = ChoicesOf(setting);
    for (const std::string& choice : choices) {
      ++with_choices;
      INFO(setting.flag.name << " " << choice);
      CHECK(ApplySetting(setting, options, choice));
    }
    for (const char* wrong : {"no_such_choice", ""}) {
      if (!choices.empty()) CHECK_FALSE(ApplySetting(setting, options, wrong));
    }
  }
  CHECK(with_choices > 0);
}

TEST_CASE("Examples are understood, and belong to a command that there is", "[grammar-docs]") {
  const CommandDoc root = DescribeCommands();
  int examples = 0;
  std::set<std::string_view> lines;
  for (const CommandDoc* command : AllCommands(root)) {
    for (const CommandExample& example : ExamplesOf(command->name)) {
      ++examples;
      INFO(example.line);
      CHECK(lines.insert(example.line).second);
      const auto words = Words(example.line);
      std::vector<const char*> arguments;
      for (const std::string& word : words) arguments.push_back(word.c_str());
      CHECK(words.front() == "reprise");
      const auto parsed = ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
      if (const auto* ended = std::get_if<EarlyExit>(&parsed)) {
        CHECK(ended->status == 0);
        CHECK(command->name == "help");
      } else {
        // Without a command it is the client.
        CHECK(std::get<CommandLine>(parsed).command == (command->name.empty() ? "chat" : command->name));
      }
    }
    INFO(command->name);
    CHECK((command->name.empty() || !command->commands.empty() || !ExamplesOf(command->name).empty()));
  }
  // None is of a command that is gone.
  CHECK(static_cast<std::size_t>(examples) == AllExamples().size());
}

TEST_CASE("Every command in the docs is understood", "[grammar-docs]") {
  int commands = 0;
  std::vector<std::filesystem::path> pages{SourceDirectory() + "/README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(SourceDirectory() + "/docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  for (const auto& page : pages) {
    std::ostringstream text;
    text << std::ifstream(page).rdbuf();
    for (const std::string& line : CommandsIn(text.str())) {
      const auto words = Words(line);
      if (words.empty() || words.front() != "reprise") continue;
      ++commands;
      INFO(page << ": " << line);
      std::vector<const char*> arguments;
      for (const std::string& word : words) arguments.push_back(word.c_str());
      const auto parsed = ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
      const auto* ended = std::get_if<EarlyExit>(&parsed);
      CHECK((ended == nullptr || ended->status == 0));
    }
  }
  CHECK(commands > 50);
}

TEST_CASE("ManPage: names, escapes and sections", "[grammar-docs]") {
  CommandDoc root;
  root.help = "A program.";
  root.commands.emplace_back().name = "fly";
  CommandDoc& fly = root.commands.front().commands.emplace_back();
  fly.name = "fly high";
  fly.help = "Fly at a well-known 'height'";
  fly.flags = {{.names = {"-s", "--speed"}, .value = "N", .choices = {"slow", "fast"}, .help = ".5 is \\slow"}};
  fly.arguments = {{.value = "WHERE", .help = "a place", .required = true, .repeated = true}};
  CHECK(ManPageName(root) == "reprise");
  CHECK(ManPageName(fly) == "reprise-fly-high");
  const std::string page = ManPage(root, fly);
  INFO(page);
  CHECK(page.starts_with(".TH REPRISE\\-FLY\\-HIGH 1 "));
  CHECK(page.find("reprise\\-fly\\-high \\- Fly at a well-known \\(aqheight\\(aq\n") != std::string::npos);
  CHECK(page.find("\\fBreprise fly high\\fP [\\fIOPTION\\fP\\~...] \\fIWHERE\\fP\\~...\n") != std::string::npos);
  // A point at the beginning of a line would be a macro.
  CHECK(page.find(".TP\n\\fB\\-s\\fP, \\fB\\-\\-speed\\fP \\fIN\\fP\n\\&.5 is \\eslow. One of: fast.\n") !=
        std::string::npos);
  CHECK(page.ends_with(".SH SEE ALSO\n.BR reprise (1),\n.BR reprise\\-fly (1)\n"));
}

TEST_CASE("CompletionScript: only shells that are known", "[grammar-docs]") {
  const CommandDoc root = DescribeCommands();
  CHECK_FALSE(CompletionScript("csh", root));
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const auto script = CompletionScript(shell, root);
    REQUIRE(script);
    CHECK(script->find("@GRAMMAR@") == std::string::npos);
    CHECK(script->find("passphrase-file") != std::string::npos);
  }
}

}  // namespace reprise::test::grammar_docs_test
