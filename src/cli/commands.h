#pragma once

#include "base/environment.h"
#include "cli/command_line.h"

namespace reprise {

// The whole program: understands the command line, runs the command, returns the exit status.
int RunMain(int argc, const char* const* argv);

// The commands. Each returns the exit status.
using CommandFunction = int(const CommandLine& line, const Environment& environment);

// Runs the server until SIGINT or SIGTERM. Prints one line, `reprise listening on http://HOST:PORT`, when it accepts
// connections.
CommandFunction RunServe;
// A conversation with a running server, line by line.
CommandFunction RunChat;
// `reprise acp` and `mcp-server`: for editors, and for other MCP clients, on standard input and output, by the server
// of the data folder.
CommandFunction RunAcp, RunMcpServer;
// The chats, or a chat's interactions.
CommandFunction RunLs;
// Plaintext JSON, one value on one line (a journal: one for each record).
CommandFunction RunCat;
// For reading.
CommandFunction RunShow;
// Runs recorded interactions again on what their record says (or prints their events) and says where they are not the
// same. kExitFailure at a divergence, at what cannot be read, and if there is no such chat or file.
CommandFunction RunReplay;
// Says what is wrong with which file. kExitFailure if anything is.
CommandFunction RunVerify;
// Prints the data folder's audit log, beside a running server too.
CommandFunction RunAudit;
// Writes what can be read of the chats, as JSON documents, Markdown or JSONL, and names what cannot. kExitFailure also
// if something is missing from the output.
CommandFunction RunExport;
// Brings chats in as new ones, each as a whole or not at all. No server may use the data folder meanwhile.
// kExitFailure if any chat was not brought in.
CommandFunction RunImport;
// Where messages, answers, tool calls and results of all chats hold a text. Finding nothing is no failure. kExitFailure
// also if something could not be read, and so not be searched.
CommandFunction RunSearch;
// Moves chats to the trash. kExitFailure if one of them could not be.
CommandFunction RunRm;
// Lists the trash, or brings one chat of it back under its name.
CommandFunction RunRestore;
// Gives a chat another title. Its id stays: its files are sealed to that.
CommandFunction RunMv;
// Copies a branch of a chat into a new chat.
CommandFunction RunFork;
// Lists what waits for a person in every chat of the running server, or answers one approval.
CommandFunction RunApprovals;
// Lists the models that can be named: those of the running server, else those of the configuration.
CommandFunction RunModels;
// Sealed copies of what is plain, and the reverse; of one file, of chats, or of a whole data folder, which can be
// converted in place too. A chat is converted as a whole or not at all, and its source is never touched.
CommandFunction RunEncrypt, RunDecrypt;
// None of these ever prints what a key or a passphrase is.
CommandFunction RunKeysInit, RunKeysList, RunKeysRotate, RunKeysRewrap, RunKeysPassphrase;
// store/bucket_upkeep.
CommandFunction RunFilesSweep, RunFilesPush, RunFilesPull;
// Make the tables of the database that the configuration names, bring them up to date, say how far they have come.
// `status`: kExitFailure unless a server could use them.
CommandFunction RunDbInit, RunDbMigrate, RunDbStatus;
// Checks what the server needs, and says of each thing whether it is ok. Changes nothing. A warning is ok, a failure is
// not.
CommandFunction RunDoctor;
// Allows files by what they hold now, lists those that are allowed, or takes that back.
CommandFunction RunTrust;
// The tokens of a server that is for several people. A running one notices each change itself.
CommandFunction RunTokenAdd, RunTokenList, RunTokenRevoke;
// Deletes all that the users of an organization have, and the key that it was sealed by.
CommandFunction RunOrgDelete;
// The MCP servers of the configuration, and logging in at them.
CommandFunction RunMcpAdd, RunMcpList, RunMcpLogin, RunMcpLogout, RunMcpTest;
// The script for a shell, or the chats' ids for such a script.
CommandFunction RunCompletion;
// The man page of a command, or of all of them into files of a folder.
CommandFunction RunMan;

}  // namespace reprise
