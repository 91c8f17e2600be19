#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "base/json.h"
#include "base/system.h"
#include "base/try.h"
#include "cli/command_line.h"
#include "reprise/result.h"
#include "terminal/console.h"

namespace reprise {

// The whole program: parses the command line, runs the command, returns the exit status.
int RunMain(int argc, const char* const* argv);

// Why a command ends early: a failure, or wrong use.
struct Exit {
  Exit(Error why, int exit_status = kExitFailure) : error(std::move(why)), status(exit_status) {}
  Error error;
  int status;
};
// The exit status of a command. TRY ends a command with the Error of a Result.
using Exited = tl::expected<int, Exit>;
inline tl::unexpected<Exit> Fail(Exit exit) { return tl::unexpected<Exit>(std::move(exit)); }
template <typename T>
T ValueOf(tl::expected<T, Exit>& result) {
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
// For TRY: an invalid argument is wrong use. (An argument that turns out to be invalid later is a failure.)
template <typename T>
tl::expected<T, Exit> OfUse(Result<T> result) {
  return std::move(result).map_error([](Error error) {
    const int status = error.code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailure;
    return Exit(std::move(error), status);
  });
}
// Prints why the command ended, if it ended early. Returns the exit status.
int StatusOf(const Exited& exited);

// Prints a value on a line of its own.
void PrintDocument(const Json& document);
// Prints `document` if JSON is asked for, else the words. Returns kExitOk.
int PrintEither(bool json, const Json& document, const std::string& words);

// The commands.
using CommandFunction = Exited(const CommandLine& line, const Environment& environment);

// Runs the server until SIGINT or SIGTERM. Prints one line, `reprise listening on http://HOST:PORT`, when it accepts
// connections.
CommandFunction RunServe;
// A conversation with the data folder's server, which is started if none runs; or a single message.
CommandFunction RunChat;
// `reprise acp` and `mcp-server`: serve editors and other MCP clients on standard input and output, through the data
// folder's server.
CommandFunction RunBridge;
// Lists the chats, or a chat's interactions.
CommandFunction RunLs;
// Prints plaintext JSON, one value per line (of a journal, one per record).
CommandFunction RunCat;
// Prints chats and interactions for reading.
CommandFunction RunShow;
// Goes on from events of recorded turns with something different. kExitFailure if a run was not made or failed a check.
CommandFunction RunWhatIf;
// Runs recorded interactions again on their record (or prints their events) and names the differences. kExitFailure for
// a divergence, an unreadable record, or an unknown chat or file.
CommandFunction RunReplay;
// Tests the agent of today with recorded chats: the replay on their record, what has changed in their requests, and
// their checks. kExitFailure if a turn fails.
CommandFunction RunTest;
// Runs a recorded turn with mixes of its recorded input and today's, and names the difference that changes the outcome.
// kExitFailure if there is none, or it cannot be found.
CommandFunction RunBisect;
// Names every damaged file and its fault. kExitFailure if there is any.
CommandFunction RunVerify;
// Prints the data folder's audit log, even while a server runs.
CommandFunction RunAudit;
// Writes the readable parts of chats, as JSON documents, Markdown or JSONL, and names the others. kExitFailure if the
// output lacks anything.
CommandFunction RunExport;
// Makes, checks and shortens proofs of what an agent did. kExitFailure if a proof is not intact.
CommandFunction RunProve;
// Imports chats as new ones, each as a whole or not at all, through the data folder's server if one runs. kExitFailure
// if any chat was not imported.
CommandFunction RunImport;
// Finds a text in messages, answers, tool calls and results of all chats. kExitFailure if nothing was found, as with
// grep, or if something was unreadable.
CommandFunction RunSearch;
// Prints who wrote each line of a file, from what chats have recorded. kExitFailure if a chat was unreadable, or if no
// chat worked in a folder of the file.
CommandFunction RunBlame;
// Tries new rules on the calls on record, or prints rules that people's answers speak for. kExitFailure if a chat was
// unreadable, or if calls would run that were held back.
CommandFunction RunRulesTry, RunRulesSuggest;
// Moves chats to the trash. kExitFailure if one of them was not moved.
CommandFunction RunRm;
// Lists the trash, or restores one chat under its name.
CommandFunction RunRestore;
// Changes a chat's title. Its id stays, because its files are sealed to that.
CommandFunction RunMv;
// Copies a branch of a chat into a new chat.
CommandFunction RunFork;
// Lists the open approvals and questions of the running server, or answers one approval.
CommandFunction RunApprovals;
// Lists the models of the running server, else those of the configuration.
CommandFunction RunModels;
// Makes sealed copies of plain files and chats, and the reverse: of one file, of chats, or of a whole data folder,
// which can be converted in place too. A chat is converted as a whole or not at all, and its source is never changed.
CommandFunction RunConvert;
// None of these ever prints a key or a passphrase.
CommandFunction RunKeysInit, RunKeysList, RunKeysRotate, RunKeysRewrap, RunKeysPassphrase;
// See store/upkeep.
CommandFunction RunFilesSweep, RunFilesMove;
// Make the tables of the configured database, update them, show their version. `status`: kExitFailure unless a server
// could use them.
CommandFunction RunDbMake, RunDbStatus;
// Checks everything that the server needs, and reports each check. Changes nothing. A warning is no failure.
CommandFunction RunDoctor;
// Allows files with their present content, lists the allowed files, or revokes one.
CommandFunction RunTrust;
// The tokens of a server with several users. A running server notices each change.
CommandFunction RunTokenAdd, RunTokenList, RunTokenRevoke;
// Deletes all data of an organization's users, and the key that sealed it.
CommandFunction RunOrgDelete;
// The configured MCP servers, and logins at them.
CommandFunction RunMcpAdd, RunMcpList, RunMcpLogin, RunMcpLogout, RunMcpTest;
// Prints the script for a shell, or the chats' ids for that script.
CommandFunction RunCompletion;
// Prints the man page of a command.
CommandFunction RunMan;

}  // namespace reprise
