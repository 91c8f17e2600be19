#pragma once

#include <string>
#include <variant>
#include <vector>

#include "app/options.h"

namespace reprise {

// What the `keys` commands are told beside the settings.
struct KeysRequest {
  bool rewrap = false, remove_old = false;
  bool remove_passphrase = false;
  std::string new_passphrase_file;  // empty: asks
};

// What `users token add` is told of the new token.
struct TokenRequest {
  std::string org = "default", name;
  int expires_days = 0;  // 0: never
  bool org_admin = false;
};

// What `mcp add` and `mcp login` are told.
struct McpRequest {
  std::string url, client_id;
  std::vector<std::string> command;  // with its arguments
  bool oauth = false;
  int port = 0;  // that a browser comes back to; 0: any
};

// A command line that was understood.
struct CommandLine {
  std::string command;  // "serve", "ls", "keys init", ...
  Flags flags;
  std::string argument;  // what `ls`, `cat` and `show` are about; may be empty for `ls`
  bool json = false;
  bool all_branches = false;
  KeysRequest keys;
  TokenRequest token;
  McpRequest mcp;
  bool yes = false;  // of `users org delete`

  // Of the commands that take a folder's chats in and out.
  std::vector<std::string> arguments;          // what `verify`, `export`, `import`, `encrypt` and `decrypt` are about
  std::string output;                          // a file or a folder; empty: stdout
  std::string format;                          // of `export`: "json", "markdown", "jsonl"
  std::string branches;                        // of `export`: "head", "all", or empty: what suits the format
  std::string mode;                            // of `replay`: "recorded", "events"
  double speed = 0;                            // of `replay`: of the events; 0: at once
  std::string chat;                            // of `search`: in this one only
  std::string as;                              // of `import` and `fork`: the chat's new name
  std::string url;                             // the server's; empty: the one that uses the data folder
  std::string answer;                          // of `approvals`: "yes", "no", or empty: lists them
  std::string feedback, scope;                 // likewise: what goes with the answer
  int limit = 0;                               // of `search`
  bool bare = false;                           // `reprise` without a command: means `chat`
  std::string prompt;                          // of `chat`: the one message to send; empty: a conversation
  bool newest_chat = false;                    // of `chat`: goes on with the one that was used last
  std::string colour = "auto";                 // of `chat`: or "always", "never"
  int until_released = -1;                     // of `serve`: stops when this descriptor's other end is closed
  bool new_key = false;                        // of `serve`: chats whose keys are gone are given up
  bool force = false;                          // replace what is there
  bool dry_run = false;                        // of `files sweep`
  bool list = false;                           // of `trust`; of `completion`: the chats
  std::string revoke;                          // of `trust`: this file is no longer allowed
  bool all_chats = false;                      // of `encrypt` and `decrypt`
  bool in_place = false;                       // likewise
  bool regex = false, case_sensitive = false;  // of `search`
};

// Nothing to run: help or the version for stdout, or an error (one line) for stderr.
struct EarlyExit {
  int status;
  std::string text;
};

std::variant<CommandLine, EarlyExit> ParseCommandLine(int argc, const char* const* argv);

}  // namespace reprise
