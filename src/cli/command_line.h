#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/options.h"
#include "engine/live_turn.h"
#include "reprise/what_if.h"

namespace reprise {

// Arguments of the `keys` commands, beside the settings.
struct KeysRequest {
  bool rewrap = false, remove_old = false;
  bool remove_passphrase = false;
  std::string new_passphrase_file;  // empty: asks
};

// The new token of `users token add`.
struct TokenRequest {
  std::string org = "default", name;
  int expires_days = 0;  // 0: never
  bool org_admin = false;
};

// Arguments of `mcp add` and `mcp login`.
struct McpRequest {
  std::string url, client_id;
  std::vector<std::string> command;  // with its arguments
  bool oauth = false;
  int port = 0;  // for the browser's return; 0: any
};

// The files for the reports of `test`; empty: none.
struct ReportFiles {
  std::string junit, markdown, html;
};

// How `test` asks a model.
struct LiveRequest {
  int runs = 0;  // of each turn; 0: no model is asked
  int jobs = 4;  // at the same time
  // What happens to a call that the record does not answer: by name "refuse", "stop", "run".
  Unrecorded unrecorded = Unrecorded::kRefuse;
  double max_cost = 0;  // in the currency of the configured prices; 0: no limit
};

// Arguments of `what-if`, beside those of LiveRequest.
struct WhatIfRequest {
  WhatIfChanges changes;            // without `at` and `model`
  std::vector<std::string> models;  // full names; empty: the one of today
  std::string rules_file;           // empty: the rules of the configuration
  int times = 1;                    // runs of each turn and model
  bool keep = false;                // stores the run as a branch
  bool switches = false;            // with `keep`: the chat goes on from there
};

// Arguments of `rules try` and `rules suggest`.
struct RulesRequest {
  int days = 90;       // how far back turns count
  bool allow = false;  // of `try`: refusals that would have passed are no failure
};

// Arguments of `prove`. Paths; empty: not given.
struct ProofRequest {
  std::string check, redact, stamp;  // a bundle
  std::vector<std::string> without;  // leaves: SelectLeaves
  std::string signed_by;             // of `check`: a public key, or its fingerprint
  std::string timestamp, timestamp_request, timestamp_ca;
  bool key = false;
};

// What `import` takes of other tools.
struct MoveRequest {
  std::string from;           // a tool (engine/moves/formats); empty: as the content says
  std::string folder, since;  // only sessions of that folder, changed since then; empty: all
};

// A parsed command line.
struct CommandLine {
  std::string command;  // "serve", "ls", "keys init", ...
  Flags flags;
  std::string argument;  // the object of `ls`, `cat` and `show`; may be empty for `ls`
  bool json = false;
  bool requests = false;  // show: the requests
  bool notes = false;     // of `blame`: text for a git note
  bool all_branches = false;
  KeysRequest keys;
  TokenRequest token;
  McpRequest mcp;
  RulesRequest rules;
  ProofRequest proof;
  MoveRequest move;
  bool yes = false;  // of `users org delete`

  // For commands that export, import, check or convert chats.
  std::vector<std::string> arguments;          // the objects of `verify`, `export`, `import`, `encrypt` and `decrypt`
  std::string output;                          // a file or a folder; empty: stdout
  std::string format;                          // of `export`: "json", "html", ...; of `blame`: "agent-trace"
  std::string branches;                        // of `export`: "head", "all", or empty: the format's usual choice
  std::string mode;                            // of `replay`: "recorded", "events"
  double speed = 0;                            // of `replay`: factor for the pauses between events; 0: no pauses
  bool current = false;                        // of `replay`: also compares with the requests of today
  bool update = false;                         // of `test`: accepts what has changed
  ReportFiles reports;                         // of `test`
  LiveRequest live;                            // of `test`, `what-if` and `bisect`
  WhatIfRequest what_if;                       // of `what-if`
  std::string check;                           // of `bisect`: a file of checks, or a pattern for answers
  std::string record;                          // of `test`: the chat to write into the suite
  std::string chat;                            // of `search`: only this chat
  std::string as;                              // of `import` and `fork`: the chat's new name
  std::string url;                             // the server's; empty: the one that uses the data folder
  std::string answer;                          // of `approvals`: "yes", "no", or empty to list them
  std::string feedback, scope;                 // likewise: sent with the answer
  int limit = 0;                               // of `search`
  bool bare = false;                           // `reprise` without a command: means `chat`
  std::string prompt;                          // of `chat`: a single message; empty: a conversation
  std::optional<std::string> opening;          // of `reprise`: the first message of the conversation
  bool newest_chat = false;                    // of `chat`: continues the chat used last
  bool removes_chat = false;                   // of `chat`: moves it to the trash afterwards
  std::string colour = "auto";                 // of `chat`: or "always", "never"
  int until_released = -1;                     // of `serve`: stops when the other end of this descriptor is closed
  bool new_key = false;                        // of `serve`: gives up chats whose keys are gone
  bool force = false;                          // replaces existing files
  bool redact = false;                         // of `export`: takes out what looks like a secret
  std::vector<std::string> redact_words;       // likewise: and these texts
  bool dry_run = false;                        // of `files sweep` and `export`
  bool list = false;                           // of `trust`, `prove` and `import`; of `completion`: prints the chats
  std::string revoke;                          // of `trust`: the file that is no longer allowed
  bool all_chats = false;                      // of `encrypt` and `decrypt`
  bool in_place = false;                       // likewise
  bool regex = false, case_sensitive = false;  // of `search`
};

// Help or version for stdout, or an error (one line) for stderr, instead of a command.
struct EarlyExit {
  int status;
  std::string text;
};

std::variant<CommandLine, EarlyExit> ParseCommandLine(int argc, const char* const* argv);

}  // namespace reprise
