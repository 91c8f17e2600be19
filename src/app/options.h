#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.h"
#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// The command line's settings: a setting's name (see settings.h; also "config") and its text.
using Flags = std::map<std::string, std::string>;

// The configuration file that is looked for in the working directory.
inline constexpr const char* kDefaultConfigFile = "reprise.json";

// Merges the options: flags beat REPRISE_* variables beat the reprise.json of the workspace beat the configuration file
// beat the defaults. The configuration file is the one that --config or REPRISE_CONFIG names, else
// $XDG_CONFIG_HOME/reprise/reprise.json, if it exists. A workspace's file may set keys of chats only; this version
// still obeys keys of the server (Options::server_keys) in the working directory's, if no file is named.
//
// The agent's tools could have written a file that was found and not named, so a person must have allowed its content
// (app/trust.h); if not, asks at the terminal. kForbidden otherwise; such a file is never skipped.
//
// Without configured providers, openai and anthropic exist and take OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY
// and ANTHROPIC_BASE_URL. The model is the named one, else the usual one of the first provider that has one, else the
// first of `models` whose provider has a key, else offline.
//
// Failures are one line for the person at the terminal that names the flag, variable or key; never a secret's value.
//
// To be shown, the file that --config names, else the folder's, is read as if it were allowed, and Options::asked is
// set.
enum class LoadedFor { kUse, kShowing };
Result<Options> LoadOptions(const Flags& flags, const Environment& environment, LoadedFor what = LoadedFor::kUse);

// The real path of the folder in which chats work that have none of their own; empty without one. kInvalidArgument, for
// the person at the terminal, if there is no such folder, or if JSON cannot hold its name.
Result<std::string> WorkspaceOf(const Options& options);

// Lines for the person who starts a server or client: keys of the server in the reprise.json here, and where they
// belong; chats in ./chats, which was the data folder in earlier versions.
std::vector<std::string> NotesOf(const Options& options, const Environment& environment);

// Sets default addresses of providers and moves a query out of the address. Idempotent. kInvalidArgument if an address
// or a key is malformed.
Result<void> FinishProviders(std::vector<ProviderOptions>& providers);

// False: it exists without configuration and has no key, so nothing is sent to it.
bool GetsRequests(const ProviderOptions& provider);
// The names of those to which something may be sent, or "none".
std::string NamesOfUsed(const std::vector<ProviderOptions>& providers);

// The full name of the default model of a well-known provider (openai, anthropic) that has a key; empty for others.
std::string UsualModel(const ProviderOptions& provider);

// Reads a configuration (JSON with comments, schemas/config.schema.json) over `options`. ${NAME} in a string stands for
// an environment variable, $${ for the characters themselves. An unset variable is an error that names it and the key,
// except in a provider's api_key: one file can list every provider, and those without a key are merely unusable.
//
// Adds the keys of all values that it has set to `keys`, unless that is null.
//
// kInvalidArgument; the message names the key and the expected value, and never quotes a value that may be a secret.
using ConfigKeys = std::set<std::string>;
Result<void> ApplyConfig(Options& options, std::string_view text, const Environment& environment,
                         ConfigKeys* keys = nullptr);
// The same for a folder's reprise.json.
struct FolderLayer {
  enum class Take {
    kChatKeys,    // an error if there are keys of the server
    kOwnKeys,     // keys of the server are left out, and listed in Options::server_keys
    kServerKeys,  // those alone, which are listed too
  };
  Take take = Take::kChatKeys;
  std::string folder{};  // what relative paths of programs and prompt modules mean
};
Result<void> ApplyFolderConfig(Options& options, std::string_view text, const Environment& environment,
                               const FolderLayer& layer, ConfigKeys* keys = nullptr);

// Sets the endpoints of traces and metrics below a base URL ("http://collector:4318").
void SetOtlpEndpoint(TelemetryOptions& options, std::string_view base_url);

// Applies OTEL_* variables as OpenTelemetry defines them for all programs. Other programs use them too, so an invalid
// one is no failure: the setting stays, and TelemetryOptions::problems names it.
void ApplyTelemetryVariables(TelemetryOptions& options, const Environment& environment);

}  // namespace reprise
