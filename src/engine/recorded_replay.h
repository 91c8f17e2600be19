#pragma once

#include "base/async.h"
#include "reprise/interaction.h"
#include "reprise/replay.h"
#include "reprise/result.h"

namespace reprise {

// Runs the agent again on the recorded words of the model, the tools and the people, and compares every durable event
// with the recorded one: round, type, content, tool input and output, and order. Times, pauses, random ids, the wording
// of questions and the need for a compaction are not compared. An answer or a change of the agenda that was removed
// from the events is not missed. A change by hand is compared with the final state. Touches neither network nor tool
// nor disk: where the record lacks something, the replay ends with a divergence.
//
// Blocks until the agent has ended; it works on threads of `executor`, which may be called from several. Failures:
// those of CheckReplayable and Recording::Of.
Result<ReplayReport> ReplayRecorded(const Interaction& interaction, const Executor& executor);

}  // namespace reprise
