#include "cli/grammar_docs.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <utility>

#include "app/settings.h"

namespace reprise {
namespace {

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// Whether `word` stands in `text` as a word of its own: placeholders are capitals in help texts too.
bool HasWord(std::string_view text, std::string_view word) {
  const auto is_letter = [&](std::size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
  };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
  }
  return false;
}

OptionDoc DescribeOption(const CLI::Option& option) {
  OptionDoc doc;
  for (const std::string& name : option.get_snames()) doc.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) doc.names.push_back("--" + name);
  doc.help = option.get_description();
  doc.required = option.get_required();
  doc.repeated = option.get_expected_max() > 1;
  // CLI11 writes what it checks behind the value's name: "MODE:{recorded,events}".
  const std::string type = option.get_items_expected_max() == 0 ? "" : option.get_type_name();
  doc.value = doc.names.empty() ? option.get_name(true) : type.substr(0, type.find(':'));
  if (const std::size_t open = type.find(":{"); open != std::string::npos) {
    doc.choices = SplitAtCommas(std::string_view(type).substr(open + 2, type.find('}', open) - open - 2));
  }
  if (!option.get_lnames().empty() && doc.choices.empty()) {
    const Setting* setting = FindSetting(option.get_lnames().front());
    if (setting != nullptr) doc.choices = ChoicesOf(*setting);
  }
  const std::string says = doc.value == "WHAT" ? doc.help : doc.value;
  doc.is_file = HasWord(says, "FILE") || HasWord(says, "PATH");
  doc.is_folder = HasWord(says, "DIR") || HasWord(says, "FOLDER");
  doc.is_chat = HasWord(says, "CHAT");
  doc.is_command = HasWord(says, "COMMAND");
  return doc;
}

void AddOptions(const CLI::App& app, CommandDoc& doc) {
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->get_group().empty()) continue;  // hidden
    OptionDoc described = DescribeOption(*option);
    (described.names.empty() ? doc.arguments : doc.flags).push_back(std::move(described));
  }
}

void Describe(const CLI::App& app, CommandDoc& doc) {
  AddOptions(app, doc);
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (below->get_name().empty()) {  // a group of options
      AddOptions(*below, doc);
    } else if (!below->get_group().empty()) {
      CommandDoc& command = doc.commands.emplace_back();
      command.name = (doc.name.empty() ? "" : doc.name + " ") + below->get_name();
      command.help = below->get_description();
      Describe(*below, command);
    }
  }
}

}  // namespace

CommandDoc DescribeGrammar(const CLI::App& app) {
  CommandDoc root;
  root.help = app.get_description();
  Describe(app, root);
  return root;
}

std::vector<const CommandDoc*> AllCommands(const CommandDoc& root) {
  std::vector<const CommandDoc*> all = {&root};
  for (const CommandDoc& command : root.commands) {
    const auto below = AllCommands(command);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

const CommandDoc* FindCommand(const CommandDoc& root, std::string_view name) {
  for (const CommandDoc* command : AllCommands(root)) {
    if (command->name == name) return command;
  }
  return nullptr;
}

}  // namespace reprise
