#pragma once

#include "reprise/interaction.h"
#include "reprise/replay.h"

namespace reprise {

// Where a second run of the same message first did something else than the first one: other types, texts, tools,
// inputs or outputs, or in another order. What cannot be the same twice (ids, times, token counts, repetitions after
// failures) does not count. A divergence's seq is that of the recorded event.
ReplayReport CompareRuns(const Interaction& recorded, const Interaction& again);

}  // namespace reprise
