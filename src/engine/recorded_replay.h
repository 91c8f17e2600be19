#pragma once

#include "agent/agent_loop.h"
#include "reprise/interaction.h"
#include "reprise/replay.h"
#include "reprise/result.h"

namespace reprise {

// Runs the agent again on what the record of `interaction` says that the model, the tools and the people said, and
// compares every durable event with the recorded one: round, type, content, tool input and output, and their order.
// Times, pauses and random ids count as equal, and so does how a question was worded and that a compaction was due; an
// answer or a change of the agenda that was taken out of the events is not missed. A change by hand is compared with
// the final state. Touches neither network nor tool nor disk: whatever the record does not hold ends the replay with a
// divergence there.
//
// Blocks until the agent has come to its end; it works on threads of `executor`, which may be called from several.
// Failures: those of CheckReplayable and Recording::Of.
Result<ReplayReport> ReplayRecorded(const Interaction& interaction, const Executor& executor);

}  // namespace reprise
