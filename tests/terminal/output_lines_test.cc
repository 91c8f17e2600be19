#include "support/test.h"
#include "terminal/run_text.h"
#include "terminal/terminal_lines.h"

namespace reprise::test::output_lines_test {
namespace {

std::vector<std::string> Coloured(std::string_view text) { return OutputLines(text, Style(Colour::kAlways)); }
std::vector<std::string> Plain(std::string_view text) { return OutputLines(text, Style(Colour::kNever)); }

}  // namespace

TEST_CASE("OutputLines: colours that can be read are drawn, and end with their line", "[terminal]") {
  const struct {
    std::string_view text;
    std::vector<std::string> lines;
  } cases[] = {
      {"\x1b[31mred\x1b[0m x", {"\x1b[0m\x1b[31mred\x1b[0m x\x1b[0m"}},
      {"\x1b[1;32mon\nand\x1b[m on", {"\x1b[0m\x1b[1;32mon\x1b[0m", "\x1b[1;32mand\x1b[0m on\x1b[0m"}},
      {"\x1b[38;5;196mx", {"\x1b[0m\x1b[31mx\x1b[0m"}},
      {"\x1b[38;2;10;200;30mx", {"\x1b[0m\x1b[32mx\x1b[0m"}},
      {"\x1b[38;5;12mx", {"\x1b[0m\x1b[94mx\x1b[0m"}},
      // Nothing that could not be read: concealed, black, white, backgrounds.
      {"\x1b[8;30;47mx", {"\x1b[0mx\x1b[0m"}},
      {"\x1b[48;5;196;31mx", {"\x1b[0m\x1b[31mx\x1b[0m"}},
      {"\x1b[97mx", {"\x1b[0mx\x1b[0m"}},
      {"\x1b[99999999999mx", {"\x1b[0mx\x1b[0m"}},
      {"\x1b[38mx", {"\x1b[0mx\x1b[0m"}},
  };
  for (const auto& [text, lines] : cases) {
    CAPTURE(text);
    CHECK(Coloured(text) == lines);
    CHECK(WithoutPaint(Coloured(text)) == Plain(text));
  }
}

TEST_CASE("OutputLines: the last state of what is written over itself is left", "[terminal]") {
  CHECK(Plain("10%\r50%\r100%\n") == std::vector<std::string>{"100%"});
  CHECK(Plain("10%\r50%\r") == std::vector<std::string>{"50%"});
  CHECK(Plain("one\r\ntwo\r\n") == std::vector<std::string>{"one", "two"});
  CHECK(Plain("working\r\x1b[K") == std::vector<std::string>{""});
  CHECK(Plain("working\r\x1b[2Kdone") == std::vector<std::string>{"done"});
}

TEST_CASE("OutputLines: what steers a terminal is dropped or spelled out", "[terminal]") {
  CHECK(Plain("a\x1b[2J\x1b[10;10H\x1b[?25lb\x1b(Bc") == std::vector<std::string>{"abc"});
  CHECK(Plain("\x1b]0;title\x07x") == std::vector<std::string>{"<U+001B>]0;title<U+0007>x"});
  CHECK(Plain("\x1b[31") == std::vector<std::string>{"<U+001B>[31"});
  CHECK(Plain("\x1b") == std::vector<std::string>{"<U+001B>"});
  CHECK(Plain("\xe2\x80\xae\xe2\x80\x8b") == std::vector<std::string>{"<U+202E><U+200B>"});
  CHECK(Plain("\ta") == std::vector<std::string>{"    a"});
}

TEST_CASE("OutputLines: many blank lines are counted", "[terminal]") {
  CHECK(Plain("a\n\n\n\nb") == std::vector<std::string>{"a", "", "", "", "b"});
  CHECK(Plain("a\n" + std::string(400, '\n') + "b") == std::vector<std::string>{"a", "<400 blank lines>", "b"});
  CHECK(Plain("a\n \n\t\n\x1b[K\n  \n\n").back() == "<5 blank lines>");
}

TEST_CASE("OutputLines: whatever is printed, nothing that steers comes out", "[terminal]") {
  UseUtf8Locale();
  std::mt19937 random(28);
  for (int i = 0; i < 300; ++i) {
    for (const std::string& line : Plain(RandomBytes(random, 200))) {
      CAPTURE(line);
      CHECK(FaultOf(line, 10'000).empty());
    }
  }
}

}  // namespace reprise::test::output_lines_test
