#include "cli/grammar_docs.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/settings.h"

namespace reprise {
namespace {

constexpr CommandExample kExamples[] = {
    {"", "reprise", "talk with the agent, in a new chat"},
    {"", "reprise \"explain the tests here\"", "talk with the agent, and begin with this message"},
    {"", "reprise --continue", "go on with the newest chat of this folder"},
    {"", "reprise -p \"what is 2+2?\"", "one question; the answer alone is printed"},
    {"serve", "reprise serve", "serve http://127.0.0.1:8000; the tools work in this folder"},
    {"serve", "reprise serve --port 9000 --workspace ~/project", "another port, another folder"},
    {"serve", "reprise serve --model openai/gpt-4o-mini", "with a model whose key is in OPENAI_API_KEY"},
    {"chat", "reprise chat", "begin a new chat"},
    {"chat", "reprise chat notes", "go on with the chat notes"},
    {"acp", "reprise acp", "what an editor starts: docs/acp.md"},
    {"acp", "reprise acp --url http://127.0.0.1:9000", "by a server that runs there"},
    {"mcp-server", "reprise mcp-server", "what a client of MCP starts: docs/mcp-server.md"},
    {"mcp-server", "reprise mcp-server --url http://127.0.0.1:9000", "by a server that runs there"},
    {"ls", "reprise ls", "all chats: those of this folder first, each the latest first"},
    {"ls", "reprise ls notes --all", "every interaction of one chat"},
    {"cat", "reprise cat notes/int_001", "one interaction as plain JSON"},
    {"show", "reprise show notes", "a chat, for reading"},
    {"replay", "reprise replay notes", "does the agent do the same again on its record?"},
    {"replay", "reprise replay notes/int_002 --mode events --speed 1", "watch an interaction again"},
    {"replay", "reprise replay notes --input current", "what has changed in its requests since?"},
    {"test", "reprise test suite", "would the agent of today be told the same, and do the checks hold?"},
    {"test", "reprise test suite --junit report.xml", "the same, for a CI server"},
    {"test", "reprise test --record notes suite", "take a chat into the suite, without secrets"},
    {"test", "reprise test --live 5 --max-cost 2 suite", "does the model do it again, in five runs of each turn?"},
    {"what-if", "reprise what-if notes/int_002@12 --fail timeout", "what would it have done, had that call timed out?"},
    {"what-if", "reprise what-if suite --model a/x --model b/y", "a table of what two models do in these chats"},
    {"bisect", "reprise bisect notes/int_002", "which change of the prompt or the tools makes other calls of it?"},
    {"bisect", "reprise bisect notes/int_002 --check '(?i)otter' --max-cost 2", "the answer must match, at a price"},
    {"verify", "reprise verify", "check every file of every chat"},
    {"verify", "reprise verify notes --json", "one chat, for a program"},
    {"audit", "reprise audit --json", "the log of all tool calls, for a program"},
    {"approvals", "reprise approvals", "what waits for a person, in every chat"},
    {"approvals", "reprise approvals approval_0f8c6e2a4b1d49e7a3c5f6d7e8091a2b no --feedback \"in the other folder\"",
     "reject a call, and say why"},
    {"models", "reprise models", "which models there are"},
    {"models", "reprise models --json", "the same, for a program"},
    {"mv", "reprise mv notes Shopping for Sunday", "another title; the id stays"},
    {"rm", "reprise rm notes", "move a chat to the trash"},
    {"rm", "reprise rm notes drafts", "move two chats there"},
    {"restore", "reprise restore", "what is in the trash"},
    {"restore", "reprise restore notes", "bring a chat back"},
    {"fork", "reprise fork notes --as plan-b", "go on from here in another chat"},
    {"fork", "reprise fork notes/int_003 --as earlier", "from an earlier interaction on"},
    {"export", "reprise export notes --format markdown -o notes.md", "a chat as a text to read or to send"},
    {"export", "reprise export notes --format html --redact -o notes.html", "a page for somebody who has no Reprise"},
    {"export", "reprise export -o backup", "every chat, each as a document that import reads"},
    {"prove", "reprise prove notes/int_003 -o proof.json", "what the agent did in a turn, signed with your key"},
    {"prove", "reprise prove --check proof.json --list", "is it intact, and what does it say?"},
    {"prove", "reprise prove --redact proof.json --without 3-7 -o less.json", "five leaves less; it still verifies"},
    {"import", "reprise import backup", "bring them in again, as new chats"},
    {"search", "reprise search invoice", "where that word was said"},
    {"search", "reprise search --regex \"int(eger)? overflow\" --chat notes", "a pattern, in one chat"},
    {"blame", "reprise blame src/main.cc", "which turn wrote each line, and who allowed it"},
    {"blame", "reprise blame src/main.cc:10-20 --json", "ten lines, for a program"},
    {"rules try", "reprise rules try new-rules.json", "what would these rules have done?"},
    {"rules try", "reprise rules try reprise.json --days 30 notes", "a whole configuration, and one chat"},
    {"rules suggest", "reprise rules suggest", "rules that would have saved questions"},
    {"encrypt", "reprise encrypt --all --in-place", "seal a data folder that was plain"},
    {"decrypt", "reprise decrypt --all -o plain-chats", "a plain copy of all chats"},
    {"keys init", "reprise keys init", "make the key file, if there is none"},
    {"keys list", "reprise keys list", "which keys there are"},
    {"keys rotate", "reprise keys rotate --rewrap", "a new key, and every file wrapped to it"},
    {"keys rewrap", "reprise keys rewrap --remove-old", "finish that, and drop the old keys"},
    {"keys passphrase", "reprise keys passphrase", "set or change the key file's passphrase"},
    {"files sweep", "reprise files sweep --dry-run", "what is in the bucket that no chat needs any more"},
    {"files push", "reprise files push", "the files that were in the folder, to the bucket"},
    {"files pull", "reprise files pull", "all back into the folder"},
    {"mcp add", "reprise mcp add dice -- python3 dice.py", "a server that is a program"},
    {"mcp add", "reprise mcp add tickets --url https://example.org/mcp --oauth", "one on the web, at which you log in"},
    {"mcp list", "reprise mcp list", "which servers there are, and where you are logged in"},
    {"mcp login", "reprise mcp login tickets", "log in, in the browser"},
    {"mcp logout", "reprise mcp logout tickets", "forget that log-in"},
    {"mcp test", "reprise mcp test dice", "does it start, and how many tools has it?"},
    {"db init", "reprise db init", "make the tables, once"},
    {"db migrate", "reprise db migrate", "after an update of reprise"},
    {"db status", "reprise db status", "is the database ready?"},
    {"doctor", "reprise doctor", "is everything in order?"},
    {"trust", "reprise trust", "allow ./reprise.json as it is now"},
    {"trust", "reprise trust --list", "what is allowed, and whether it has changed"},
    {"users token add", "reprise users token add alice --name backup --expires-days 90", "a token for a script"},
    {"users token list", "reprise users token list", "whose they are, and when they were last used"},
    {"users org delete", "reprise users org delete acme --yes", "delete all that the users of acme have"},
    {"users token revoke", "reprise users token revoke token_5f0c1d2e3a4b", "take one back"},
    {"completion", "reprise completion bash > ~/.local/share/bash-completion/completions/reprise", "for bash"},
    {"completion", "reprise completion fish > ~/.config/fish/completions/reprise.fish", "for fish"},
    {"man", "reprise man serve | man -l -", "read the page of a command without installing it"},
    {"help", "reprise help keys", "the options of a command"},
};

}  // namespace

std::span<const CommandExample> AllExamples() { return kExamples; }

std::vector<CommandExample> ExamplesOf(std::string_view command) {
  std::vector<CommandExample> examples;
  for (const CommandExample& example : kExamples) {
    if (example.command == command) examples.push_back(example);
  }
  return examples;
}

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
