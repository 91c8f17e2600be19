#include "approval/loop_guard.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"

namespace reprise {
namespace {

constexpr std::size_t kTimes = 3;

struct Made {
  const ToolCall* call;
  const Message* round;
};

// The order of members does not matter.
bool IsSame(const ToolCall& a, const ToolCall& b) {
  if (a.name != b.name) return false;
  if (a.arguments == b.arguments) return true;
  const auto first = ParseJson(a.arguments), second = ParseJson(b.arguments);
  return first && second && IsSameInAnyOrder(*first, *second);
}

// The calls since the user spoke, up to the one in question.
std::vector<Made> CallsSoFar(const std::vector<Message>& messages, std::string_view call_id) {
  auto from = std::find_if(messages.rbegin(), messages.rend(), [](const Message& message) {
                return message.role == Role::kUser;
              }).base();
  std::vector<const Message*> rounds;
  for (; from != messages.end(); ++from) {
    if (!from->tool_calls.empty()) rounds.push_back(&*from);
  }
  std::vector<Made> made;
  for (const Message* round : rounds) {
    for (const ToolCall& call : round->tool_calls) {
      const bool again = !made.empty() && made.back().round == round && IsSame(*made.back().call, call);
      if (!again) made.push_back({&call, round});
      if (round == rounds.back() && call.id == call_id) break;
    }
  }
  return made;
}

// How many of the last calls repeat the one `period` before them, that many at the beginning included.
std::size_t Repeating(const std::vector<Made>& made, std::size_t period) {
  std::size_t length = std::min(made.size(), period);
  while (length < made.size()) {
    const std::size_t next = made.size() - 1 - length;
    if (!IsSame(*made[next].call, *made[next + period].call)) break;
    ++length;
  }
  return length;
}

}  // namespace

std::optional<CallLoop> FindCallLoop(const std::vector<Message>& messages, std::string_view call_id) {
  const std::vector<Made> made = CallsSoFar(messages, call_id);
  for (const std::size_t period : {1, 2}) {
    const std::size_t length = Repeating(made, period);
    if (length < kTimes * period) continue;
    const Made& closing = made[made.size() - 1 - (length - kTimes * period)];  // where it was first told
    return CallLoop{.count = static_cast<int>((length + period - 1) / period),
                    .warned = closing.round != made.back().round};
  }
  return std::nullopt;
}

}  // namespace reprise
