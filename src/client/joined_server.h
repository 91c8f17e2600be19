#pragma once

#include <string>
#include <vector>

#include "app/options.h"
#include "base/environment.h"
#include "client/server_client.h"
#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// What a person has to know who joins a server that runs already, and works by the settings of whoever started it: a
// line for each that differs from what this start says. kConflict (reason "other_settings") if a flag, a variable or
// the configuration wants another workspace or approval mode: nothing may be done in the wrong folder, or unasked.
// Nothing if the server does not say.
Result<std::vector<std::string>> CompareWithServer(ServerClient& server, const Options& options, const Flags& flags,
                                                   const Environment& environment);

}  // namespace reprise
