#include "cli/suite_checks.h"

#include <re2/re2.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <variant>

#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "cli/check_values.h"
#include "engine/run_guard.h"
#include "tools/arguments.h"

namespace reprise {
namespace {

constexpr std::size_t kMostShown = 160;  // characters of a quoted text
constexpr std::size_t kMostListed = 5;   // calls in a message

// A call of the turn or of a sub-agent in it.
struct MadeCall {
  std::string id, name, input;
  Json arguments;  // null if `input` cannot be read
  bool nested = false;
  bool began = true;  // else it was refused or rejected
};

// A file before the turn and after it.
struct FileMove {
  std::optional<FileVersion> before, after;
};

struct TurnFacts {
  std::vector<MadeCall> calls{};  // of sub-agents too, and those that did not begin
  const event::Answer* answer = nullptr;
  std::map<std::string, FileMove> files{};
  std::int64_t omitted_files = 0;
  std::set<std::uint32_t> rounds{};
};

MadeCall MadeCallOf(const event::ToolCallStarted& started, bool nested) {
  const std::string& input = started.tool_input;
  auto arguments = ParseJson(IsBlank(input) ? "{}" : input);
  return {.id = started.id,
          .name = started.tool_name,
          .input = input,
          .arguments = arguments && arguments->is_object() ? *std::move(arguments) : Json(nullptr),
          .nested = nested};
}

bool IsOfModel(const EventPayload& payload) {
  return std::holds_alternative<event::Usage>(payload) || std::holds_alternative<event::Thinking>(payload) ||
         std::holds_alternative<event::MessageText>(payload) || std::holds_alternative<event::Answer>(payload) ||
         std::holds_alternative<event::ToolCallStarted>(payload);
}

// Adds to the calls that began those that the model only asked for. Those of sub-agents are known if somebody was
// asked.
void AddRefusedCalls(const Interaction& turn, std::vector<MadeCall>& calls) {
  std::set<std::string> known;
  for (const MadeCall& call : calls) known.insert(call.id);
  const auto add = [&](const std::string& id, const std::string& name, const std::string& input, bool nested) {
    if (!known.insert(id).second) return;
    MadeCall call = MadeCallOf({.id = id, .tool_name = name, .tool_input = input}, nested);
    call.began = false;
    calls.push_back(std::move(call));
  };
  for (const AgentEvent& event : turn.events) {
    const auto* asked = std::get_if<event::ApprovalRequired>(&event.payload);
    if (asked) add(asked->call_id, asked->tool_name, asked->tool_input, asked->call_id.find('/') != std::string::npos);
  }
  if (!turn.record || !turn.final_agent_state) return;
  const Messages& messages = turn.final_agent_state->messages;
  for (std::size_t i = turn.record->first_message; i < messages.size(); ++i) {
    for (const ToolCall& call : messages[i].tool_calls) add(call.id, call.name, call.arguments, false);
  }
}

TurnFacts FactsOf(const Interaction& turn) {
  TurnFacts facts;
  for (const AgentEvent& event : turn.events) {
    if (IsOfModel(event.payload)) facts.rounds.insert(event.round_index);
    if (const auto* answer = std::get_if<event::Answer>(&event.payload)) facts.answer = answer;
    if (const auto* call = std::get_if<event::ToolCallStarted>(&event.payload)) {
      facts.calls.push_back(MadeCallOf(*call, false));
    }
    if (const auto* nested = std::get_if<event::Nested>(&event.payload)) {
      const auto* call = std::get_if<event::ToolCallStarted>(&nested->step);
      if (call) facts.calls.push_back(MadeCallOf(*call, true));
    }
    if (const auto* changed = std::get_if<event::FilesChanged>(&event.payload)) {
      for (const WorkspaceChange& change : changed->changes) {
        const auto [file, is_new] = facts.files.try_emplace(change.path, FileMove{change.before, change.after});
        if (!is_new) file->second.after = change.after;
      }
      facts.omitted_files += changed->omitted;
    }
  }
  AddRefusedCalls(turn, facts.calls);
  // Round 0 of a turn that went on with another one may be that one's calls (RunRecord).
  if (turn.record && turn.record->resumed_from && !turn.record->resumed_from->call_ids.empty()) facts.rounds.erase(0);
  return facts;
}

std::string Quoted(std::string_view text) { return DumpJson(Json(Shortened(text, kMostShown))); }

// Whether the value has what the check asks for.
bool Holds(const ValueCheck& check, const Json& value) {
  if (check.pattern) return value.is_string() && re2::RE2::PartialMatch(value.get<std::string>(), *check.pattern);
  if (check.kind == ValueCheck::Kind::kMembers) {
    for (std::size_t i = 0; i < check.names.size(); ++i) {
      const Json& member = MemberOf(value, check.names[i]);
      if (!value.is_object() || !value.contains(check.names[i]) || !Holds(check.parts[i], member)) return false;
    }
    return value.is_object();
  }
  if (check.kind == ValueCheck::Kind::kElements) {
    if (!value.is_array() || value.size() != check.parts.size()) return false;
    for (std::size_t i = 0; i < check.parts.size(); ++i) {
      if (!Holds(check.parts[i], value[i])) return false;
    }
    return true;
  }
  return value == check.value;
}

bool Fits(const CallCheck& check, const MadeCall& call) {
  return check.name == call.name && (!check.arguments || Holds(*check.arguments, call.arguments));
}

std::string Shown(const CallCheck& check) {
  return check.name + (check.arguments ? " " + Shortened(DumpJson(check.arguments->value), kMostShown) : "");
}
std::string Shown(const MadeCall& call) { return call.name + " " + Shortened(call.input, kMostShown); }

// The turn's calls, for the end of a sentence.
std::string Listed(const std::vector<const MadeCall*>& calls) {
  if (calls.empty()) return "it called no tool";
  std::string text = "it called ";
  for (std::size_t i = 0; i < std::min(calls.size(), kMostListed); ++i) text += (i == 0 ? "" : ", ") + Shown(*calls[i]);
  return text + (calls.size() > kMostListed ? " and " + Grouped(calls.size() - kMostListed) + " more" : "");
}

// Gives each entry of a list a call of its own (maximum matching by augmenting paths).
class CallMatching {
 public:
  CallMatching(const std::vector<CallCheck>& list, const std::vector<const MadeCall*>& calls)
      : list_(list), calls_(calls), taken_by_(calls.size()) {}

  bool Place(std::size_t entry) {
    seen_.assign(calls_.size(), false);
    return FindCall(entry);
  }

 private:
  bool FindCall(std::size_t entry) {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (seen_[i] || !Fits(list_[entry], *calls_[i])) continue;
      seen_[i] = true;
      if (taken_by_[i] && !FindCall(*taken_by_[i])) continue;
      taken_by_[i] = entry;
      return true;
    }
    return false;
  }

  const std::vector<CallCheck>& list_;
  const std::vector<const MadeCall*>& calls_;
  std::vector<std::optional<std::size_t>> taken_by_;
  std::vector<bool> seen_{};
};

// Runs the checks of one turn.
class TurnCheck {
 public:
  TurnCheck(const Interaction& turn, const ContentOf& content_of, std::optional<double> cost)
      : turn_(turn), content_of_(content_of), cost_(cost), facts_(FactsOf(turn)) {}

  void Run(const TurnChecks& checks) {
    if (checks.calls) CheckCalls(*checks.calls);
    for (const CallCheck& never : checks.never) CheckNever(never);
    if (checks.answer) CheckAnswer(*checks.answer);
    for (const FileCheck& file : checks.files) CheckFile(file);
    CheckMax(checks.max);
  }

  std::vector<CheckFailure> TakeFailures() { return std::move(failures_); }

 private:
  void Add(const char* check, std::string message) { failures_.push_back({check, std::move(message)}); }

  void CheckCalls(const CallsCheck& check) {
    std::vector<const MadeCall*> calls;
    for (const MadeCall& call : facts_.calls) {
      if (!call.nested && call.began) calls.push_back(&call);
    }
    if (check.mode == CallsCheck::Mode::kExact) return CheckExactCalls(check.list, calls);
    CallMatching matching(check.list, calls);
    auto next = calls.begin();
    for (std::size_t i = 0; i < check.list.size(); ++i) {
      const CallCheck& wanted = check.list[i];
      if (check.mode == CallsCheck::Mode::kSubset) {
        if (!matching.Place(i)) Add("calls", "the turn did not call " + Shown(wanted) + "; " + Listed(calls));
        continue;
      }
      next = std::find_if(next, calls.end(), [&](const MadeCall* call) { return Fits(wanted, *call); });
      if (next == calls.end()) {
        return Add("calls", "the turn did not call " + Shown(wanted) + (i == 0 ? "" : " after the calls before it") +
                                "; " + Listed(calls));
      }
      ++next;
    }
  }

  void CheckExactCalls(const std::vector<CallCheck>& list, const std::vector<const MadeCall*>& calls) {
    for (std::size_t i = 0; i < std::min(list.size(), calls.size()); ++i) {
      if (Fits(list[i], *calls[i])) continue;
      return Add("calls", "call " + Grouped(i + 1) + " is " + Shown(*calls[i]) + ", not " + Shown(list[i]));
    }
    if (list.size() == calls.size()) return;
    Add("calls",
        "the turn made " + Counted(calls.size(), "call") + ", not " + Grouped(list.size()) + "; " + Listed(calls));
  }

  // Arguments that cannot be read could be any.
  void CheckNever(const CallCheck& never) {
    for (const MadeCall& call : facts_.calls) {
      const bool unreadable = call.arguments.is_null() && never.arguments;
      if (call.name != never.name || (!unreadable && !Fits(never, call))) continue;
      const char* const did = call.began ? " called " : " wanted to call ";
      Add("never", (call.nested ? "a sub-agent" : "the turn") + std::string(did) + Shown(call) +
                       (unreadable ? ", arguments that cannot be read" : ""));
    }
  }

  void CheckAnswer(const TextCheck& check) {
    if (facts_.answer == nullptr) {
      return Add("answer", "the turn has no answer; its status is " + std::string(ToString(turn_.status)));
    }
    CheckText("answer", "the answer", check, facts_.answer->content);
  }

  void CheckText(const char* name, const std::string& subject, const TextCheck& check, const std::string& text) {
    switch (check.kind) {
      case TextCheck::Kind::kEquals:
        if (text != check.text) Add(name, subject + " is not the expected text: " + Difference(text, check.text));
        return;
      case TextCheck::Kind::kContains:
        if (text.find(check.text) != std::string::npos) return;
        return Add(name, subject + " does not contain " + Quoted(check.text) + ": " + Quoted(text));
      case TextCheck::Kind::kMatches:
        if (re2::RE2::PartialMatch(text, *check.pattern)) return;
        return Add(name, subject + " does not match " + Quoted(check.text) + ": " + Quoted(text));
      case TextCheck::Kind::kSchema:
        if (const auto checked = check.schema->Check(text); !checked) {
          Add(name, checked.error().message + " It is " + Quoted(text));
        }
        return;
    }
  }

  static std::string Difference(const std::string& text, const std::string& expected) {
    const std::vector<std::string> is = LinesOf(text), should = LinesOf(expected);
    for (std::size_t i = 0; i < std::max(is.size(), should.size()); ++i) {
      const std::string line = "line " + Grouped(i + 1);
      if (i >= is.size()) return line + " is missing, " + Quoted(should[i]);
      if (i >= should.size()) return line + " should not be there: " + Quoted(is[i]);
      if (is[i] != should[i]) return line + " is " + Quoted(is[i]) + ", not " + Quoted(should[i]);
    }
    return "it differs in its line ends";
  }

  void CheckFile(const FileCheck& check) {
    const auto found = facts_.files.find(check.path);
    if (found == facts_.files.end()) {
      const std::string more = facts_.omitted_files > 0
                                   ? ", as far as the record says: it leaves out " +
                                         Counted(static_cast<std::uint64_t>(facts_.omitted_files), "changed file")
                                   : "";
      return Add("files", "the turn did not change " + check.path + more);
    }
    const auto& [before, after] = found->second;
    if (check.kind == FileCheck::Kind::kChanged) {
      if (before == after) Add("files", check.path + " is the same after the turn as before it");
      return;
    }
    if (check.kind == FileCheck::Kind::kAbsent) {
      if (after) Add("files", check.path + " exists after the turn");
      return;
    }
    if (!after) return Add("files", check.path + " does not exist after the turn");
    if (after->kind != FileVersion::Kind::kFile) return Add("files", check.path + " is not a regular file");
    const auto content = content_of_ && after->is_kept() ? content_of_(*after) : std::nullopt;
    if (!content) return Add("files", "the content of " + check.path + " after the turn is not on record");
    CheckText("files", check.path, check.content, *content);
  }

  void CheckMax(const MaxCheck& max) {
    const TokenUsage usage = UsedBy(turn_);
    CheckCount(max.rounds, static_cast<std::int64_t>(facts_.rounds.size()), "rounds");
    CheckCount(max.calls, std::ranges::count(facts_.calls, true, &MadeCall::began), "calls");
    CheckCount(max.input_tokens, usage.input_tokens, "input tokens");
    CheckCount(max.output_tokens, usage.output_tokens, "output tokens");
    if (max.cost && !cost_) Add("max", "the cost of the turn is unknown, because its model has no price");
    if (max.cost && cost_ > *max.cost) {
      Add("max", "the turn cost " + Decimal(*cost_) + ", more than " + Decimal(*max.cost));
    }
    if (!max.seconds) return;
    if (!turn_.completed_at) return Add("max", "the turn has not ended, so its seconds are unknown");
    const double seconds = std::chrono::duration<double>(*turn_.completed_at - turn_.created_at).count();
    if (seconds > *max.seconds)
      Add("max", "the turn took " + Decimal(seconds) + " s, more than " + Decimal(*max.seconds));
  }

  void CheckCount(const std::optional<std::int64_t>& most, std::int64_t count, const char* things) {
    if (!most || count <= *most) return;
    Add("max", "the turn took " + Grouped(static_cast<std::uint64_t>(count)) + " " + things + ", more than " +
                   Grouped(static_cast<std::uint64_t>(*most)));
  }

  static std::string Decimal(double number) {
    char text[40];
    std::snprintf(text, sizeof text, "%.12g", number);
    return text;
  }

  const Interaction& turn_;
  const ContentOf& content_of_;
  const std::optional<double> cost_;
  const TurnFacts facts_;
  std::vector<CheckFailure> failures_{};
};

// The checks of every turn, then those of this one.
std::vector<const TurnChecks*> ChecksOf(const SuiteChecks& checks, const InteractionId& turn, std::size_t number) {
  std::vector<const TurnChecks*> found = {&checks.every};
  for (const std::string& name : {std::to_string(number), turn.str()}) {
    if (const auto own = checks.turns.find(name); own != checks.turns.end()) found.push_back(&own->second);
  }
  return found;
}

}  // namespace

std::vector<CheckFailure> RunChecks(const SuiteChecks& checks, const Interaction& turn, std::size_t number,
                                    const ContentOf& content_of, std::optional<double> cost) {
  TurnCheck check(turn, content_of, cost);
  for (const TurnChecks* each : ChecksOf(checks, turn.id, number)) check.Run(*each);
  return check.TakeFailures();
}

std::vector<std::string> ChecksForModel(const SuiteChecks& checks, const Interaction& turn, std::size_t number) {
  bool command = false, judge = false, at_least = false;
  for (const TurnChecks* each : ChecksOf(checks, turn.id, number)) {
    command = command || each->command;
    judge = judge || each->judge;
    at_least = at_least || each->at_least;
  }
  std::vector<std::string> names;
  if (command) names.emplace_back("command");
  if (judge) names.emplace_back("judge");
  if (at_least) names.emplace_back("at_least");
  return names;
}

LiveChecks LiveChecksOf(std::span<const SuiteChecks> checks, const InteractionId& turn, std::size_t number) {
  LiveChecks found;
  for (const SuiteChecks& some : checks) {
    for (const TurnChecks* each : ChecksOf(some, turn, number)) {
      const MaxCheck& max = each->max;
      const bool is_limited =
          max.rounds || max.calls || max.input_tokens || max.output_tokens || max.seconds || max.cost;
      found.any = found.any || each->calls || !each->never.empty() || each->answer || !each->files.empty() ||
                  is_limited || each->judge || each->command;
      if (each->command) found.commands.push_back(*each->command);
      if (each->judge) found.judges.push_back(*each->judge);
      if (each->at_least) found.at_least = each->at_least;
    }
  }
  return found;
}

std::vector<std::string> UnknownTurns(const SuiteChecks& checks, std::span<const InteractionId> turns) {
  std::vector<std::string> unknown;
  for (const auto& [name, own] : checks.turns) {
    const auto number = ParseNumber<std::size_t>(name);
    const bool is_there = number
                              ? *number <= turns.size()
                              : std::ranges::any_of(turns, [&](const InteractionId& id) { return id.str() == name; });
    if (!is_there) unknown.push_back(name);
  }
  return unknown;
}

}  // namespace reprise
