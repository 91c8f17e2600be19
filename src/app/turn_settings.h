#pragma once

#include <map>
#include <string>

#include "base/system.h"
#include "reprise/options.h"

namespace reprise {

// The settings that affect how a turn runs, by their configuration keys: folder, mode, model, configuration and all
// other settings, except how a server listens, logs and stops. Secrets and the configuration's text are digests
// ("sha256:...").
using TurnSettings = std::map<std::string, std::string>;

// From options that were just loaded in `environment`.
TurnSettings SettingsOfTurns(const Options& options, const Environment& environment);

// Those that chats in all folders have: without folder, mode and model, and without the folder's file.
TurnSettings SettingsOfAllChats(const Options& options, const Environment& environment);

// Equal for equal settings only.
std::string DigestOf(const TurnSettings& settings);

// The member of SettingsFileOf that holds the settings of all chats, as an object.
inline constexpr const char* kOfAllChats = "of_all_chats";

// The file in a data folder where its server has noted its settings, as a JSON object.
std::string SettingsFileOf(const Options& options);

}  // namespace reprise
