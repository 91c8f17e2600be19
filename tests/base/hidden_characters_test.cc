#include "base/terminal_text.h"
#include "support/test.h"

namespace reprise::hidden_characters_test {

TEST_CASE("VisibleOnOneLine: controls, C1 too, and marks of direction are spelled out", "[base]") {
  CHECK(VisibleOnOneLine("a\x1b[2J\x7f") == "a<U+001B>[2J<U+007F>");
  CHECK(VisibleOnOneLine("\xc2\x9b"
                         "2J\xc2\x9d") == "<U+009B>2J<U+009D>");
  CHECK(VisibleOnOneLine("\xe2\x80\xae"
                         "x\xe2\x80\x8b\xf3\xa0\x81\x81") == "<U+202E>x<U+200B><U+E0041>");
  CHECK(VisibleOnOneLine("a\nb\tc\rd") == "a b c d");
  CHECK(VisibleOnOneLine("\xff plain \xc3\xa4\xf0\x9f\x98\x80") == "\xef\xbf\xbd plain \xc3\xa4\xf0\x9f\x98\x80");
  CHECK(VisibleOnOneLine(std::string_view("\0", 1)) == "<U+0000>");
  CHECK(VisibleOnOneLine("").empty());
}

TEST_CASE("IsHidden: false for line ends and tabs", "[base]") {
  for (const char c : {'\n', '\r', '\t', ' ', 'a'}) CHECK_FALSE(IsHidden(static_cast<unsigned char>(c)));
  CHECK(IsHidden(0x1b));
  CHECK(IsHidden(0x10fffd));
}

TEST_CASE("IsHidden: all invisible or deceptive characters, in prose except those that scripts need", "[base]") {
  for (const std::uint32_t code : {0xadu,   0x34fu,  0x61cu,  0x70fu,   0x115fu,  0x180eu,  0x200bu,  0x200eu,
                                   0x2028u, 0x202eu, 0x2060u, 0x2063u,  0x2066u,  0x3164u,  0xfeffu,  0xffa0u,
                                   0xfffcu, 0xffffu, 0xfdd0u, 0x13430u, 0x1d159u, 0x1d173u, 0x1fffeu, 0xe0041u}) {
    CAPTURE(code);
    CHECK(IsHidden(code));
    CHECK(IsHiddenInProse(code));
  }
  for (const std::uint32_t code : {0xa0u, 0x200cu, 0x200du, 0x2009u, 0x2800u, 0x3000u, 0xe0b0u, 0xfe0fu, 0xe0101u}) {
    CAPTURE(code);
    CHECK(IsHidden(code));
    CHECK_FALSE(IsHiddenInProse(code));
  }
  for (const std::uint32_t code : {0x41u, 0xe4u, 0x4e00u, 0x1f600u, 0xfffdu}) CHECK_FALSE(IsHidden(code));
}

}  // namespace reprise::hidden_characters_test
