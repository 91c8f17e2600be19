#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "reprise/event.h"
#include "reprise/event_log.h"
#include "reprise/interaction.h"
#include "reprise/message.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

// The first event of every interaction, number 1.
AgentEvent StartOf(const Interaction& interaction);

// The events of a stored interaction as its stream showed them, including those that the file omits because they follow
// from the rest: interaction_started is number 1, interaction_complete comes last.
std::vector<AgentEvent> RecordedEvents(const Interaction& interaction);

// A closed log of these events.
std::shared_ptr<EventLog> RecordedLog(const Interaction& interaction);

// Where the run of an interaction without a RunRecord began: version 0.1 and other programs store none. Derived from
// messages and events as well as possible. kConflict (reason "not_replayable") if the final state lacks the user's
// message, or if the run continued calls of another interaction. REQUIRES: it has a final state.
Result<RunRecord> DeriveRecord(const Interaction& interaction);

// A visible act of a tool while it ran: a question (about a host, too), its answer, or a change of the agenda.
struct RecordedStep {
  std::size_t at;  // in Recording::events
  EventPayload payload;
};

// The recorded facts of one tool call.
struct RecordedCall {
  ToolCall call;  // as the model asked for it
  std::optional<event::ApprovalRequired> asked{};
  std::optional<event::Approved> approved{};
  std::optional<event::Rejected> rejected{};
  bool withdrawn = false;                // the call had changed since it was shown, and was not asked about again
  std::optional<std::string> changed{};  // the arguments that a hook substituted
  bool started = false;                  // it was shown as tool_call
  bool beside_another = false;           // it ran at the same time as another call
  std::vector<RecordedStep> steps{};
  std::optional<std::size_t> result_at{};  // the index of its tool_result in Recording::events
  std::optional<ToolOutcome> outcome{};    // what the model was told
  bool ended() const { return result_at.has_value(); }
  // The run was stopped before the call ran.
  bool stopped_before() const;
  // The call was refused without asking, because the server or the chat refused all calls that need approval.
  bool was_refused() const;
  // The call changed the tasks or the plan; such calls do not run together.
  bool changed_agenda() const;
};

// One model request with its retries, and the calls it led to.
struct RecordedRound {
  std::vector<event::Retry> retries{};
  std::string thinking{};
  std::optional<Message> message{};  // the model's message; nullopt if none was kept
  std::vector<RecordedCall> calls{};
  TokenUsage usage{};
  bool complete = false;                   // the response was complete
  std::string truncated{};                 // why its text is cut; empty if it is not
  std::optional<std::string> sent_back{};  // why a check did not accept the answer
  std::vector<event::WebSearch> searches{};
  std::vector<Citation> citations{};  // in its text
  bool pauses = false;                // the provider paused, and the next round went on
};

// kConflict (reason "not_replayable") if `interaction` has not ended or has no final state, or if its events do not
// show its end, as in some imports.
Result<void> CheckReplayable(const Interaction& interaction);

// A finished interaction taken apart into the words of the model, the tools and the people, so that the agent can run
// on them again. Words come from the final state, visible acts from the events; if somebody changed one of the two,
// they no longer match, and the replay says where.
struct Recording {
  // kConflict (reason "not_replayable") if the state lacks the user's message. REQUIRES: CheckReplayable.
  static Result<Recording> Of(const Interaction& interaction);

  std::vector<AgentEvent> events;                 // what the agent showed
  std::vector<AgentEvent> last_words;             // cancelled and error events at the end
  InteractionStatus status;                       // its final status
  std::map<std::uint32_t, RecordedRound> rounds;  // by round_index
  // With the user's message. The first agenda is not on record, so one that differs from the changed agenda stands in.
  AgentState start;
  AgentState end;                        // without its messages
  std::optional<Interrupted> continued;  // set if it continued calls of an interrupted interaction
  AgentLimits limits;                    // only the limits that had an effect
  // The process ended before the run did, so the record stops in the middle.
  bool cut_off() const;
};

}  // namespace reprise
