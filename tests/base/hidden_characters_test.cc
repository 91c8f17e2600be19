#include "base/hidden_characters.h"

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

TEST_CASE("IsHidden: line ends and tabs are left to who shows the text", "[base]") {
  for (const char c : {'\n', '\r', '\t', ' ', 'a'}) CHECK_FALSE(IsHidden(static_cast<unsigned char>(c)));
  CHECK(IsHidden(0x1b));
  CHECK(IsHidden(0x10fffd));
}

}  // namespace reprise::hidden_characters_test
