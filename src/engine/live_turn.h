#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent.h"
#include "base/async.h"
#include "engine/calls_in_copy.h"
#include "engine/drift.h"
#include "reprise/event.h"
#include "reprise/interaction.h"
#include "reprise/message.h"
#include "reprise/result.h"
#include "reprise/system_prompt.h"
#include "reprise/tool.h"

// A recorded turn, taken once more by the agent of today with its model. The record answers the calls. A call that it
// does not answer is refused, or runs in a copy of the workspace; no hook runs.
//
//   const LiveTurn turn = TRY(PrepareLive(interaction, bodies, agent, ""));
//   const LiveRun run = RunLive(turn, {.delay = delay}, stop, executor);
//   if (run.interaction.error) Warn(run.interaction.error->message);
namespace reprise {

// How the recorded turn began.
struct TurnStart {
  AgentState state;                    // before its first request
  std::size_t first_message = 0;       // in `state`: those from here on came during the turn
  bool is_planning = false;            // the model was told of the tool that ends ApprovalMode::kPlan
  std::vector<ToolSpec> of_servers{};  // tools of MCP servers that are not connected now, as it was told of them
  std::vector<PromptModule> words_of_servers{};  // likewise
  std::string instructions{};                    // of the chat, the client and a hook
};

// A call of the recorded turn.
struct AnsweredCall {
  ToolCall call;                         // as the model asked for it
  std::optional<ToolOutcome> outcome{};  // what the model was told; nullopt: the call had no result
  std::vector<EventPayload> shown{};     // the events about it, without the result
};

// A turn that can be run any number of times, at the same time too.
struct LiveTurn {
  PresentAgent agent;
  ModelDirectory::Resolved model;
  Interaction like;  // the recorded turn without events and state
  TurnStart start;
  std::vector<AnsweredCall> calls{};  // in the model's order
  SystemPrompt prompt{};
  FilesOfChat* files = nullptr;
  bool has_tools = true;
  std::vector<AgentEvent> before{};  // that the run has already shown; it goes on after them
  Interrupted where{};               // where it goes on
  // The requests that were sent before the run; its own are put on record after them. nullopt: none are.
  std::optional<std::vector<SentRequest>> sent{};
};

// What happens to a call that the record does not answer.
enum class Unrecorded {
  kRefuse,  // the model is told that the call is not available, and the run goes on
  kStop,    // the run ends there
  kRun,     // it runs in a copy of the workspace, as far as that confines it; rules that deny hold
};

struct LiveOptions {
  Unrecorded unrecorded = Unrecorded::kRefuse;
  FilesThen files_then{};                    // for kRun; null: those of now
  std::vector<std::string> allow_effects{};  // for kRun: tools that may act outside the copy
  Delay delay{};                             // null: failed requests are not retried
  // Called before each request with the run's usage so far. Why no further request may be sent; nullopt: it may.
  std::function<std::optional<std::string>(const TokenUsage& used)> over_budget{};
  // Gets the events as they are shown, those before the run first. One at a time, on any thread. May be null.
  std::function<void(const AgentEvent& event)> on_event{};
  // Likewise text of the model as it comes, which a later event repeats.
  enum class Delta { kText, kThinking };
  std::function<void(Delta kind, std::uint32_t round_index, std::string_view text)> on_delta{};
};

struct LiveRun {
  Interaction interaction;                // finished; with a record if the turn has `sent`
  std::vector<ToolCall> calls{};          // of the whole turn, in the model's order
  std::vector<std::string> unrecorded{};  // "read_file {...}"
  std::unique_ptr<WorkspaceCopy> copy{};  // in which calls ran; null: none was needed
};

// `model`: a full name; empty: the one that the turn would have today. What `agent` and `bodies` refer to must outlive
// the result. kInvalidArgument (reason "unknown_model"); kConflict (reason "not_replayable") if the record
// does not tell how it began; the failures of `bodies` and Recording::Of. REQUIRES:
// CheckReplayable.
Result<LiveTurn> PrepareLive(const Interaction& recorded, RequestBodies& bodies, const PresentAgent& agent,
                             const std::string& model);

// A question beside the turn, to a model without tools. kInvalidArgument (reason "unknown_model").
Result<LiveTurn> PrepareQuestion(const LiveTurn& beside, const std::string& model, std::string system,
                                 std::string question);

// Blocks until the run has ended; works on threads of `executor`. Failures are the interaction's; a stop cancels it.
LiveRun RunLive(const LiveTurn& turn, const LiveOptions& options, const std::stop_token& stop,
                const Executor& executor);

// Whether names and arguments are equal. Members may be in any order.
bool IsSameCall(const ToolCall& a, const ToolCall& b);

}  // namespace reprise
