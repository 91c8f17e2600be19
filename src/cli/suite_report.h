#pragma once

#include <string>
#include <vector>

#include "terminal/terminal_style.h"

// What a run of recorded chats found, as text for people and programs. Texts may hold any bytes: each function escapes
// them for its format. Each text ends with a line end.
//
//   SuiteReport report{.turns = {{.chat = "trip", .turn = "int_001", .problems = {"answer: ..."}, .state = kFailed}}};
//   Print(TerminalText(report, Colour::kNever));

namespace reprise {

// What the agent did in a turn.
struct TurnSide {
  std::string title;                 // "on record"
  std::vector<std::string> calls{};  // "read_file {...}"
  std::string answer{};
};

struct TurnResult {
  enum class State { kPassed, kFailed, kSkipped };
  std::string chat, turn;  // "trip", "int_002"
  std::string file{};      // the chat's; empty: none
  std::vector<std::string> problems{};
  std::vector<std::string> notes{};  // what was not tested, or why the turn was skipped
  std::vector<TurnSide> sides{};     // on record and with a model, for a look at both; empty: no model was asked
  double ms = 0;
  State state = State::kPassed;
};

struct SuiteReport {
  std::vector<TurnResult> turns{};  // those of a chat stand together
  double seconds = 0;
  std::string asked{};  // what models were asked: "6 requests, ..."; empty: none
};

// The failed turns with at most three problems each, the notes, and a line with the numbers.
std::string TerminalText(const SuiteReport& report, Colour colour);
// One document (schemas/test_report.schema.json).
std::string JsonText(const SuiteReport& report);
// XML for CI servers: a test suite for each chat, a test case for each turn. Characters that XML 1.0 forbids become
// U+FFFD.
std::string JunitText(const SuiteReport& report);
// For the comment of a pull request: a table of the numbers, then the failed turns, at most 60,000 bytes in all.
std::string MarkdownText(const SuiteReport& report);
// A page that is one file, without scripts and requests, for light and dark screens.
std::string HtmlText(const SuiteReport& report);

}  // namespace reprise
