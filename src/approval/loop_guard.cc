#include "approval/loop_guard.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"

namespace reprise {
namespace {

constexpr std::size_t kTimes = 3;

struct Made {
  const ToolCall* call;
  const Message* round;
};

// Ignores the order of members.
bool IsSame(const ToolCall& a, const ToolCall& b) {
  if (a.name != b.name) return false;
  if (a.arguments == b.arguments) return true;
  const auto first = ParseJson(a.arguments), second = ParseJson(b.arguments);
  return first && second && IsSameInAnyOrder(*first, *second);
}

// The calls since the user last spoke, up to the given one.
std::vector<Made> CallsSoFar(const Messages& messages, std::string_view call_id) {
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

// How many of the last calls form a cycle of length `period`, including its first pass.
std::size_t Repeating(const std::vector<Made>& made, std::size_t period) {
  std::size_t length = std::min(made.size(), period);
  while (length < made.size()) {
    const std::size_t next = made.size() - 1 - length;
    if (!IsSame(*made[next].call, *made[next + period].call)) break;
    ++length;
  }
  return length;
}

// --- rounds that lead nowhere ----------------------------------------------------------------------------------------

constexpr std::string_view kNote = "\n(Note: the last ";
constexpr std::size_t kMostRounds = 64;  // to look back at
constexpr std::size_t kTelling = 200;    // bytes of a result that different calls do not share by chance
constexpr int kEqualErrors = 4, kSimilarErrors = 6, kStaleRounds = 4;  // thresholds for telling the model
constexpr int kEqualErrorsEnd = 6, kSimilarErrorsEnd = 9, kStaleRoundsEnd = 6;

struct Returned {
  const ToolCall* call;
  std::string_view text;
  bool is_error;
};
using Round = std::vector<Returned>;

// The result without our note.
std::string_view ResultText(const Message& message) {
  const std::string_view text = message.content ? std::string_view(*message.content) : std::string_view();
  const std::size_t note = text.rfind(kNote);
  return text.substr(0, note);
}

// The rounds since the user spoke, newest first; empty if the newest still lacks a result.
std::vector<Round> RoundsBack(const Messages& messages) {
  std::vector<Round> rounds;
  std::vector<const Message*> results;
  for (auto message = messages.rbegin(); message != messages.rend() && rounds.size() < kMostRounds; ++message) {
    if (message->role == Role::kUser) break;
    if (message->role == Role::kTool) results.push_back(&*message);
    if (message->tool_calls.empty()) continue;
    Round round;
    for (const ToolCall& call : message->tool_calls) {
      const auto result =
          std::ranges::find_if(results, [&](const Message* each) { return each->tool_call_id == call.id; });
      if (result == results.end()) return rounds;
      round.push_back({&call, ResultText(**result), (*result)->is_error});
    }
    rounds.push_back(std::move(round));
    results.clear();
  }
  return rounds;
}

// The error without the texts of the call's arguments.
std::string ErrorItself(const Returned& failed) {
  std::string text(failed.text);
  const auto arguments = ParseJson(failed.call->arguments);
  if (!arguments || !arguments->is_object()) return text;
  for (const auto& [name, value] : arguments->items()) {
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) continue;
    const std::string& given = value.get_ref<const std::string&>();
    for (std::size_t at = text.find(given); at != std::string::npos; at = text.find(given, at))
      text.erase(at, given.size());
  }
  return text;
}

// How many of the last rounds consist of this one error of one tool.
template <typename ErrorOf>
int RoundsWithOneError(const std::vector<Round>& rounds, ErrorOf error_of) {
  if (rounds.empty() || rounds.front().empty()) return 0;
  const Returned& last = rounds.front().front();
  const auto error = error_of(last);
  const auto is_same = [&](const Returned& each) {
    return each.is_error && each.call->name == last.call->name && error_of(each) == error;
  };
  const auto end = std::ranges::find_if_not(
      rounds, [&](const Round& round) { return !round.empty() && std::ranges::all_of(round, is_same); });
  return static_cast<int>(end - rounds.begin());
}

// Whether the tool gave the same result before.
bool IsStale(const Returned& result, const std::vector<Round>& rounds, std::size_t round) {
  for (std::size_t before = round + 1; before < rounds.size(); ++before) {
    for (const Returned& each : rounds[before]) {
      if (each.call->name != result.call->name || each.text != result.text) continue;
      if (result.text.size() >= kTelling || IsSame(*each.call, *result.call)) return true;
    }
  }
  return false;
}

int StaleRounds(const std::vector<Round>& rounds) {
  int count = 0;
  for (std::size_t i = 0; i < rounds.size(); ++i, ++count) {
    const bool is_stale =
        std::ranges::all_of(rounds[i], [&](const Returned& each) { return IsStale(each, rounds, i); });
    if (!is_stale) break;
  }
  return count;
}

}  // namespace

std::optional<Standstill> FindStandstill(const Messages& messages) {
  const std::vector<Round> rounds = RoundsBack(messages);
  if (rounds.empty()) return std::nullopt;
  const auto found = [&](std::string_view pattern, int count, int end) {
    return Standstill{pattern, rounds.front().back().call->name, count, count >= end};
  };
  const int equal = RoundsWithOneError(rounds, [](const Returned& each) { return each.text; });
  if (equal >= kEqualErrors) return found("same_error", equal, kEqualErrorsEnd);
  const int similar = RoundsWithOneError(rounds, ErrorItself);
  if (similar >= kSimilarErrors) return found("same_error", similar, kSimilarErrorsEnd);
  const int stale = StaleRounds(rounds);
  if (stale >= kStaleRounds) return found("no_progress", stale, kStaleRoundsEnd);
  return std::nullopt;
}

std::string StandstillNote(const Standstill& standstill) {
  std::string note = std::string(kNote) + std::to_string(standstill.count);
  note += standstill.pattern == "same_error"
              ? " rounds of calls failed in the same way. Find out why before you try again, or do it in another way."
              : " rounds of calls brought nothing new. Work with what you know, or say what is missing.";
  return note + " If nothing changes the turn ends.)";
}

std::optional<CallLoop> FindCallLoop(const Messages& messages, std::string_view call_id) {
  const std::vector<Made> made = CallsSoFar(messages, call_id);
  for (const std::size_t period : {1, 2}) {
    const std::size_t length = Repeating(made, period);
    if (length < kTimes * period) continue;
    const Made& closing = made[made.size() - 1 - (length - kTimes * period)];  // the first warning
    return CallLoop{.pattern = period == 1 ? "same_call" : "alternating",
                    .count = static_cast<int>((length + period - 1) / period),
                    .warned = closing.round != made.back().round};
  }
  return std::nullopt;
}

}  // namespace reprise
