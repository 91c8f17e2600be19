#include "cli/command_line.h"

#include "support/test.h"
#include "terminal/console.h"

namespace reprise::test::command_line_test {
namespace {

std::variant<CommandLine, EarlyExit> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "reprise");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}
CommandLine Understood(std::vector<const char*> arguments) {
  return std::get<CommandLine>(Parse(std::move(arguments)));
}
EarlyExit Ended(std::vector<const char*> arguments) { return std::get<EarlyExit>(Parse(std::move(arguments))); }

}  // namespace

TEST_CASE("ParseCommandLine: flags become settings", "[command-line]") {
  const CommandLine line = Understood(
      {"serve", "--port", "0", "--data-dir=x", "--plain", "--config", "c.json", "--disconnect-grace-s", "1"});
  CHECK(line.command == "serve");
  CHECK(line.flags ==
        Flags{{"port", "0"}, {"data-dir", "x"}, {"plain", "true"}, {"config", "c.json"}, {"disconnect-grace-s", "1"}});
}

TEST_CASE("ParseCommandLine: commands and their arguments", "[command-line]") {
  CHECK(Understood({"ls"}).argument.empty());
  CHECK(Understood({"ls", "c1", "--json", "--all"}).argument == "c1");
  CHECK(Understood({"ls", "c1", "--json", "--all"}).json);
  CHECK(Understood({"ls", "c1", "--json", "--all"}).all_branches);
  CHECK(Understood({"cat", "c1/int_001"}).argument == "c1/int_001");
  CHECK(Understood({"keys", "list", "--json"}).command == "keys list");
  CHECK(Understood({"keys", "init", "--key-file", "k"}).command == "keys init");
  const CommandLine rotate = Understood({"keys", "rotate", "--rewrap", "--remove-old", "--data-dir", "d"});
  CHECK(rotate.command == "keys rotate");
  CHECK(rotate.keys.rewrap);
  CHECK(rotate.keys.remove_old);
  CHECK(Understood({"keys", "rewrap", "--remove-old"}).keys.remove_old);
  CHECK(Understood({"keys", "passphrase", "--remove"}).keys.remove_passphrase);
  CHECK(Understood({"keys", "passphrase", "--new-passphrase-file", "f"}).keys.new_passphrase_file == "f");
}

TEST_CASE("ParseCommandLine: a command may stand behind flags, and is no message then", "[command-line]") {
  for (const auto& line : std::vector<std::vector<const char*>>{
           {"--model", "a/b", "ls", "c1"}, {"--model", "a/b", "ls", "c1", "--"}, {"--model=a/b", "ls", "--", "c1"}}) {
    CHECK(Understood(line).command == "ls");
    CHECK(Understood(line).argument == "c1");
    CHECK(Understood(line).flags == Flags{{"model", "a/b"}});
  }
  CHECK(Ended({"--model", "a/b", "keys"}).text.find("keys needs one of its commands") != std::string::npos);
  CHECK(Understood({"--model", "a/b", "--", "ls"}).opening == "ls");
  CHECK(Understood({"chat", "ls"}).argument == "ls");
  CHECK(Ended({"--model", "a/b", "lss"}).text.find("did you mean ls?") != std::string::npos);
}

TEST_CASE("ParseCommandLine: what is no number is no amount, and an empty text is no value", "[command-line]") {
  for (const char* const amount : {"nan", "-nan", "inf", "0", "-1", "1e10", "x", ""}) {
    INFO(amount);
    for (const auto& command :
         {std::vector<const char*>{"test", "s", "--live", "1"}, {"what-if", "c"}, {"bisect", "c"}}) {
      auto line = command;
      line.insert(line.end(), {"--max-cost", amount});
      CHECK(Ended(line).status == kExitUsage);
    }
  }
  CHECK(Ended({"test", "s", "--live", "1", "--max-cost", "0"}).text.find("0.000000001") != std::string::npos);
  CHECK(Ended({"replay", "c", "--speed", "nan"}).status == kExitUsage);
  CHECK(Understood({"test", "s", "--live", "1", "--max-cost", "1e-9"}).live.max_cost == 1e-9);
  for (const auto& line : std::vector<std::vector<const char*>>{{"test", ""},
                                                                {"test", "--record", "", "s"},
                                                                {"test", "s", "--junit", ""},
                                                                {"test", "s", "--prompt-dir", ""},
                                                                {"what-if", "c", "--say", ""},
                                                                {"--chat", "", "-p", "hello"},
                                                                {"--url", "", "-p", "hello"},
                                                                {"--model=", "-p", "hello"},
                                                                {"chat", ""},
                                                                {"rm", ""},
                                                                {"restore", ""},
                                                                {"fork", "c", "--as", ""},
                                                                {"export", "c", "-o", ""},
                                                                {"serve", "--data-dir", ""},
                                                                {"what-if", "c", "--rules="},
                                                                {"what-if", "c", "--model", ""},
                                                                {"bisect", "c", "--check", ""}}) {
    INFO(line[1]);
    CHECK(Ended(line).status == kExitUsage);
  }
  CHECK(Ended({"--chat", "", "-p", "hello"}).text == "reprise: --chat: it is empty (reprise --help says more)\n");
  CHECK(Understood({"what-if", "c@2", "--result", ""}).what_if.changes.result == "");  // a tool may say nothing
}

TEST_CASE("ParseCommandLine: chats in and out", "[command-line]") {
  CHECK(Understood({"verify"}).arguments.empty());
  CHECK(Understood({"verify", "a", "b/int_001"}).arguments == std::vector<std::string>{"a", "b/int_001"});
  CHECK(Understood({"export"}).format == "json");
  const CommandLine line = Understood({"export", "a", "--format", "jsonl", "--branches", "all", "-o", "x", "--force"});
  CHECK(line.format == "jsonl");
  CHECK(line.branches == "all");
  CHECK(line.output == "x");
  CHECK(line.force);
  CHECK(Understood({"import", "p", "--as", "n"}).as == "n");
  CHECK(Understood({"search", "t"}).limit == 100);
  CHECK(Understood({"search", "t", "--limit", "0", "--chat", "c"}).limit == 0);
  CHECK(Understood({"encrypt", "--all", "--in-place"}).in_place);
}

TEST_CASE("ParseCommandLine: without a command it is a conversation", "[command-line]") {
  const CommandLine alone = Understood({});
  CHECK(alone.command == "chat");
  CHECK(alone.bare);
  const CommandLine asking = Understood({"-p", "why?", "--chat", "c", "--json", "--model", "offline"});
  CHECK(asking.command == "chat");
  CHECK(asking.prompt == "why?");
  CHECK(asking.argument == "c");
  CHECK(asking.json);
  CHECK(asking.flags.at("model") == "offline");
}

TEST_CASE("ParseCommandLine: wrong usage is status 2 and one line", "[command-line]") {
  for (const auto& arguments : std::vector<std::vector<const char*>>{{"fly"},
                                                                     {"serve", "--prot", "1"},
                                                                     {"serve", "extra"},
                                                                     {"cat"},
                                                                     {"keys"},
                                                                     {"keys", "rotate", "--remove-old"},
                                                                     {"keys", "passphrase", "--passphrase", "x"},
                                                                     {"serve", "--port"},
                                                                     {"help", "fly"},
                                                                     {"search"},
                                                                     {"export", "--format", "xml"},
                                                                     {"export", "--branches", "some"},
                                                                     {"search", "x", "--limit", "-1"},
                                                                     {"verify", "--output", "x"}}) {
    const EarlyExit exit = Ended(arguments);
    INFO(exit.text);
    CHECK(exit.status == 2);
    CHECK(exit.text.substr(0, 9) == "reprise: ");
    CHECK(exit.text.find('\n') == exit.text.size() - 1);
  }
}

TEST_CASE("ParseCommandLine: wrong usage is named in words", "[command-line]") {
  CHECK(Ended({"-p", "a", "-p", "b"}).text == "reprise: --prompt can be given only once (reprise --help says more)\n");
  CHECK(Ended({"--", "hello", "--data-dir", "d"}).text ==
        "reprise: \"--data-dir\" is one argument too many (reprise --help says more; flags go before --)\n");
  CHECK(Ended({"-p", "hello", "rm", "c"}).text ==
        "reprise: --prompt does not go with the command rm (reprise --help says more)\n");
  CHECK(Ended({"--continue", "ls"}).text.starts_with("reprise: --continue does not go with the command ls"));
  CHECK(Ended({"--chat", "c", "keys", "list"}).text.starts_with("reprise: --chat does not go with the command keys l"));
  CHECK(Understood({"--data-dir", "d", "rm", "c"}).flags.at("data-dir") == "d");
  CHECK(Ended({"cat", "--nothing"}).text.starts_with("reprise: there is no flag --nothing"));
  CHECK(Ended({"fork", "--sa", "x"}).text.starts_with("reprise: there is no flag --sa"));
  CHECK(Ended({"--nothing", "--", "hello"}).text.starts_with("reprise: there is no flag --nothing"));
}

TEST_CASE("ParseCommandLine: help and version are status 0", "[command-line]") {
  CHECK(Ended({"--version"}).status == 0);
  CHECK(Ended({"--version"}).text == "reprise 0.1.0\n");
  for (const char* command : {"serve", "ls", "cat", "show", "replay", "verify", "export", "import", "search", "encrypt",
                              "decrypt", "keys", "doctor"}) {
    INFO(command);
    CHECK(Ended({command, "--help"}).status == 0);
    CHECK(Ended({command, "--help"}).text.find(std::string("reprise ") + command) != std::string::npos);
    CHECK(Ended({"help", command}).text == Ended({command, "--help"}).text);
  }
  CHECK(Ended({"--help"}).text.find("doctor") != std::string::npos);
  CHECK(Ended({"help"}).text == Ended({"--help"}).text);
  CHECK(Ended({"keys", "list", "--help"}).text.find("reprise keys list") != std::string::npos);
}

}  // namespace reprise::test::command_line_test
