#pragma once

#include "app/turn_settings.h"
#include "client/server_access.h"
#include "reprise/error.h"
#include "reprise/options.h"

namespace reprise {

// What the server of the data folder has noted that it runs turns with (SettingsOfTurns); empty if it has not.
TurnSettings NotedSettings(const Options& options);

// Why a client that wants turns to run with `wanted` (SettingsOfTurns of `options`) cannot use this server: kConflict
// (reason "other_settings"), naming what differs and how to stop the server or do without it.
Error Differs(const RunningServer& server, const TurnSettings& wanted, const Options& options);

}  // namespace reprise
