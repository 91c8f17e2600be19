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

// The event that begins every interaction: number 1.
AgentEvent StartOf(const Interaction& interaction);

// The events of a stored interaction as its stream showed them, with the frames that the file leaves out because they
// follow from the rest: interaction_started is number 1, interaction_complete the one after the last.
std::vector<AgentEvent> RecordedEvents(const Interaction& interaction);

// A closed log of them.
std::shared_ptr<EventLog> RecordedLog(const Interaction& interaction);

// Where the run of an interaction began that has no RunRecord: version 0.1 stored none, and documents of other programs
// have none. Derived from its messages and events, as good as these tell. kConflict (reason "not_replayable") if the
// final state does not have the user's message, or if the run went on with calls of another interaction.
// REQUIRES: it has a final state.
Result<RunRecord> DeriveRecord(const Interaction& interaction);

// Something that a tool did while it ran and that was shown: a question, the answer to it, or a change of the agenda.
struct RecordedStep {
  std::size_t at;  // in Recording::events
  EventPayload payload;
};

// What the record knows of one tool call.
struct RecordedCall {
  ToolCall call;  // as the model asked for it
  std::optional<event::ApprovalRequired> asked{};
  std::optional<event::Approved> approved{};
  std::optional<event::Rejected> rejected{};
  bool withdrawn = false;                // what was shown was not so any more, and it was not asked about again
  std::optional<std::string> changed{};  // the arguments that a hook put in place of the model's
  bool started = false;                  // it was shown as tool_call
  bool beside_another = false;           // it ran at the same time as another call
  std::vector<RecordedStep> steps{};
  std::optional<std::size_t> result_at{};  // where it was shown as tool_result, in Recording::events
  std::optional<ToolOutcome> outcome{};    // what the model was told
  bool ended() const { return result_at.has_value(); }
  // It never came to run, because the run was stopped before it.
  bool stopped_before() const;
  // Nobody was asked: the server, or the chat by then, was told to refuse what needs approval.
  bool was_refused() const;
  // It changed the tasks or the plan, which happens to one call at a time.
  bool changed_agenda() const;
};

// One model request with its repetitions, and the calls it led to.
struct RecordedRound {
  std::vector<event::Retry> retries{};
  std::string thinking{};
  std::optional<Message> message{};  // what the model said; nullopt: nothing that was kept
  std::vector<RecordedCall> calls{};
  TokenUsage usage{};
  bool complete = false;    // the response came to its end
  std::string truncated{};  // why its text is not whole; empty: it is
};

// kConflict (reason "not_replayable") if `interaction` has not ended, has no final state, or no events that
// tell of it to its end: those are of others, that were imported.
Result<void> CheckReplayable(const Interaction& interaction);

// A finished interaction taken apart into what the model, the tools and the people said, so that the agent can be run
// on it again. What was said comes from the final state, what was shown from the events: if somebody changed one of
// them, the two do not fit any more, and the replay says where.
struct Recording {
  // kConflict (reason "not_replayable") if the state does not have the user's message. REQUIRES: CheckReplayable.
  static Result<Recording> Of(const Interaction& interaction);

  std::vector<AgentEvent> events;                 // what the agent showed
  std::vector<AgentEvent> last_words;             // cancelled and error events at the end
  InteractionStatus status;                       // it ended with
  std::map<std::uint32_t, RecordedRound> rounds;  // by round_index
  // With the user's message. What the agenda was at first is not on record; it is another than what it became.
  AgentState start;
  AgentState end;                        // without its messages
  std::optional<Interrupted> continued;  // set if it went on with calls of an interaction that was interrupted
  AgentLimits limits;                    // those that had an effect
  // The process ended before the run did: the record stops in the middle.
  bool cut_off() const;
};

}  // namespace reprise
