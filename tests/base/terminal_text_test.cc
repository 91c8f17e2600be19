#include "base/terminal_text.h"

#include "support/test.h"

namespace reprise::test::terminal_text_test {

TEST_CASE("VisibleLine: makes terminal controls visible", "[terminal]") {
  CHECK(VisibleLine("plain \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80") == "plain \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK(VisibleLine("a\nb\r\nc") == "a b c");
  CHECK(VisibleLine("\x1b[31mred") == "<U+001B>[31mred");
  CHECK(VisibleLine("a\rb\x7f") == "a<U+000D>b<U+007F>");
  CHECK(VisibleLine("\xc2\x9b"
                    "1m") == "<U+009B>1m");  // C1 control sequence introducer
  CHECK(VisibleLine("\xe2\x80\xae"
                    "txt") == "<U+202E>txt");  // right-to-left override
  CHECK(VisibleLine("\xe2\x81\xa6"
                    "x\xe2\x80\xa8") == "<U+2066>x<U+2028>");
  CHECK(VisibleLine("\xff") == "\xef\xbf\xbd");
  CHECK(VisibleLine(std::string_view("\0", 1)) == "<U+0000>");
}

TEST_CASE("VisibleLine, VisibleText: spell out invisible characters", "[terminal]") {
  for (const auto& [character, name] :
       {std::pair("\xe2\x80\x8b", "<U+200B>"), std::pair("\xe2\x80\x8d", "<U+200D>"),
        std::pair("\xe2\x81\xa0", "<U+2060>"), std::pair("\xc2\xad", "<U+00AD>"), std::pair("\xe1\x85\x9f", "<U+115F>"),
        std::pair("\xe3\x85\xa4", "<U+3164>"), std::pair("\xef\xb8\x8f", "<U+FE0F>"),
        std::pair("\xf3\xa0\x81\x81", "<U+E0041>")}) {
    CHECK(VisibleLine(std::string("a") + character + "b") == std::string("a") + name + "b");
    CHECK(VisibleText(std::string("a\n") + character, "  ") == std::string("a\n  ") + name);
  }
  CHECK(VisibleText("a\n", "  ") == "a\n  ");
}

TEST_CASE("Indented: joiners of emoji and wide spaces are prose", "[terminal]") {
  CHECK(Indented("\xe2\x9d\xa4\xef\xb8\x8f \xe3\x80\x80", "") == "\xe2\x9d\xa4\xef\xb8\x8f \xe3\x80\x80");
  CHECK(Indented("\xe2\x80\xae", "") == "<U+202E>");
}

TEST_CASE("StreamedText: pieces keep all of their line ends", "[terminal]") {
  StreamedText text;
  CHECK(text.Add("- one\n") == "- one\n");
  CHECK(text.Add("\n\n") == "\n\n");
  CHECK(text.Add("two\r") == "two");
  CHECK(text.Add("\nthree\r") == "\nthree");
  CHECK(text.Add("four") == "<U+000D>four");
  CHECK(text.Add("five\r") == "five");
  CHECK(text.End() == "<U+000D>");
  CHECK(text.End().empty());
}

TEST_CASE("Indented: further lines begin with the indent, trailing ones are dropped", "[terminal]") {
  CHECK(Indented("a\nb\n\n", "  ") == "a\n  b");
  CHECK(Indented("a\tb", "  ") == "a\tb");
}

TEST_CASE("WithBlankLinesCounted: counts many, keeps a few", "[terminal]") {
  CHECK(WithBlankLinesCounted("a\n\n\n\nb") == "a\n\n\n\nb");
  CHECK(WithBlankLinesCounted("a\n\n\n\n\nb") == "a\n<4 blank lines>\nb");
  CHECK(WithBlankLinesCounted("\n \n\t\r\n\n  b") == "<4 blank lines>\n  b");
  CHECK(WithBlankLinesCounted("a" + std::string(401, '\n')) == "a\n<400 blank lines>\n");
  CHECK(WithBlankLinesCounted("").empty());
  CHECK(WithBlankLinesCounted("  ") == "  ");
  CHECK(VisibleText("a\n\n\n\n\nb", "  ") == "a\n  <4 blank lines>\n  b");
}

TEST_CASE("Counted: one and many", "[terminal]") {
  CHECK(Counted(0, "line") == "0 lines");
  CHECK(Counted(1, "line") == "1 line");
  CHECK(Counted(1234, "line") == "1,234 lines");
}

TEST_CASE("Shortened: whole characters, and a mark where something was cut", "[terminal]") {
  CHECK(Shortened("\xc3\xa4\xc3\xb6\xc3\xbc", 3) == "\xc3\xa4\xc3\xb6\xc3\xbc");
  CHECK(Shortened("\xc3\xa4\xc3\xb6\xc3\xbc", 2) == "\xc3\xa4\xc3\xb6...");
}

}  // namespace reprise::test::terminal_text_test
