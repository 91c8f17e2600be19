#include "terminal/wrapped_text.h"

#include "base/terminal_text.h"
#include "support/test.h"
#include "terminal/terminal_lines.h"

namespace reprise::test::wrapped_text_test {

using Lines = std::vector<std::string>;

TEST_CASE("DisplayWidth: columns, not bytes", "[terminal]") {
  UseUtf8Locale();
  CHECK(DisplayWidth("") == 0);
  CHECK(DisplayWidth("abc") == 3);
  CHECK(DisplayWidth("äöü") == 3);
  CHECK(DisplayWidth("日本") == 4);
  CHECK(DisplayWidth("e\u0301") == 1);
  CHECK(DisplayWidth("😀") == 2);
  CHECK(DisplayWidth("∑∫√") == 3);
  CHECK(DisplayWidth("─│•…") == 4);
  CHECK(DisplayWidth("\x1b[1;31mab\x1b[0m") == 2);
}

TEST_CASE("Wrap: breaks at spaces", "[terminal]") {
  UseUtf8Locale();
  CHECK(Wrap("", 10) == Lines{""});
  CHECK(Wrap("one two three", 7) == Lines{"one two", "three"});
  CHECK(Wrap("one two three", 8) == Lines{"one two", "three"});
  CHECK(Wrap("one  two", 20) == Lines{"one  two"});
  CHECK(Wrap("one   two", 4) == Lines{"one", "two"});
  CHECK(Wrap("  one", 20) == Lines{"  one"});
  CHECK(Wrap("one ", 20) == Lines{"one"});
  CHECK(Wrap("one\n\ntwo", 20) == Lines{"one", "", "two"});
  CHECK(Wrap("one\ttwo", 20) == Lines{"one two"});
}

TEST_CASE("Wrap: words wider than a line are broken, wide characters whole", "[terminal]") {
  UseUtf8Locale();
  CHECK(Wrap("abcdefgh", 3) == Lines{"abc", "def", "gh"});
  CHECK(Wrap("x abcdefgh y", 4) == Lines{"x", "abcd", "efgh", "y"});
  CHECK(Wrap("日本語", 5) == Lines{"日本", "語"});
  CHECK(Wrap("ee\u0301e", 2) == Lines{"ee\u0301", "e"});
}

TEST_CASE("Wrap: indents", "[terminal]") {
  UseUtf8Locale();
  CHECK(Wrap("one two three", 9, "• ", "  ") == Lines{"• one two", "  three"});
  CHECK(Wrap("one\ntwo", 9, "> ", ". ") == Lines{"> one", ". two"});
  CHECK(Wrap("abcdef", 4, "• ", "  ") == Lines{"• ab", "  cd", "  ef"});
}

TEST_CASE("Wrap: what is painted ends with its line and begins again", "[terminal]") {
  UseUtf8Locale();
  const Style style(Colour::kAlways);
  CHECK(Wrap(style.Paint(Style::kBold, "one two"), 4) == Lines{"\x1b[1mone\x1b[0m", "\x1b[1mtwo\x1b[0m"});
  CHECK(Wrap("a " + style.Paint(Style::kBold, "bc") + "d", 4) == Lines{"a", "\x1b[1mbc\x1b[0md"});
  CHECK(Wrap(style.Paint(Style::kBold, "abcd"), 2, "", style.Paint(Style::kDim, "")) ==
        Lines{"\x1b[1mab\x1b[0m", "\x1b[1mcd\x1b[0m"});
  CHECK(Wrap(style.Paint(Style::kBold, style.Paint(Style::kItalic, "one two")), 4) ==
        Lines{"\x1b[1m\x1b[3mone\x1b[0m", "\x1b[1m\x1b[3mtwo\x1b[0m"});
}

TEST_CASE("HardWrap: keeps every space", "[terminal]") {
  UseUtf8Locale();
  CHECK(HardWrap("a  b  c", 4, "  ", "> ") == Lines{"  a ", ">  b", ">   ", "> c"});
  CHECK(HardWrap("", 4, "  ") == Lines{"  "});
}

TEST_CASE("WithoutTabs: up to the next multiple of four", "[terminal]") {
  UseUtf8Locale();
  CHECK(WithoutTabs("\ta") == "    a");
  CHECK(WithoutTabs("ab\tc\t") == "ab  c   ");
  CHECK(WithoutTabs("日\tc") == "日  c");
  CHECK(WithoutTabs("abc\td", "→") == "abc→d");
  CHECK(WithoutTabs("\t\t", "→") == "→   →   ");
}

TEST_CASE("CutToWidth: says that something is cut", "[terminal]") {
  UseUtf8Locale();
  CHECK(CutToWidth("abcd", 4) == "abcd");
  CHECK(CutToWidth("abcde", 4) == "abc…");
  CHECK(CutToWidth("日本語", 4) == "日…");
  CHECK(CutToWidth(Style(Colour::kAlways).Paint(Style::kBold, "abcde"), 4) == "\x1b[1mabc…\x1b[0m");
}

TEST_CASE("Wrap, HardWrap, CutToWidth: no line is too wide, nothing but spaces is lost", "[terminal]") {
  UseUtf8Locale();
  const Style style(Colour::kAlways);
  for (unsigned seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::string text;
    for (int i = 0; i < 20; ++i) {
      const std::string piece = VisibleLine(RandomBytes(random, random() % 30));
      text += random() % 2 ? style.Paint(static_cast<Style::Role>(random() % 12), piece) : piece;
    }
    const int width = 4 + static_cast<int>(random() % 40);
    const auto without_spaces = [](std::string out) {
      out.erase(std::remove_if(out.begin(), out.end(), [](char c) { return c == ' ' || c == '\t' || c == '\n'; }),
                out.end());
      return out;
    };
    const Lines wrapped = Wrap(text, width, "", "  ");
    REQUIRE(FaultOf(wrapped, width) == "");
    REQUIRE(without_spaces(WithoutPaint(Joined(wrapped))) == without_spaces(WithoutPaint(text)));
    const std::string code = WithoutTabs(text);
    const Lines hard = HardWrap(code, width);
    REQUIRE(FaultOf(hard, width) == "");
    std::string together;
    for (const std::string& line : hard) together += WithoutPaint(line);
    REQUIRE(together == WithoutPaint(code));
    REQUIRE(FaultOf(CutToWidth(code, width), width) == "");
  }
}

}  // namespace reprise::test::wrapped_text_test
