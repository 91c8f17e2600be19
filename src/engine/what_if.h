#pragma once

#include <string>
#include <vector>

#include "engine/drift.h"
#include "engine/live_turn.h"
#include "engine/request_body.h"
#include "reprise/interaction.h"
#include "reprise/result.h"
#include "reprise/what_if.h"
#include "reprise/workspace_change.h"

// A recorded turn that goes on from one of its events with something different. What came before is taken from the
// record: neither the model is asked for it, nor a tool run.
//
//   const WhatIf what_if = TRY(PrepareWhatIf(interaction, bodies, agent, {.at = 12, .result = "no such file"}));
//   const LiveRun run = RunLive(what_if.turn, what_if.Options(files_then), stop, executor);
namespace reprise {

struct WhatIf {
  LiveTurn turn;
  // From here on the workspace is another: the changes that the turn made up to this event are in the copy. 0: none.
  std::uint64_t at = 0;
  std::vector<std::string> allow_effects{};
  // Options of a run: calls run in a copy of the workspace.
  LiveOptions Options(FilesThen files_then) const {
    return {.unrecorded = Unrecorded::kRun, .files_then = std::move(files_then), .allow_effects = allow_effects};
  }
};

// kInvalidArgument if `changes` do not fit
// the turn: the message names the event, and the events at which they would. kInvalidArgument (reason "unknown_model");
// the failures of PrepareLive. REQUIRES: CheckReplayable.
Result<WhatIf> PrepareWhatIf(const Interaction& recorded, RequestBodies& bodies, const PresentAgent& agent,
                             const WhatIfChanges& changes);

// A run that completed, as a turn to store beside the recorded one; NameBranch gives it its number. Its changes of
// files are left out, because they were made in a copy. The failures of `store`. REQUIRES: WhatIfChanges::keep.
Result<Interaction> AsBranch(const Interaction& recorded, const WhatIf& what_if, Interaction made,
                             CheckpointStore& store);
void NameBranch(Interaction& branch, InteractionId id);

// The changes of files that the events show, one for each path: what it was before the first and after the last one.
// Events up to `after` are left out.
std::vector<WorkspaceChange> NetChanges(const std::vector<AgentEvent>& events, std::uint64_t after);

}  // namespace reprise
