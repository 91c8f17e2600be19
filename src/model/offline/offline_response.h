#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "reprise/error.h"
#include "reprise/message.h"

namespace reprise {

// What the offline model says in one round, worked out before any of it is streamed.
struct OfflineResponse {
  std::string thinking = {};
  std::string text = {};
  std::vector<ToolCall> tool_calls = {};
  std::chrono::milliseconds pause{};  // between two words; zero: all at once
  std::optional<Error> failure = {};  // how it ends, after what it says
  bool fails_first_attempt = false;   // with `failure` and not a word; the second attempt says all and does not fail
};

}  // namespace reprise
