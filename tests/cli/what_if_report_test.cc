#include "cli/what_if_report.h"

#include <string>
#include <string_view>

#include "support/schema_validator.h"
#include "support/test.h"

namespace reprise::test::what_if_report_test {
namespace {

bool Contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TriedRun Run(const std::string& model, const std::string& answer) {
  TriedRun run;
  run.model = model;
  run.status = "COMPLETED";
  run.answer = answer;
  run.calls = {"read_file {\"path\":\"a\x1b[31m.txt\"}"};
  run.cost = 0.5;
  run.ms = 1500;
  run.was_made = true;
  return run;
}

WhatIfReport Report() {
  TriedTurn turn{.chat = "trip", .turn = "int_001", .at = 12};
  turn.recorded = Run("a/x", "Yes.\nOr no.");
  turn.runs = {Run("a/x", "Yes."), Run("a/x", "No."), Run("b/y", "\x1b[2J")};
  turn.runs[1].passed = false;
  turn.runs[1].problem = "answer: no";
  return {.turns = {turn}, .seconds = 3, .asked = "3 requests"};
}

}  // namespace

TEST_CASE("what-if: several runs make a table with a line for each model", "[what-if]") {
  const std::string text = TerminalText(Report(), Colour::kNever);
  INFO(text);
  CHECK(Contains(text, "trip/int_001@12  recorded"));
  CHECK(Contains(text, "a/x       2/2   2 different ones  2      1.0000  3.0      0/1"));
  CHECK(Contains(text, "b/y       1/1   <U+001B>[2J"));
  CHECK(Contains(text, "1 turn, 3 runs (3.0 s); 3 requests\n"));
  CHECK_FALSE(Contains(text, "\x1b"));
  CHECK_FALSE(Report().is_good());
}

TEST_CASE("what-if: one run shows both sides, its files and the first difference", "[what-if]") {
  WhatIfReport report = Report();
  report.turns[0].runs.resize(1);
  TriedRun& run = report.turns[0].runs[0];
  run.files = {"a.txt"};
  run.diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\x1b\n";
  run.difference.emplace().seq = 13;
  const std::string text = TerminalText(report, Colour::kNever);
  INFO(text);
  CHECK(Contains(text, "recorded  a/x, 1 call, cost 0.5000, 1.5 s\n"));
  CHECK(Contains(text, "what if   a/x, 1 call"));
  CHECK(Contains(text, "first difference: event 13\n  recorded  nothing\n"));
  CHECK(Contains(text, "files changed, in the copy only:\n  a.txt\n"));
  CHECK(Contains(text, "+two<U+001B>\n"));
  CHECK_FALSE(Contains(text, "\x1b"));
  CHECK(report.is_good());
}

TEST_CASE("what-if: the document satisfies its schema, whatever the texts are", "[what-if]") {
  WhatIfReport report = Report();
  report.turns[0].runs[0].diff = "\xff";
  report.turns[0].runs[0].difference.emplace().seq = 13;
  report.turns.push_back({.chat = "broken", .turn = "", .failure = "it cannot be read"});
  CHECK(SchemaValidator("what_if_report").Complaint(JsonText(report)).empty());
  CHECK(Contains(TerminalText(report, Colour::kNever), "(it cannot be read)"));
}

}  // namespace reprise::test::what_if_report_test
