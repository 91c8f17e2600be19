#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reprise/message.h"

namespace reprise {

// Detects models that go round in circles. A user message resets everything. The state follows from the messages alone,
// so restoring them restores it.

// The same tool call three times in a row ("same_call"), or two calls alternating three times each ("alternating").
// Calls are equal if their tools and arguments (as JSON values) are. Adjacent equal calls in one response count once,
// because the model saw no result between them.
struct CallLoop {
  std::string_view pattern{};
  int count = 0;        // how often this call has been made
  bool warned = false;  // in an earlier round of the same circle, without effect
};

// Whether this call, from the last message that calls tools, closes such a circle. It need not have run.
std::optional<CallLoop> FindCallLoop(const Messages& messages, std::string_view call_id);

// Consecutive rounds that lead nowhere: either all calls are of one tool and fail with the same error ("same_error";
// errors that differ only in the calls' arguments take more rounds), or no call returns a new result ("no_progress").
struct Standstill {
  std::string_view pattern{};
  std::string tool_name;
  int count = 0;      // rounds
  bool ends = false;  // the model was told and goes on
};

// The standstill that the last round is part of, if all results of that round are there.
std::optional<Standstill> FindStandstill(const Messages& messages);

// The note for the model that is appended to the last result of such a round.
std::string StandstillNote(const Standstill& standstill);

}  // namespace reprise
