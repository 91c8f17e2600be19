#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/environment.h"
#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// What the command line said: a setting's name (see settings.h; also "config") and its text.
using Flags = std::map<std::string, std::string>;

// The configuration file that is looked for in the working directory.
inline constexpr const char* kDefaultConfigFile = "reprise.json";

// Puts the options together: flags beat REPRISE_* variables beat the configuration file beat the defaults. The file is
// the one that --config or REPRISE_CONFIG names, else reprise.json in the working directory if there is one, else
// $XDG_CONFIG_HOME/reprise/reprise.json if there is one.
//
// The agent's tools could have written a file that was found and not named: it is used if a person has allowed it as it
// is (app/trust.h), which is asked at a terminal. kForbidden otherwise; it is never passed over.
//
// Where no file names providers, openai and anthropic exist and take OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY
// and ANTHROPIC_BASE_URL. The model is the one that was named, else the usual one of the first provider that has
// one, else the first of `models` whose provider has a key, else offline.
//
// Failures are one line for the person at the terminal that names the flag, variable or key; never a secret's value.
Result<Options> LoadOptions(const Flags& flags, const Environment& environment);

// Puts in where each provider is if that is not said, and takes a query out of its address. Twice is as once.
// kInvalidArgument: an address or a key that cannot be one.
Result<void> FinishProviders(std::vector<ProviderOptions>& providers);

// The model that is used of a well-known provider (openai, anthropic) if it has a key and nothing is said, by its full
// name; empty for others.
std::string UsualModel(const ProviderOptions& provider);

// True for 127.0.0.0/8, ::1 and localhost: reachable from this machine only.
bool IsLoopback(const std::string& host);

}  // namespace reprise
