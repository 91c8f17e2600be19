#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/text.h"
#include "engine/request_body.h"
#include "engine/told_request.h"
#include "reprise/engine.h"
#include "reprise/replay.h"
#include "reprise/workspace_copies.h"
#include "reprise/workspaces.h"

// What the agent of today would tell the model in a recorded turn, and how that differs from what it was told.
namespace reprise {

class Guardrails;

// The agent of today. All must outlive its use.
struct PresentAgent {
  const WorkspaceParts& workspace;
  const EngineOptions& options;
  const ModelDirectory& models;
  // ChatSummary's, for turns whose requests are not on record: another turn has those that it was sent with.
  std::string chosen_model{};
  Effort effort = Effort::kDefault;
  std::string instructions{};
  DocumentReader* documents = nullptr;
  const Redactor* redactor = nullptr;  // of what tools say; null: nothing is removed
  const Guardrails* guards = nullptr;  // likewise; set with `redactor`
  AuditLog* audit = nullptr;           // of calls that may act outside a copy; null: none
  // Whether the configuration denies every tool of this name, also one of a server that is away. Null: not known.
  std::function<bool(const std::string& tool)> is_denied{};
  bool names_servers_away = true;  // in DriftReport::not_compared; false where none is ever connected
};

// Puts each request of the turn together anew, along the recorded answers and results, and compares it with the one on
// record. Names the recorded calls that a rule of today denies. Sends nothing, and runs no tool and no hook. Not
// compared: requests for summaries and of sub-agents, a hook's or a client's text in the prompt, values of placeholders
// (they have the form of such values), tools and words of MCP servers that are not connected, tools of an editor, and
// requests with a file that was deleted since. What a provider has taught a client is known only where that client
// lives, so elsewhere it counts as drift. May run jobs of `executor`. kConflict (reason "not_replayable") if no
// requests are on record. REQUIRES: CheckReplayable.
Result<DriftReport> FindDrift(const Interaction& interaction, RequestBodies& bodies, const PresentAgent& agent,
                              const Executor& executor);

// The agent with the model and the effort that were chosen for the turn.
PresentAgent AgentOf(const Interaction& interaction, PresentAgent agent);

// The mode that the chat had then, as far as requests depend on it: a tool ends the planning.
ApprovalMode ModeThen(const PresentAgent& agent, const ToldBody& told);
// The state before the turn's request in this round; it has neither grants nor tasks. kConflict (reason
// "not_replayable") if the record does not tell. REQUIRES: CheckReplayable.
Result<AgentState> StateBefore(const Interaction& interaction, CheckpointStore& store, std::uint32_t round);

// For people, without a line end: "module 10-rules has changed", and a line each of what it was and is, shortened to
// the place of the first difference. Other texts' control characters are spelled out.
std::string Describe(const Drift& drift);

}  // namespace reprise
