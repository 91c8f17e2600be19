#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <memory>

#include "cli/did_you_mean.h"
#include "cli/embedded.h"
#include "cli/exit_status.h"
#include "cli/settings.h"
#include "cli/terminal_text.h"

namespace reprise {
namespace {

class Grammar {
 public:
  Grammar() {
    app_.require_subcommand(0, 1);
    app_.set_version_flag("--version", "reprise " + std::string(Version()));
    app_.footer(
        "Every flag of `reprise serve --help` but --config and --new-key is also an environment variable (--data-dir:\n"
        "REPRISE_DATA_DIR) and a key of the configuration file.\n"
        "Exit status: 0 ok, 1 failed, not found or damaged, 2 wrong usage.");

    CLI::App* serve = Add("serve", "Run the server until SIGINT or SIGTERM");
    AddAllSettings(*serve);
    serve->add_flag("--new-key", out_.new_key,
                    "go on, with a new key if there is none, where chats are sealed with keys that are gone");

    CLI::App* chat = Add("chat", "Talk with the agent of a running server, line by line");
    chat->add_option("CHAT", out_.argument, "a chat's id (default: a new one)");
    chat->add_option("--url", out_.url, "where the server listens")
        ->type_name("URL")
        ->default_str("http://127.0.0.1:8000");
    AddSettings(*chat, {"token-file"});
    AddJson(*chat);

    CLI::App* ls = Add("ls", "List the chats, or the interactions of one chat");
    ls->add_option("CHAT", out_.argument, "a chat's id");
    AddReading(*ls);
    AddAll(*ls);

    CLI::App* cat = Add("cat", "Print the plaintext JSON of a chat, an interaction or a file");
    cat->add_option("WHAT", out_.argument, "FILE, or CHAT, or CHAT/INTERACTION")->required();
    AddReading(*cat);

    CLI::App* show = Add("show", "Print a chat or an interaction for reading");
    show->add_option("WHAT", out_.argument, "FILE, or CHAT, or CHAT/INTERACTION")->required();
    AddReading(*show);
    AddAll(*show);

    CLI::App* replay = Add("replay", "Run recorded interactions again on their record, and compare every event");
    replay->add_option("WHAT", out_.argument, "FILE, or CHAT, or CHAT/INTERACTION")->required();
    replay->add_option("--mode", out_.mode, "recorded (exit status 1: something differs), or events (print them)")
        ->type_name("MODE")
        ->default_str("recorded")
        ->check(CLI::IsMember({"recorded", "events"}));
    replay
        ->add_option("--speed", out_.speed,
                     "with --mode events: with the pauses they had, so many times as fast (default 0: at once)")
        ->type_name("FACTOR")
        ->check(CLI::Range(0.0, 1e6));
    AddReading(*replay);

    AddFolderCommands();

    CLI::App* keys = Add("keys", "The keys that chats are sealed with");
    keys->require_subcommand(1);
    for (const auto& [name, help] : {std::pair("init", "Create the key file if there is none"),
                                     std::pair("list", "List the keys' ids; never their secret part")}) {
      CLI::App* command = keys->add_subcommand(name, help);
      AddKeyFile(*command);
    }
    AddRotate(*keys);
    AddPassphrase(*keys);

    CLI::App* doctor = Add("doctor", "Check that everything the server needs is in order");
    AddAllSettings(*doctor);
    AddJson(*doctor);

    CLI::App* trust =
        Add("trust", "Allow a configuration, and the programs it names in the workspace, as they are now");
    trust->add_option("FILE", out_.arguments, "configurations (.json), or other files (default: reprise.json)");
    CLI::Option* list = trust->add_flag("--list", out_.list, "print what is allowed, and whether it has changed");
    trust->add_option("--revoke", out_.revoke, "this file is no longer allowed")->type_name("FILE")->excludes(list);
    AddSettings(*trust, {"workspace", "prompt-dir"});
    AddJson(*trust);

    CLI::App* help = Add("help", "Print this help, or a command's");
    help->add_option("COMMAND", help_about_);
  }

  std::variant<CommandLine, EarlyExit> Parse(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return EarlyExit{kExitOk, HelpOf(Deepest(&app_))};
    } catch (const CLI::CallForVersion&) {
      return EarlyExit{kExitOk, "reprise " + std::string(Version()) + "\n"};
    } catch (const CLI::ExtrasError&) {
      return NotExpected();
    } catch (const CLI::ParseError& error) {
      return Usage(error.what());
    }
    const CLI::App* chosen = Deepest(&app_);
    if (chosen == &app_) return Usage("a command is needed");
    if (chosen->get_name() == "help") return Help();
    if (out_.format.empty()) out_.format = "json";
    if (out_.url.empty()) out_.url = "http://127.0.0.1:8000";
    if (chosen->get_name() == "search" && chosen->count("--limit") == 0) out_.limit = 100;
    out_.command = (chosen->get_parent() == &app_ ? "" : chosen->get_parent()->get_name() + " ") + chosen->get_name();
    return out_;
  }

 private:
  CLI::App* Add(const std::string& name, const std::string& help) { return app_.add_subcommand(name, help); }

  // Checking, taking out, bringing in and converting what a data folder holds.
  void AddFolderCommands() {
    CLI::App* verify = Add("verify", "Check every file of the data folder, also while a server uses it");
    verify->add_option("WHAT", out_.arguments, "FILE, CHAT, or CHAT/INTERACTION (default: all chats)");
    AddReading(*verify);

    CLI::App* audit = Add("audit", "Print what became of every tool call, also while a server uses the folder");
    AddReading(*audit);

    CLI::App* exporting = Add("export", "Take chats out, as JSON, Markdown or JSONL");
    exporting->add_option("WHAT", out_.arguments, "CHAT, or CHAT/INTERACTION (default: all chats)");
    exporting->add_option("--format", out_.format, "json (documents that import reads), markdown, or jsonl")
        ->type_name("FORMAT")
        ->default_str("json")
        ->check(CLI::IsMember({"json", "markdown", "jsonl"}));
    exporting->add_option("--branches", out_.branches, "head or all (default: all for json, else head)")
        ->type_name("WHICH")
        ->check(CLI::IsMember({"head", "all"}));
    AddOutput(*exporting, "file or folder to write to (default: standard output)");
    AddReading(*exporting);

    CLI::App* import = Add("import", "Bring in plain chats, as new chats");
    import->add_option("PATH", out_.arguments, "a folder of chats, a chat's folder, or a JSON document of one")
        ->required();
    import->add_option("--as", out_.as, "the chat's name here (default: its own, or that with -2, -3, ...)")
        ->type_name("CHAT");
    AddReading(*import);

    CLI::App* search = Add("search", "Find text in messages, answers, tool calls and results");
    search->add_option("TEXT", out_.argument, "what to look for")->required();
    search->add_option("--chat", out_.chat, "in this chat only")->type_name("CHAT");
    search->add_flag("--regex", out_.regex, "TEXT is a regular expression (RE2 syntax)");
    search->add_flag("--case-sensitive", out_.case_sensitive, "upper and lower case differ");
    search->add_option("--limit", out_.limit, "at most so many places (default 100; 0: all)")
        ->type_name("N")
        ->default_str("100")
        ->check(CLI::Range(0, 1'000'000'000));
    AddReading(*search);

    for (const auto& [name, help] : {std::pair("encrypt", "Seal plain chats, or one plain file"),
                                     std::pair("decrypt", "Write plain copies of sealed chats, or of one file")}) {
      CLI::App* command = Add(name, help);
      command->add_option("WHAT", out_.arguments, "FILE, or CHAT");
      command->add_flag("--all", out_.all_chats, "every chat of the data folder");
      command->add_flag("--in-place", out_.in_place,
                        "with --all: convert the data folder itself; what it held is kept beside it");
      AddOutput(*command, "data folder to write chats to, or file (default for a file: standard output)");
      AddSettings(*command, {"data-dir", "key-file", "passphrase-file"});
      AddConfig(*command);
      AddJson(*command);
    }
  }
  void AddOutput(CLI::App& command, const std::string& help) {
    command.add_option("-o,--output", out_.output, help)->type_name("PATH");
    command.add_flag("--force", out_.force, "replace files that are there");
  }

  void AddSetting(CLI::App& command, const Setting& setting) {
    const std::string name(setting.name);
    if (setting.placeholder.empty()) {
      command.add_flag_callback(
          "--" + name, [this, name] { out_.flags[name] = "true"; }, std::string(setting.help));
      return;
    }
    const auto store = [this, name](const std::string& text) { out_.flags[name] = text; };
    command.add_option_function<std::string>("--" + name, store, std::string(setting.help))
        ->type_name(std::string(setting.placeholder));
  }
  void AddSettings(CLI::App& command, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) AddSetting(command, *FindSetting(name));
  }
  void AddAllSettings(CLI::App& command) {
    for (const Setting& setting : Settings()) AddSetting(command, setting);
    AddConfig(command);
  }
  void AddConfig(CLI::App& command) {
    command
        .add_option_function<std::string>(
            "--config", [this](const std::string& text) { out_.flags["config"] = text; },
            "configuration file (default ./reprise.json if trusted, else $XDG_CONFIG_HOME/reprise/reprise.json)")
        ->type_name("FILE");
  }
  void AddJson(CLI::App& command) { command.add_flag("--json", out_.json, "print JSON"); }
  void AddAll(CLI::App& command) { command.add_flag("--all", out_.all_branches, "superseded interactions too"); }
  void AddReading(CLI::App& command) {
    AddSettings(command, {"data-dir", "plain", "key-file", "passphrase-file"});
    command.get_option("--plain")->description("the chats are stored unencrypted");
    AddConfig(command);
    AddJson(command);
  }

  void AddKeyFile(CLI::App& command) {
    AddSettings(command, {"key-file", "passphrase-file"});
    AddConfig(command);
    AddJson(command);
  }
  void AddRotate(CLI::App& keys) {
    CLI::App* rotate = keys.add_subcommand("rotate", "Make a new key, which seals from now on; the old ones stay");
    CLI::Option* also = rotate->add_flag("--rewrap", out_.keys.rewrap, "wrap the files to it as `keys rewrap` does");
    CLI::App* rewrap = keys.add_subcommand(
        "rewrap", "Wrap every file of a data folder to the current key; go on where that was interrupted");
    for (CLI::App* command : {rotate, rewrap}) {
      CLI::Option* remove = command->add_flag("--remove-old", out_.keys.remove_old,
                                              "then remove the old keys, if every file was wrapped anew; what else was "
                                              "sealed by them (other folders, backups) can never be read again");
      if (command == rotate) remove->needs(also);
      AddSettings(*command, {"data-dir"});
      AddKeyFile(*command);
    }
  }
  void AddPassphrase(CLI::App& keys) {
    CLI::App* passphrase = keys.add_subcommand("passphrase", "Set, change or remove the key file's passphrase");
    CLI::Option* remove = passphrase->add_flag("--remove", out_.keys.remove_passphrase, "keep the keys in the clear");
    passphrase
        ->add_option("--new-passphrase-file", out_.keys.new_passphrase_file,
                     "file (mode 0600) with the new passphrase (default: asks)")
        ->type_name("FILE")
        ->excludes(remove);
    AddKeyFile(*passphrase);
  }

  static CLI::App* Deepest(CLI::App* app) {
    const auto below = app->get_subcommands();  // those that the line named
    return below.empty() ? app : Deepest(below.front());
  }
  static std::string HelpOf(CLI::App* app) {
    const std::string before = app->get_parent() == nullptr ? ""
                               : app->get_parent()->get_parent() == nullptr
                                   ? "reprise"
                                   : "reprise " + app->get_parent()->get_name();
    return app->help(before);
  }
  EarlyExit Help() {
    // A grammar that has parsed "help" prints the help of that command; a fresh one prints its own.
    if (help_about_.empty()) {
      Grammar fresh;
      return {kExitOk, HelpOf(&fresh.app_)};
    }
    const auto found = app_.get_subcommands([this](const CLI::App* app) { return app->get_name() == help_about_; });
    return found.empty() ? Usage("there is no command " + help_about_) : EarlyExit{kExitOk, HelpOf(found.front())};
  }
  // The first argument that nothing takes: a command or a flag that there is not, or one too many.
  EarlyExit NotExpected() {
    CLI::App* const command = Deepest(&app_);
    const std::vector<std::string> rest = app_.remaining(/*recurse=*/true);
    const std::string first = rest.empty() ? "" : rest.front();
    std::vector<std::string> known;
    if (first.starts_with("-")) {
      const std::string flag = first.substr(0, first.find('='));
      for (const CLI::Option* option : command->get_options()) {
        for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      }
      return Usage("there is no flag " + flag + DidYouMean(flag, known));
    }
    for (const CLI::App* below : command->get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(below->get_name());
    }
    if (known.empty()) return Usage("\"" + first + "\" is one argument too many");
    return Usage("there is no command " + first + DidYouMean(first, known));
  }
  static EarlyExit Usage(std::string_view problem) {
    return {kExitUsage, "reprise: " + VisibleLine(problem) + " (reprise --help says more)\n"};
  }

  CLI::App app_{"A local LLM agent server: streaming, approvals, edits, and every interaction a sealed file.",
                "reprise"};
  CommandLine out_;
  std::string help_about_;
};

}  // namespace

std::variant<CommandLine, EarlyExit> ParseCommandLine(int argc, const char* const* argv) {
  return Grammar().Parse(argc, argv);
}

}  // namespace reprise
