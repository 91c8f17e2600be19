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

// Without those that each chat may have of its own: folder, mode and model.
TurnSettings OfAllChats(TurnSettings settings);

// Equal for equal settings only.
std::string DigestOf(const TurnSettings& settings);

// The file in a data folder where its server has noted its settings, as a JSON object.
std::string SettingsFileOf(const Options& options);

}  // namespace reprise
