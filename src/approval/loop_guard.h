#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reprise/message.h"

namespace reprise {

// Ways in which a model goes round in a circle. What the user says begins anew. All this follows from the messages
// alone, so whatever restores them restores it.

// The same tool call three times in a row ("same_call"), or two calls in turn three times each ("alternating"). Calls
// are the same if their tools and arguments (as JSON values) are; equal calls side by side in one response count once,
// because the model has not seen a result between them.
struct CallLoop {
  std::string_view pattern{};
  int count = 0;        // how often this call has been made
  bool warned = false;  // in an earlier round of the same circle: being told did not help
};

// Whether this call of the last message that calls tools closes such a circle. The call need not be run.
std::optional<CallLoop> FindCallLoop(const Messages& messages, std::string_view call_id);

// Rounds in a row that lead nowhere, whatever the calls are: all of a tool's calls fail with the same error
// ("same_error"; an error that differs only in what the calls were given counts for less), or no call brings anything
// that its tool has not said before ("no_progress").
struct Standstill {
  std::string_view pattern{};
  std::string tool_name;
  int count = 0;      // rounds
  bool ends = false;  // it was told of it, and goes on
};

// Whether the last round, all of whose results are there, is one of them.
std::optional<Standstill> FindStandstill(const Messages& messages);

// What is added to the last result of such a round, for the model to read.
std::string StandstillNote(const Standstill& standstill);

}  // namespace reprise
