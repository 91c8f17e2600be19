#include "support/test.h"
#include "terminal/terminal_lines.h"
#include "terminal/wrapped_text.h"

namespace reprise::test::terminal_table_test {

using Lines = std::vector<std::string>;
using Alignment = TerminalTable::Alignment;

const Style kNoColour(Colour::kNever);

TEST_CASE("TableLines: columns are as wide as their cells, and aligned", "[terminal]") {
  UseUtf8Locale();
  const TerminalTable table{{"Name", "N", "Mid"},
                            {Alignment::kLeft, Alignment::kRight, Alignment::kCentre},
                            {{"a", "1", "x"}, {"日本語", "10", "abcde"}}};
  CHECK(TableLines(table, kNoColour, 80) == Lines{
                                                "Name   │  N │  Mid",
                                                "───────┼────┼──────",
                                                "a      │  1 │   x",
                                                "日本語 │ 10 │ abcde",
                                            });
}

TEST_CASE("TableLines: wide cells wrap", "[terminal]") {
  UseUtf8Locale();
  const TerminalTable table{
      {"Key", "Text"}, {Alignment::kLeft, Alignment::kLeft}, {{"a", "one two three four"}, {"b", "five"}}};
  CHECK(TableLines(table, kNoColour, 16) == Lines{
                                                "Key │ Text",
                                                "────┼───────────",
                                                "a   │ one two",
                                                "    │ three four",
                                                "b   │ five",
                                            });
}

TEST_CASE("TableLines: without room for columns each cell has a line", "[terminal]") {
  UseUtf8Locale();
  const TerminalTable table{{"Key", "", "Description"},
                            {Alignment::kLeft, Alignment::kLeft, Alignment::kLeft},
                            {{"alphabetic", "untitled", "long enough to be wrapped"}, {"b", "", "c"}}};
  CHECK(TableLines(table, kNoColour, 20) == Lines{
                                                "Key: alphabetic",
                                                "untitled",
                                                "Description: long",
                                                "  enough to be",
                                                "  wrapped",
                                                "──",
                                                "Key: b",
                                                "",
                                                "Description: c",
                                            });
}

TEST_CASE("TableLines: a table of a head alone", "[terminal]") {
  UseUtf8Locale();
  const TerminalTable table{{"A", "B"}, {Alignment::kLeft, Alignment::kLeft}, {}};
  CHECK(TableLines(table, kNoColour, 20) == Lines{"A │ B", "──┼──"});
  CHECK(TableLines(table, kNoColour, 4) == Lines{"A", "B"});
  CHECK(TableLines({}, kNoColour, 20).empty());
}

}  // namespace reprise::test::terminal_table_test
