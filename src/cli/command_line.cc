#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <tuple>

#include "app/embedded.h"
#include "app/settings.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "cli/grammar_docs.h"
#include "engine/moves/formats.h"
#include "terminal/console.h"

namespace reprise {
namespace {

// A number from `least` to `most`; CLI::Range also lets pass what is none.
CLI::Validator NumberFrom(double least, double most, const std::string& words) {
  return CLI::Validator(
      [=](const std::string& text) {
        double number = 0;
        const bool fits = CLI::detail::lexical_cast(text, number) && number >= least && number <= most;
        return fits ? std::string() : "\"" + text + "\" is no number " + words;
      },
      "");
}

// Texts that may be empty, or whose commands say more about it.
constexpr std::array<std::string_view, 6> kMayBeEmpty = {"--prompt",   "PROMPT",  "TITLE",
                                                         "--feedback", "COMMAND", "--result"};

class Grammar {
 public:
  // kServe and kTalk (`reprise` alone and `chat`) are what is started most often. To describe the other commands takes
  // longer than either needs to start.
  enum class Part { kAll, kServe, kTalk };
  explicit Grammar(Part part = Part::kAll) {
    app_.require_subcommand(0, 1);
    app_.set_version_flag("--version", "reprise " + std::string(Version()));
    app_.footer(
        "Every flag of `reprise serve --help` but --new-key is also an environment variable (--data-dir:\n"
        "REPRISE_DATA_DIR) and, but for --config, a key of the configuration file.\n"
        "Exit status: 0 ok, 1 failed, not found or damaged, 2 wrong usage.");

    if (part != Part::kTalk) AddServe();
    if (part == Part::kServe) return;

    app_.add_option("--chat", out_.argument, "a chat's id or title (default: a new chat)")->type_name("CHAT");
    AddTalking(app_);
    app_.add_option("PROMPT", out_.opening, "begin with this message; quote it, and put -- before a single word");
    CLI::App* chat = Add("chat", "Talk with the agent, as `reprise` alone does; from a pipe, line by line");
    chat->add_option("CHAT", out_.argument, "a chat's id or title (default: a new chat)");
    AddTalking(*chat);
    if (part == Part::kTalk) return;

    for (CLI::App* command :
         {Add("acp", "Be an agent for editors that speak the Agent Client Protocol, on standard input and output"),
          Add("mcp-server", "Be a server of the Model Context Protocol, on standard input and output")}) {
      AddTurns(*command);
      AddServer(*command, /*prints=*/false);
    }

    CLI::App* ls = Add("ls", "List the chats, or the interactions of one chat");
    ls->add_option("CHAT", out_.argument, "a chat's id or title, or its beginning");
    AddReading(*ls);
    AddAll(*ls);

    CLI::App* cat = Add("cat", "Print the plaintext JSON of a chat, interaction, request or file");
    cat->add_option("WHAT", out_.argument, "FILE, CHAT, CHAT/INTERACTION or CHAT/INTERACTION/requests/N")->required();
    AddReading(*cat);
    CLI::App* show = Add("show", "Print a chat or an interaction for reading");
    show->add_option("WHAT", out_.argument, "FILE, or CHAT, or CHAT/INTERACTION")->required();
    AddReading(*show);
    AddAll(*show);
    show->add_flag("--requests", out_.requests, "of an interaction: list its requests to models");

    AddReplay();
    AddFolderCommands();
    AddChatCommands();

    CLI::App* keys = Add("keys", "The keys that chats are sealed with");
    keys->require_subcommand(1);
    AddKeyFile(*keys->add_subcommand("init", "Create the key file if there is none"));
    AddKeyFile(*keys->add_subcommand("list", "List the keys' ids; never their secret part"));
    AddRotate(*keys);
    AddPassphrase(*keys);

    AddFiles();
    CLI::App* db = Add("db", "The tables of a database that keeps the chats (store.type postgres)");
    db->require_subcommand(1);
    for (const auto& [name, help] : {std::pair("init", "Make the tables in a database that has none"),
                                     std::pair("migrate", "Bring the tables up to date"),
                                     std::pair("status", "Which schema there is, and which servers use it")}) {
      CLI::App* command = db->add_subcommand(name, help);
      AddConfigAndJson(*command);
    }

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

    AddUsers();
    AddMcp();
    AddDocs();
    CLI::App* help = Add("help", "Print this help, or a command's");
    help->add_option("COMMAND", help_about_);
    AddExamples(app_, "");
  }

  Json Describe() const { return DescribeGrammar(app_); }

  std::variant<CommandLine, EarlyExit> Parse(int argc, const char* const* argv) {
    RefuseEmpty(app_);
    has_separator_ = std::find(argv, argv + argc, std::string_view("--")) != argv + argc;
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return EarlyExit{kExitOk, HelpOf(Deepest(&app_))};
    } catch (const CLI::CallForVersion&) {
      return EarlyExit{kExitOk, "reprise " + std::string(Version()) + "\n"};
    } catch (const CLI::ExtrasError&) {
      return NotExpected();
    } catch (const CLI::RequiredError& error) {
      if (!app_.remaining(/*recurse=*/true).empty()) return NotExpected();
      // For `keys` without a subcommand.
      const CLI::App* const command = Deepest(&app_);
      return NamesBelow(*command).empty() ? Usage(error.what()) : CommandMissing(*command);
    } catch (const CLI::ArgumentMismatch& error) {
      const std::string what = error.what();
      const bool is_repeated = what.find("At Most 1 ") != std::string::npos;
      return Usage(is_repeated ? what.substr(0, what.find(':')) + " can be given only once" : what);
    } catch (const CLI::ParseError& error) {
      return Usage(error.what());
    }
    const CLI::App* chosen = Deepest(&app_);
    for (const char* talking : {"--prompt", "--continue", "--chat"}) {
      const CLI::Option* const given = app_.get_option_no_throw(talking);
      if (chosen != &app_ && given != nullptr && given->count() > 0)
        return Usage(std::string(talking) + " does not go with the command " + NameOf(chosen));
    }
    if (out_.opening && (chosen != &app_ || IsWordAlone())) return NotExpected();
    if (out_.opening && !out_.prompt.empty())
      return Usage("-p takes one message, and a conversation begins without it");
    if (chosen == &app_) {
      out_.bare = true;
      out_.command = "chat";
      return out_;
    }
    if (chosen->get_name() == "help") return Help();
    if (out_.format.empty()) out_.format = "json";
    if (chosen->get_name() == "search" && chosen->count("--limit") == 0) out_.limit = 100;
    out_.command = NameOf(chosen);
    return out_;
  }

 private:
  // An empty value, perhaps of a variable that is not set, would stand for none.
  static void RefuseEmpty(CLI::App& app) {
    const CLI::Validator not_empty([](const std::string& text) { return text.empty() ? "it is empty" : ""; }, "");
    for (CLI::Option* option : app.get_options()) {
      const bool may_be_empty = std::ranges::find(kMayBeEmpty, option->get_name()) != kMayBeEmpty.end();
      if (option->get_items_expected_max() > 0 && !may_be_empty) option->check(not_empty);
    }
    for (CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) RefuseEmpty(*below);
  }
  CLI::App* Add(const std::string& name, const std::string& help) { return app_.add_subcommand(name, help); }

  void AddServe() {
    CLI::App* serve = Add("serve", "Run the server until SIGINT or SIGTERM");
    AddAllSettings(*serve);
    serve->add_flag("--new-key", out_.new_key,
                    "start although keys of stored chats are lost; those chats stay sealed, new ones get a key");
    // For the server that a client starts for itself.
    serve->add_option("--until-released", out_.until_released)->group("");
  }
  // Commands that run recorded interactions again.
  void AddReplay() {
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
        ->check(NumberFrom(0, 1e6, "from 0 to 1,000,000"));
    replay
        ->add_option_function<std::string>(
            "--input", [this](const std::string& input) { out_.current = input == "current"; },
            "recorded, or current: also put each request together with today's prompt, tools and settings, and name "
            "what has changed")
        ->type_name("INPUT")
        ->default_str("recorded")
        ->check(CLI::IsMember({"recorded", "current"}));
    AddSettings(*replay, {"model", "prompt-dir", "workspace"});
    AddReading(*replay);

    AddTest();
    AddWhatIf();
    AddBisect();
  }
  void AddTest() {
    CLI::App* test = Add("test", "Test the agent of today with recorded chats, without a model or with one");
    test->add_option("WHAT", out_.arguments, "a folder of exported chats, one of them, CHAT, or CHAT/INTERACTION")
        ->required();
    CLI::Option* live = test->add_option("--live", out_.live.runs, "ask the model so many times in each turn")
                            ->type_name("N")
                            ->check(CLI::Range(1, 1000));
    test->add_option_function<std::string>(
            "--unrecorded",
            [this](const std::string& what) {
              out_.live.unrecorded = what == "stop"  ? Unrecorded::kStop
                                     : what == "run" ? Unrecorded::kRun
                                                     : Unrecorded::kRefuse;
            },
            "what happens to a call that the record does not answer: refuse it, stop the run, or run it in a copy of "
            "the workspace")
        ->type_name("WHAT")
        ->default_str("refuse")
        ->needs(live)
        ->check(CLI::IsMember({"refuse", "stop", "run"}));
    AddAsking(*test, live);
    test->add_flag("--update", out_.update, "accept what has changed in requests: write it beside the chats");
    test->add_option("--record", out_.record, "write this stored chat into the folder WHAT, without secrets")
        ->type_name("CHAT")
        ->excludes(live);
    test->add_flag("--force", out_.force, "with --record: replace the file that is there");
    for (const auto& [name, file, help] : {std::tuple("--junit", &out_.reports.junit, "also write JUnit XML"),
                                           std::tuple("--markdown", &out_.reports.markdown, "also write Markdown"),
                                           std::tuple("--html", &out_.reports.html, "also write a page")}) {
      test->add_option(name, *file, help)->type_name("FILE");
    }
    AddColour(*test);
    AddSettings(*test, {"model", "prompt-dir", "workspace"});
    AddReading(*test);
  }
  // How a model is asked; only with `needed`, if that is given.
  void AddAsking(CLI::App& command, CLI::Option* needed) {
    CLI::Option* cost =
        command
            .add_option("--max-cost", out_.live.max_cost, "send no further request when the usage has cost that much")
            ->type_name("AMOUNT")
            ->check(NumberFrom(1e-9, 1e9, "from 0.000000001 to 1,000,000,000"));
    CLI::Option* jobs = command.add_option("--jobs", out_.live.jobs, "runs at the same time")
                            ->type_name("N")
                            ->default_str("4")
                            ->check(CLI::Range(1, 64));
    if (needed != nullptr) cost->needs(needed), jobs->needs(needed);
  }
  void AddWhatIf() {
    WhatIfChanges& changes = out_.what_if.changes;
    CLI::App* command = Add("what-if", "Go on from an event of a recorded turn with something different, in a copy");
    command
        ->add_option("WHAT", out_.arguments,
                     "CHAT/INTERACTION@EVENT, CHAT/INTERACTION, CHAT, an exported chat, or a folder of some")
        ->required();
    command->add_option("--model", out_.what_if.models, "ask this model; can be given several times")
        ->type_name("MODEL");
    command->add_option("--say", changes.say, "in place of the turn's message; with @EVENT a further message there")
        ->type_name("TEXT");
    command
        ->add_option_function<std::string>(
            "--answer", [&changes](const std::string& answer) { changes.answer = answer == "yes"; },
            "the other answer to the approval at @EVENT")
        ->type_name("ANSWER")
        ->check(CLI::IsMember({"yes", "no"}));
    CLI::Option* result = command->add_option_function<std::string>(
        "--result", [&changes](const std::string& text) { changes.result = text; },  // may be empty
        "another result of the call at @EVENT");
    result->type_name("TEXT");
    command
        ->add_option_function<std::string>(
            "--fail",
            [&changes](const std::string& how) {
              changes.fail = how == "timeout" ? WhatIfChanges::Failure::kTimeout : WhatIfChanges::Failure::kError;
            },
            "the call at @EVENT fails")
        ->type_name("HOW")
        ->check(CLI::IsMember({"timeout", "error"}))
        ->excludes(result);
    CLI::Option* rules = command->add_option("--rules", out_.what_if.rules_file, "take tools.rules from this file");
    rules->type_name("FILE");
    command
        ->add_option("--allow-effects", changes.allow_effects,
                     "this tool may act outside the copy; can be given several times")
        ->type_name("TOOL");
    CLI::Option* times = command->add_option("--times", out_.what_if.times, "runs of each turn and model");
    times->type_name("N")->default_str("1")->check(CLI::Range(1, 1000));
    AddAsking(*command, nullptr);
    AddColour(*command);
    AddSettings(*command, {"prompt-dir", "workspace"});
    AddReading(*command);
    CLI::Option* keep = command->add_flag("--keep", out_.what_if.keep, "store the run as a branch of the chat");
    for (CLI::Option* of_many :
         {rules, times, command->get_option("--max-cost"), command->get_option("--prompt-dir")}) {
      keep->excludes(of_many);  // a server makes the run that is kept
    }
    command->add_flag("--switch", out_.what_if.switches, "with --keep: the chat goes on from this branch")->needs(keep);
  }
  void AddBisect() {
    CLI::App* bisect = Add("bisect", "Find which difference between a turn's recorded input and today's matters");
    bisect->add_option("WHAT", out_.argument, "CHAT/INTERACTION, or a turn of an exported chat")->required();
    bisect->add_option("--check", out_.check, "a file of checks, or a pattern for the answer (default: the same calls)")
        ->type_name("CHECK");
    AddAsking(*bisect, nullptr);
    AddSettings(*bisect, {"model", "prompt-dir", "workspace"});
    AddReading(*bisect);
  }
  // Commands that check, export, import and convert data folders.
  void AddFolderCommands() {
    CLI::App* verify = Add("verify", "Check every file of the data folder, also while a server uses it");
    verify->add_option("WHAT", out_.arguments, "FILE, CHAT, or CHAT/INTERACTION (default: all chats)");
    AddReading(*verify);

    CLI::App* audit = Add("audit", "Print what became of every tool call, also while a server uses the folder");
    AddReading(*audit);

    CLI::App* exporting = Add("export", "Take chats out, to read, to share, or for other programs");
    exporting->add_option("WHAT", out_.arguments, "CHAT, or CHAT/INTERACTION (default: all chats)");
    exporting
        ->add_option("--format", out_.format,
                     "json (documents that import reads), markdown, html, jsonl, atif or "
                     "claude-code")
        ->type_name("FORMAT")
        ->default_str("json")
        ->check(CLI::IsMember({"json", "markdown", "html", "jsonl", "atif", "claude-code"}));
    exporting->add_option("--branches", out_.branches, "head or all (default: all for json and claude-code, else head)")
        ->type_name("WHICH")
        ->check(CLI::IsMember({"head", "all"}));
    exporting->add_flag("--redact", out_.redact, "take out secrets of the configuration, and what looks like one");
    exporting->add_option("--redact-word", out_.redact_words, "take out this text; can be given several times")
        ->type_name("TEXT");
    exporting->add_flag("--dry-run", out_.dry_run, "write nothing: say what --redact would take out");
    AddOutput(*exporting, "file or folder to write to (default: standard output)");
    AddReading(*exporting);

    AddProve();
    CLI::App* import = Add("import", "Bring in plain chats, and sessions of other tools, as new chats");
    import->add_option("PATH", out_.arguments, "chats or sessions: files, or folders of them (default: of --from)");
    import->add_option("--from", out_.move.from, "only sessions of this tool (default: as the content says)")
        ->type_name("TOOL")
        ->check(CLI::IsMember(MoveFormatNames()));
    import->add_option("--folder", out_.move.folder, "only sessions of agents that worked there")->type_name("DIR");
    import->add_option("--since", out_.move.since, "only sessions that changed since: 90d, 12h or a date")
        ->type_name("WHEN");
    import->add_flag("--list", out_.list, "print what would be imported");
    import->add_option("--as", out_.as, "the chat's name here (default: its own, or that with -2, -3, ...)")
        ->type_name("CHAT");
    AddWriting(*import);

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

    CLI::App* blame = Add("blame", "Print which turn wrote each line of a file, and who allowed that");
    blame->add_option("FILE", out_.argument, "a file; FILE:12 or FILE:3-7 for some of its lines")->required();
    CLI::Option* notes = blame->add_flag("--notes", out_.notes, "print text for `git notes add -F -`");
    CLI::Option* format = blame->add_option("--format", out_.format, "agent-trace (version 0.1.0), for other programs")
                              ->type_name("FORMAT")
                              ->check(CLI::IsMember({"agent-trace"}))
                              ->excludes(notes);
    AddReading(*blame);
    blame->get_option("--json")->excludes(notes)->excludes(format);

    AddRules();

    for (const auto& [name, help] : {std::pair("encrypt", "Seal plain chats, or one plain file"),
                                     std::pair("decrypt", "Write plain copies of sealed chats, or of one file")}) {
      CLI::App* command = Add(name, help);
      command->add_option("WHAT", out_.arguments, "FILE, or CHAT");
      command->add_flag("--all", out_.all_chats, "every chat of the data folder");
      command->add_flag("--in-place", out_.in_place,
                        "with --all: convert the data folder itself; what it held is kept beside it");
      AddOutput(*command, "data folder to write chats to, or file (default for a file: standard output)");
      AddSettings(*command, {"data-dir", "key-file", "passphrase-file"});
      AddConfigAndJson(*command);
    }
  }
  void AddProve() {
    CLI::App* prove = Add("prove", "Prove to others what an agent did, and who allowed it");
    prove->add_option("WHAT", out_.argument, "CHAT, or CHAT/INTERACTION");
    const auto file = [prove](const char* name, std::string& path, const char* help) {
      return prove->add_option(name, path, help)->type_name("FILE");
    };
    ProofRequest& proof = out_.proof;
    prove->add_option("--without", proof.without, "leave out: a number, 3-7, a kind, a turn or a call")
        ->type_name("LEAVES");
    file("--redact", proof.redact, "leave out more of this bundle; needs no key");
    CLI::Option* check = file("--check", proof.check, "check this bundle");
    prove->add_option("--signed-by", proof.signed_by, "the key, or its fingerprint, that must have signed")
        ->type_name("KEY")
        ->needs(check);
    prove->add_flag("--list", out_.list, "print the leaves")->needs(check);
    CLI::Option* stamp = file("--stamp", proof.stamp, "ask for, or add, a time stamp of this bundle");
    file("--timestamp-request", proof.timestamp_request, "write a query of RFC 3161 here");
    file("--timestamp", proof.timestamp, "the authority's reply to that query")->needs(stamp);
    file("--timestamp-ca", proof.timestamp_ca, "certificates (PEM) of authorities: the stamp must be by one");
    prove->add_flag("--key", proof.key, "print your public key and its fingerprint");
    AddOutput(*prove, "file to write to (default: standard output)");
    AddReading(*prove);
  }
  void AddRules() {
    CLI::App* rules = Add("rules", "What rules for tool calls would have done in recorded chats");
    rules->require_subcommand(1);
    CLI::App* trial = rules->add_subcommand("try", "Try new rules on the calls on record");
    trial->add_option("FILE", out_.argument, "an array of rules, or a configuration")->required();
    trial->add_flag("--allow", out_.rules.allow, "exit status 0 even if calls would run that were held back");
    CLI::App* suggest = rules->add_subcommand("suggest", "Print rules for what people have always approved");
    for (CLI::App* command : {trial, suggest}) {
      command->add_option("CHAT", out_.arguments, "chats' ids or titles, or their beginnings (default: all chats)");
      command->add_option("--days", out_.rules.days, "turns of the last N days")
          ->type_name("N")
          ->default_str("90")
          ->check(CLI::Range(1, 36'500));
      AddSettings(*command, {"workspace"});
      AddReading(*command);
    }
  }
  // Options of commands that talk with the agent of the data folder's server, and start one if none runs.
  void AddTalking(CLI::App& command) {
    command.add_option("-p,--prompt", out_.prompt, "send this one message, and print the answer alone")
        ->type_name("TEXT");
    command.add_flag("--continue", out_.newest_chat, "go on with the newest chat of this folder");
    command.add_flag("--rm", out_.removes_chat, "with -p: move the new chat to the trash when the turn has ended");
    AddColour(command);
    AddTurns(command);
    AddServer(command);
    command.get_option("--json")->description("print each event as a line of JSON");
  }
  // Commands that arrange chats, and others that need the running server or work without one.
  void AddChatCommands() {
    CLI::App* rm = Add("rm", "Move chats to the trash; a run of theirs is cancelled first");
    rm->add_option("CHAT", out_.arguments, "chats' ids or titles, or their beginnings")->required();
    AddWriting(*rm);

    CLI::App* restore = Add("restore", "List the trash, or bring a chat of it back under its name");
    restore->add_option("CHAT", out_.argument,
                        "a chat's id or title (deleted several times: the last one), or an entry");
    AddWriting(*restore);

    CLI::App* mv = Add("mv", "Give a chat another title; its id stays, for its files are sealed to it");
    mv->add_option("CHAT", out_.argument, "a chat's id or title, or its beginning")->required();
    mv->add_option("TITLE", out_.arguments, "the new title")->required();
    AddWriting(*mv);

    CLI::App* fork = Add("fork", "Copy a branch of a chat into a new chat");
    fork->add_option("WHAT", out_.argument, "CHAT, or CHAT/INTERACTION, at which the branch ends (default: its head)")
        ->required();
    fork->add_option("--as", out_.as, "the new chat's id (default: a random one)")->type_name("CHAT");
    AddWriting(*fork);

    CLI::App* approvals = Add("approvals", "List what waits for a person in every chat, or answer an approval");
    approvals->add_option("APPROVAL", out_.argument, "the id of the approval to answer");
    approvals->add_option("ANSWER", out_.answer, "yes, no, or outside: yes, and this one call runs outside the sandbox")
        ->check(CLI::IsMember({"yes", "no", "outside"}));
    approvals->add_option("--feedback", out_.feedback, "for the model to read")->type_name("TEXT");
    approvals->add_option("--scope", out_.scope, "for equal calls too: once (default), chat, or always")
        ->type_name("SCOPE")
        ->check(CLI::IsMember({"once", "chat", "always"}));
    AddSettings(*approvals, {"data-dir"});
    AddServer(*approvals);

    CLI::App* models = Add("models", "List the models of the running server, or of the configuration");
    AddSettings(*models, {"data-dir", "model"});
    AddServer(*models);
  }
  // Options of commands that change the data folder, through its server if one runs.
  void AddWriting(CLI::App& command) {
    AddSettings(command, {"data-dir", "plain", "key-file", "passphrase-file"});
    command.get_option("--plain")->description("the chats are stored unencrypted");
    AddServer(command);
  }
  void AddServer(CLI::App& command, bool prints = true) {
    command.add_option("--url", out_.url, "the server (default: REPRISE_URL, else the one that uses the data folder)")
        ->type_name("URL");
    AddSettings(command, {"token-file"});
    AddConfig(command);
    if (prints) AddJson(command);
  }
  // Commands for the users of a server with several.
  void AddUsers() {
    CLI::App* users = Add("users", "Who may use a server with \"auth\" in its configuration");
    users->require_subcommand(1);
    CLI::App* token = users->add_subcommand("token", "Tokens for scripts, and for people without an identity provider");
    token->require_subcommand(1);
    CLI::App* add = token->add_subcommand("add", "Make a token and print it, this once");
    add->add_option("USER", out_.argument, "whose it is")->required();
    add->add_option("--org", out_.token.org, "the user's organization (default: default)")->type_name("ORG");
    add->add_option("--name", out_.token.name, "what it is for, in your words")->type_name("TEXT");
    add->add_option("--expires-days", out_.token.expires_days, "how long it counts (default: until it is revoked)")
        ->type_name("N")
        ->check(CLI::Range(1, 36'500));
    add->add_flag("--org-admin", out_.token.org_admin, "may see what the users of the organization use, and delete it");
    CLI::App* list = token->add_subcommand("list", "List the tokens; never what they are");
    CLI::App* revoke = token->add_subcommand("revoke", "Take a token back; a running server refuses it at once");
    revoke->add_option("TOKEN", out_.argument, "its id, as the list shows it")->required();
    CLI::App* org = users->add_subcommand("org", "Organizations, whose users the server is for");
    org->require_subcommand(1);
    CLI::App* remove = org->add_subcommand(
        "delete", "Delete all chats of an organization's users, and the key that copies of them need");
    remove->add_option("ORG", out_.argument, "its name")->required();
    remove->add_flag("--yes", out_.yes, "it is meant");
    for (CLI::App* command : {add, list, revoke, remove}) {
      AddSettings(*command, {"data-dir"});
      AddConfigAndJson(*command);
    }
  }
  void AddMcp() {
    CLI::App* mcp = Add("mcp", "The MCP servers of the configuration, and logging in at them");
    mcp->require_subcommand(1);
    CLI::App* add = mcp->add_subcommand("add", "Add a server to the configuration");
    add->add_option("NAME", out_.argument, "what its tools' names begin with")->required();
    add->add_option("COMMAND", out_.mcp.command, "the program and its arguments, behind --");
    add->add_option("--url", out_.mcp.url, "its address, in place of a command")->type_name("URL");
    add->add_flag("--oauth", out_.mcp.oauth, "you log in at it");
    add->add_option("--client-id", out_.mcp.client_id, "as its operator has given it for log-ins")->type_name("ID");
    add->add_flag("--force", out_.force, "replace the one that is there");
    CLI::App* list = mcp->add_subcommand("list", "List the servers, and where you are logged in");
    CLI::App* login = mcp->add_subcommand("login", "Log in at a server, in a browser of this machine");
    login->add_option("NAME", out_.argument, "which one")->required();
    login->add_option("--port", out_.mcp.port, "the port that the browser comes back to (default: any)")
        ->type_name("PORT")
        ->check(CLI::Range(1, 65'535));
    CLI::App* logout = mcp->add_subcommand("logout", "Forget a log-in");
    logout->add_option("NAME", out_.argument, "which one")->required();
    CLI::App* test = mcp->add_subcommand("test", "Start or reach a server, and count its tools");
    test->add_option("NAME", out_.argument, "which one (default: all)");
    for (CLI::App* command : {add, list, login, logout, test}) {
      AddSettings(*command, {"data-dir", "plain", "key-file", "passphrase-file"});
      AddConfigAndJson(*command);
    }
  }
  void AddOutput(CLI::App& command, const std::string& help) {
    command.add_option("-o,--output", out_.output, help)->type_name("PATH");
    command.add_flag("--force", out_.force, "replace files that are there");
  }

  void AddSetting(CLI::App& command, const Setting& setting) {
    const std::string name(setting.flag.name);
    if (setting.flag.placeholder.empty()) {
      command.add_flag_callback(
          "--" + name, [this, name] { out_.flags[name] = "true"; }, std::string(setting.flag.help));
      return;
    }
    const auto store = [this, name](const std::string& text) { out_.flags[name] = text; };
    command.add_option_function<std::string>("--" + name, store, std::string(setting.flag.help))
        ->type_name(std::string(setting.flag.placeholder));
  }
  void AddSettings(CLI::App& command, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) AddSetting(command, *FindSetting(name));
  }
  void AddTurns(CLI::App& command) {
    AddSettings(command, {"model", "data-dir", "workspace", "plain", "key-file", "passphrase-file", "approval-mode"});
  }
  void AddAllSettings(CLI::App& command) {
    for (const Setting& setting : Settings()) {
      if (!setting.flag.name.empty()) AddSetting(command, setting);
    }
    AddConfig(command);
  }
  void AddConfig(CLI::App& command) {
    command
        .add_option_function<std::string>(
            "--config", [this](const std::string& text) { out_.flags["config"] = text; },
            "configuration file (default $XDG_CONFIG_HOME/reprise/reprise.json); the folder's reprise.json, once you "
            "have allowed it, is read over it")
        ->type_name("FILE");
  }
  void AddColour(CLI::App& command) {
    command.add_option("--color", out_.colour, "auto, always or never (default auto: at a terminal, without NO_COLOR)")
        ->type_name("WHEN")
        ->check(CLI::IsMember({"auto", "always", "never"}));
  }
  void AddConfigAndJson(CLI::App& command) {
    AddConfig(command);
    AddJson(command);
  }
  void AddJson(CLI::App& command) { command.add_flag("--json", out_.json, "print JSON"); }
  void AddAll(CLI::App& command) { command.add_flag("--all", out_.all_branches, "superseded interactions too"); }
  void AddReading(CLI::App& command) {
    AddSettings(command, {"data-dir", "plain", "key-file", "passphrase-file"});
    command.get_option("--plain")->description("the chats are stored unencrypted");
    AddConfigAndJson(command);
  }

  void AddKeyFile(CLI::App& command) {
    AddSettings(command, {"key-file", "passphrase-file"});
    AddConfigAndJson(command);
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

  void AddFiles() {
    CLI::App* files = Add("files", "The files of chats that are in a bucket");
    files->require_subcommand(1);
    CLI::App* sweep = files->add_subcommand(
        "sweep", "Delete objects of this data folder that no file of it names, and that are an hour old");
    sweep->add_flag("--dry-run", out_.dry_run, "only say which");
    for (CLI::App* command : {sweep, files->add_subcommand("push", "Move the files of the data folder to the bucket"),
                              files->add_subcommand("pull", "Move them back into the data folder")}) {
      AddSettings(*command, {"data-dir"});
      AddKeyFile(*command);
    }
  }
  void AddDocs() {
    CLI::App* completion = Add("completion", "Print what makes a shell complete reprise's commands, flags and chats");
    completion->add_option("SHELL", out_.argument, "bash, zsh or fish")->check(CLI::IsMember({"bash", "zsh", "fish"}));
    // For the completion scripts only.
    completion->add_flag("--chats", out_.list, "print the chats' ids")->group("");
    AddSettings(*completion, {"data-dir"});
    AddConfig(*completion);
    for (const char* name : {"--data-dir", "--config"}) completion->get_option(name)->group("");

    CLI::App* man = Add("man", "Print the man page of reprise, or of a command");
    man->add_option("COMMAND", out_.arguments, "such as serve, or keys init (default: reprise itself)");
    man->add_flag("--grammar", out_.list, "print the grammar as JSON")->group("");  // for the build only
  }
  static void AddExamples(CLI::App& app, const std::string& name) {
    std::string examples;
    for (const CommandExample& example : ExamplesOf(name)) {
      examples += (examples.empty() ? "Examples:\n  " : "\n  ") + std::string(example.line) + "\n      " +
                  std::string(example.what);
    }
    if (!examples.empty()) app.footer(examples + "\n\n" + app.get_footer());
    for (CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
      AddExamples(*below, (name.empty() ? "" : name + " ") + below->get_name());
    }
  }

  static CLI::App* Deepest(CLI::App* app) {
    const auto below = app->get_subcommands();  // the subcommands on the line
    return below.empty() ? app : Deepest(below.front());
  }
  // "keys init", "users token add".
  static std::string NameOf(const CLI::App* app) {
    if (app->get_parent() == nullptr) return {};
    const std::string above = NameOf(app->get_parent());
    return (above.empty() ? "" : above + " ") + app->get_name();
  }
  static std::string HelpOf(CLI::App* app) {
    if (app->get_parent() == nullptr) return app->help("");
    const std::string above = NameOf(app->get_parent());
    return app->help("reprise" + (above.empty() ? "" : " " + above));
  }
  EarlyExit Help() {
    // A grammar that has parsed "help" prints the help of that command, so a fresh one prints its own.
    if (help_about_.empty()) return {kExitOk, HelpOf(&std::make_unique<Grammar>()->app_)};
    const auto found = app_.get_subcommands([this](const CLI::App* app) { return app->get_name() == help_about_; });
    if (!found.empty()) return EarlyExit{kExitOk, HelpOf(found.front())};
    return Usage("there is no command " + help_about_ + DidYouMean(help_about_, NamesBelow(app_)));
  }
  // Whether the first message may be a mistyped command. Plain words stay free for commands of later versions.
  bool IsWordAlone() const {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    return out_.opening && !has_separator_ && !out_.opening->empty() && is_letter(out_.opening->front()) &&
           std::ranges::all_of(*out_.opening,
                               [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_'; });
  }
  // The first unexpected argument: an unknown command or flag, or one too many.
  EarlyExit NotExpected() {
    CLI::App* const command = Deepest(&app_);
    const std::vector<std::string> rest = app_.remaining(/*recurse=*/true);
    if (IsWordAlone()) {
      const std::string& word = *out_.opening;
      return Usage("there is no command " + word + DidYouMean(LowerCase(word), NamesBelow(app_)), {},
                   "; to begin with a message: reprise " +
                       (rest.empty() || rest.front().starts_with("-") ? "-- " + word : "\"" + word + " ...\""));
    }
    if (rest.size() > 1 && rest.front() == "--") {
      return Usage("\"" + rest[1] + "\" is one argument too many", {}, "; flags go before --");
    }
    const std::string first = rest.empty() ? out_.opening.value_or("") : rest.front();
    if (rest.empty() && out_.opening) return Usage("\"" + first + "\" is one argument too many");
    std::vector<std::string> known;
    if (first.starts_with("-")) {
      const std::string flag = first.substr(0, first.find('='));
      for (const CLI::Option* option : command->get_options()) {
        for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      }
      const bool is_message = command == &app_ && first.find(' ') != std::string::npos;
      return Usage("there is no flag " + flag + DidYouMean(flag, known), {},
                   is_message ? "; a message that begins with - goes after --" : "");
    }
    const std::vector<std::string> below = NamesBelow(*command);
    if (below.empty() || (command == &app_ && out_.opening)) return Usage("\"" + first + "\" is one argument too many");
    if (command == &app_) return Usage("there is no command " + first + DidYouMean(first, below));
    const std::string of = NameOf(command);
    return Usage("there is no command " + of + " " + first + DidYouMean(first, below), of);
  }
  static EarlyExit CommandMissing(const CLI::App& command) {
    return Usage(NameOf(&command) + " needs one of its commands: " + Joined(NamesBelow(command), ", "),
                 NameOf(&command));
  }
  static std::vector<std::string> NamesBelow(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(below->get_name());
    }
    return names;
  }
  // `command` is the one whose help is named; empty for reprise itself.
  static EarlyExit Usage(std::string_view problem, const std::string& command = {}, const std::string& more = {}) {
    const std::string name = "reprise" + (command.empty() ? "" : " " + command);
    return {kExitUsage,
            "reprise: " + VisibleLine(problem) + " (" + name + " --help says more" + VisibleLine(more) + ")\n"};
  }

  CLI::App app_{"A local LLM agent server: streaming, approvals, edits, and every interaction a sealed file.",
                "reprise"};
  CommandLine out_;
  std::string help_about_;
  bool has_separator_ = false;  // "--", after which all is said as it is
};

}  // namespace

std::variant<CommandLine, EarlyExit> ParseCommandLine(int argc, const char* const* argv) {
  using Part = Grammar::Part;
  const std::string_view first = argc > 1 ? argv[1] : "";
  Part part = first == "serve" ? Part::kServe : Part::kAll;
  if (argc == 1 || first == "chat" || first.starts_with('-')) part = Part::kTalk;
  // A part takes the name of another command for a message. It refuses one of a single word, but not beside a "--".
  if (std::find(argv, argv + argc, std::string_view("--")) != argv + argc) part = Part::kAll;
  if (part != Part::kAll) {
    // What it cannot parse is explained by the whole grammar.
    if (auto parsed = Grammar(part).Parse(argc, argv); parsed.index() == 0) return parsed;
  }
  return Grammar().Parse(argc, argv);
}

Json DescribeCommands() { return Grammar().Describe(); }

}  // namespace reprise
