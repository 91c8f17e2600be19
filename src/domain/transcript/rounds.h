#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "reprise/event.h"
#include "reprise/interaction.h"
#include "reprise/timestamp.h"

namespace reprise {

// A turn as other programs' formats see it: a list of answers of the model, each with the calls that it asked for.
struct Round {
  struct Call {
    std::string id, name, arguments;  // `arguments` as the model wrote them
    std::string result{};
    bool has_result = false, is_error = false;
    std::vector<Attachment> files{};  // of the result
    std::optional<event::ApprovalRequired> asked{};
    std::optional<event::Approved> approved{};
    std::optional<event::Rejected> rejected{};
    Timestamp answered_at{}, at{};      // of the answer to `asked`, of the result
    std::vector<Round> of_sub_agent{};  // the rounds of the sub-agent that it started
  };
  Timestamp at{};  // of its first event
  std::string thinking{}, text{};
  std::string extras{};  // Message::extras
  std::vector<Call> calls{};
  TokenUsage usage{};
};

// The arguments of a call as an object, which other formats want; under "unparsed" if they are none.
Json ArgumentsObject(const Round::Call& call);

// From the messages, which have every call, and the events, which have times, whole results and approvals. The state
// may be shortened as in AddedInteraction. Events alone will do for a turn without a state.
std::vector<Round> RoundsOf(const AddedInteraction& turn);

}  // namespace reprise
