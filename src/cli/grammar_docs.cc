#include "cli/grammar_docs.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/settings.h"
#include "cli/command_notes.h"

namespace reprise {
namespace {

Json DescribeOption(const CLI::Option& option) {
  Json names = Json::array();
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  const Setting* setting = option.get_lnames().empty() ? nullptr : FindSetting(option.get_lnames().front());
  // The choices follow the type: "MODE:{recorded,events}".
  const std::string type = option.get_items_expected_max() == 0 ? "" : option.get_type_name();
  const std::string value =
      names.empty() ? option.get_name(true) + type.substr(std::min(type.find(':'), type.size())) : type;
  return {{"names", names},
          {"value", value},
          {"help", option.get_description()},
          {"required", option.get_required()},
          {"repeated", option.get_expected_max() > 1},
          {"choices", setting == nullptr ? Json::array() : Json(ChoicesOf(*setting))},
          {"variable", setting == nullptr ? "" : EnvironmentName(*setting)}};
}

void AddOptions(const CLI::App& app, Json& flags, Json& arguments) {
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->get_group().empty()) continue;  // hidden
    (option->nonpositional() ? flags : arguments).push_back(DescribeOption(*option));
  }
}

void Describe(const CLI::App& app, const std::string& name, Json& commands) {
  Json flags = Json::array(), arguments = Json::array(), examples = Json::array(), below = Json::array();
  AddOptions(app, flags, arguments);
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (each->get_name().empty()) {  // a group of options
      AddOptions(*each, flags, arguments);
    } else if (!each->get_group().empty()) {
      Describe(*each, (name.empty() ? "" : name + " ") + each->get_name(), below);
    }
  }
  for (const CommandExample& example : ExamplesOf(name)) {
    examples.push_back({{"line", example.line}, {"what", example.what}});
  }
  commands.push_back({{"name", name},
                      {"help", app.get_description()},
                      {"flags", std::move(flags)},
                      {"arguments", std::move(arguments)},
                      {"examples", std::move(examples)}});
  for (Json& command : below) commands.push_back(std::move(command));
}

}  // namespace

Json DescribeGrammar(const CLI::App& app) {
  Json commands = Json::array();
  Describe(app, "", commands);
  return commands;
}

}  // namespace reprise
