#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "reprise/message.h"

namespace reprise {

// A model that makes the same tool call three times in a row, or two calls in turn three times each, goes round in a
// circle. Calls are the same if their tools and arguments (as JSON values) are; equal calls side by side in one
// response count once, because the model has not seen a result between them. What the user says begins anew.
struct CallLoop {
  int count = 0;        // how often this call has been made
  bool warned = false;  // in an earlier round of the same circle: being told did not help
};

// Whether this call of the last message that calls tools closes such a circle. Follows from the messages alone, so
// whatever restores them restores it.
std::optional<CallLoop> FindCallLoop(const std::vector<Message>& messages, std::string_view call_id);

}  // namespace reprise
