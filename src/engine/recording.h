#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent_loop.h"
#include "reprise/event.h"
#include "reprise/interaction.h"
#include "reprise/message.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

// What the record knows of one tool call.
struct RecordedCall {
  ToolCall call;  // as the model asked for it
  std::optional<event::ApprovalRequired> asked{};
  std::optional<event::Approved> approved{};
  std::optional<event::Rejected> rejected{};
  bool started = false;                  // it was shown as tool_call
  bool ended = false;                    // it was shown as tool_result
  bool beside_another = false;           // it ran at the same time as another call
  std::optional<ToolOutcome> outcome{};  // what the model was told
  // It never came to run, nor to a question, because the run was stopped before it.
  bool stopped_before() const;
};

// One model request with its repetitions, and the calls it led to.
struct RecordedRound {
  std::vector<event::Retry> retries{};
  std::string thinking{};
  std::optional<Message> message{};  // what the model said; nullopt: nothing that was kept
  std::vector<RecordedCall> calls{};
  TokenUsage usage{};
  bool complete = false;  // the response came to its end
};

// A finished interaction taken apart into what the model, the tools and the people said, so that the agent can be run
// on it again. What was said comes from the final state, what was shown from the events: if somebody changed one of
// them, the two do not fit any more, and the replay says where.
struct Recording {
  // kConflict (reason "not_replayable") if `interaction` has not ended or has no final state.
  static Result<Recording> Of(const Interaction& interaction);

  std::vector<AgentEvent> events;                 // what the agent showed
  std::vector<AgentEvent> last_words;             // cancelled and error events at the end
  InteractionStatus status;                       // it ended with
  std::map<std::uint32_t, RecordedRound> rounds;  // by round_index
  AgentState start;                               // with the user's message
  std::optional<AgentLoop::Interrupted>
      continued;       // set if it went on with calls of an interaction that was interrupted
  AgentLimits limits;  // those that had an effect
  // The process ended before the run did: the record stops in the middle.
  bool cut_off() const;
};

}  // namespace reprise
