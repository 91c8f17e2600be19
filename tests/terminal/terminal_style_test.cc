#include "terminal/terminal_style.h"

#include <map>

#include "support/test.h"

namespace reprise::test::terminal_style_test {

Environment With(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
  };
}

TEST_CASE("DecideColour: a terminal has colours, a pipe has none", "[terminal]") {
  CHECK(DecideColour("auto", With({{"TERM", "xterm"}}), true) == Colour::kAlways);
  CHECK(DecideColour("auto", With({}), true) == Colour::kAlways);
  CHECK(DecideColour("auto", With({{"TERM", "xterm"}}), false) == Colour::kNever);
}

TEST_CASE("DecideColour: the environment beats the terminal", "[terminal]") {
  CHECK(DecideColour("auto", With({{"NO_COLOR", "1"}}), true) == Colour::kNever);
  CHECK(DecideColour("auto", With({{"NO_COLOR", ""}}), true) == Colour::kAlways);
  CHECK(DecideColour("auto", With({{"TERM", "dumb"}}), true) == Colour::kNever);
  CHECK(DecideColour("auto", With({{"CLICOLOR_FORCE", "1"}}), false) == Colour::kAlways);
  CHECK(DecideColour("auto", With({{"CLICOLOR_FORCE", "0"}}), false) == Colour::kNever);
  CHECK(DecideColour("auto", With({{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}}), true) == Colour::kNever);
}

TEST_CASE("DecideColour: the option beats the environment", "[terminal]") {
  CHECK(DecideColour("always", With({{"NO_COLOR", "1"}, {"TERM", "dumb"}}), false) == Colour::kAlways);
  CHECK(DecideColour("never", With({{"CLICOLOR_FORCE", "1"}}), true) == Colour::kNever);
}

TEST_CASE("Style: without colour text stays as it is", "[terminal]") {
  const Style style(Colour::kNever);
  CHECK_FALSE(style.has_colour());
  CHECK(style.Paint(Style::kError, "a\nb") == "a\nb");
}

TEST_CASE("Style: what is painted ends with a reset, on each line", "[terminal]") {
  const Style style(Colour::kAlways);
  CHECK(style.Paint(Style::kBold, "a") == "\x1b[1ma\x1b[0m");
  CHECK(style.Paint(Style::kBold, "").empty());
  CHECK(style.Paint(Style::kDim, "a\n\nb\n") == "\x1b[2ma\x1b[0m\n\n\x1b[2mb\x1b[0m\n");
}

TEST_CASE("Style: painted text within painted text", "[terminal]") {
  const Style style(Colour::kAlways);
  CHECK(style.Paint(Style::kBold, "a " + style.Paint(Style::kItalic, "b") + " c") ==
        "\x1b[1ma \x1b[3mb\x1b[0m\x1b[1m c\x1b[0m");
  CHECK(style.Paint(Style::kBold, style.Paint(Style::kItalic, "b")) == "\x1b[1m\x1b[3mb\x1b[0m");
}

TEST_CASE("Style: no backgrounds, and no colour that a theme's background may have", "[terminal]") {
  const Style style(Colour::kAlways);
  for (const auto role :
       {Style::kBold, Style::kDim, Style::kItalic, Style::kUnderlined, Style::kCode, Style::kHeading, Style::kLink,
        Style::kAdded, Style::kRemoved, Style::kWarning, Style::kError, Style::kAccent, Style::kStruck}) {
    const std::string painted = style.Paint(role, "x");
    const std::size_t length = PaintSequence(painted);
    REQUIRE(length > 0);
    CHECK(painted.substr(length) == "x\x1b[0m");
    std::string numbers = painted.substr(2, length - 3);
    while (!numbers.empty()) {
      const std::string number = numbers.substr(0, numbers.find(';'));
      numbers.erase(0, number.size() + 1);
      const int code = std::stoi(number);
      CAPTURE(code);
      CHECK(((code >= 1 && code <= 4) || code == 9 || (code >= 31 && code <= 36)));
    }
  }
}

TEST_CASE("PaintSequence: knows what Style writes", "[terminal]") {
  CHECK(PaintSequence("\x1b[1;31mx") == 7);
  CHECK(PaintSequence("x\x1b[1m") == 0);
  CHECK(PaintSequence("\x1b[2J") == 0);
  CHECK(PaintSequence("\x1b[2") == 0);
  CHECK(PaintSequence("") == 0);
}

}  // namespace reprise::test::terminal_style_test
