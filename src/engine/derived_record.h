#pragma once

#include "reprise/interaction.h"
#include "reprise/result.h"

namespace reprise {

// Where the run of an interaction began that has no RunRecord: version 0.1 stored none, and documents of other programs
// have none. Derived from its messages and events, as good as these tell. kConflict (reason "not_replayable") if the
// final state does not have the user's message, or if the run went on with calls of another interaction.
// REQUIRES: it has a final state.
Result<RunRecord> DeriveRecord(const Interaction& interaction);

}  // namespace reprise
