#pragma once

#include <map>
#include <string>

#include "base/environment.h"
#include "reprise/options.h"

namespace reprise {

// What decides how a turn runs, by the keys of the configuration: folder, mode, model, configuration and every other
// setting, but not how a server listens, logs and stops. Secrets and the configuration's text are digests
// ("sha256:...").
using TurnSettings = std::map<std::string, std::string>;

// Of options that were just loaded in `environment`.
TurnSettings SettingsOfTurns(const Options& options, const Environment& environment);

// Equal for equal settings only.
std::string DigestOf(const TurnSettings& settings);

// Where the server that uses a data folder has noted its settings, as a JSON object.
std::string SettingsFileOf(const Options& options);

}  // namespace reprise
