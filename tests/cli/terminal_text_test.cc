#include "cli/terminal_text.h"

#include "support/test.h"

namespace reprise::test {

TEST_CASE("VisibleLine: what steers a terminal is made visible", "[terminal]") {
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

TEST_CASE("Indented: further lines begin with the indent, trailing ones are dropped", "[terminal]") {
  CHECK(Indented("a\nb\n\n", "  ") == "a\n  b");
  CHECK(Indented("a\tb", "  ") == "a\tb");
}

TEST_CASE("Shortened: whole characters, and a mark where something was cut", "[terminal]") {
  CHECK(Shortened("\xc3\xa4\xc3\xb6\xc3\xbc", 3) == "\xc3\xa4\xc3\xb6\xc3\xbc");
  CHECK(Shortened("\xc3\xa4\xc3\xb6\xc3\xbc", 2) == "\xc3\xa4\xc3\xb6...");
}

}  // namespace reprise::test
