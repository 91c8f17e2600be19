#include "cli/grammar_docs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "app/settings.h"
#include "cli/command_line.h"
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

// The flag or argument of a command; null if there is none of that name.
Json OptionOf(std::string_view command, const std::string& name) {
  for (const Json& described : DescribeCommands()) {
    if (described["name"] != command) continue;
    for (const Json& flag : described["flags"]) {
      if (std::find(flag["names"].begin(), flag["names"].end(), name) != flag["names"].end()) return flag;
    }
    for (const Json& argument : described["arguments"]) {
      if (argument["value"] == name) return argument;
    }
  }
  return nullptr;
}

std::string HelpOf(std::string_view command) {
  for (const Json& described : DescribeCommands()) {
    if (described["name"] == command) return described["help"];
  }
  return {};
}

}  // namespace

TEST_CASE("DescribeCommands: what the grammar says", "[grammar-docs]") {
  CHECK(DescribeCommands().front()["name"] == "");
  CHECK(HelpOf("keys init") == "Create the key file if there is none");
  CHECK(HelpOf("keys fly").empty());

  CHECK(OptionOf("serve", "--plain")["value"] == "");
  CHECK(OptionOf("serve", "--log-level")["choices"] == Json{"debug", "info", "warning", "error"});
  CHECK(OptionOf("serve", "--log-level")["variable"] == "REPRISE_LOG_LEVEL");
  CHECK(OptionOf("replay", "--mode")["value"] == "MODE:{recorded,events}");
  CHECK(OptionOf("replay", "--mode")["variable"] == "");
  CHECK(OptionOf("completion", "SHELL:{bash,zsh,fish}")["names"].empty());
  CHECK(OptionOf("export", "-o")["names"] == Json{"-o", "--output"});
  CHECK(OptionOf("cat", "WHAT")["required"] == true);
  CHECK(OptionOf("cat", "WHAT")["repeated"] == false);
  CHECK(OptionOf("verify", "WHAT")["repeated"] == true);
}

TEST_CASE("DescribeCommands: what is hidden is left out", "[grammar-docs]") {
  CHECK(OptionOf("completion", "SHELL:{bash,zsh,fish}")["required"] == false);
  CHECK(OptionOf("completion", "--chats") == nullptr);
  CHECK(OptionOf("man", "--grammar") == nullptr);
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
  int examples = 0;
  std::set<std::string_view> lines;
  const Json commands = DescribeCommands();
  for (const Json& command : commands) {
    const std::string name = command["name"];
    CHECK(command["examples"].size() == ExamplesOf(name).size());
    for (const CommandExample& example : ExamplesOf(name)) {
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
        CHECK(name == "help");
      } else {
        // Without a command it is the client.
        CHECK(std::get<CommandLine>(parsed).command == (name.empty() ? "chat" : name));
      }
    }
    INFO(name);
    const bool has_commands = std::any_of(commands.begin(), commands.end(), [&](const Json& below) {
      return below["name"].get<std::string>().starts_with(name + " ");
    });
    CHECK((name.empty() || has_commands || !ExamplesOf(name).empty()));
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

}  // namespace reprise::test::grammar_docs_test
