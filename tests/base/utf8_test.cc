#include <vector>

#include "base/text.h"
#include "support/test.h"

using reprise::IncompleteUtf8Tail;
using reprise::IsUtf8;
using reprise::ToValidUtf8;
using reprise::Utf8Of;
using reprise::Utf8Prefix;

TEST_CASE("IsUtf8: refuses overlong forms, surrogates and code points above U+10FFFF", "[base]") {
  for (const std::string good :
       {"", "plain", "\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF", "12345678\xC3\xA4"}) {
    CHECK(IsUtf8(good));
  }
  for (const std::string bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                                "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE2\x82", "1234567\xFF"}) {
    CHECK_FALSE(IsUtf8(bad));
  }
}

TEST_CASE("ToValidUtf8: each maximal invalid part becomes one U+FFFD (Unicode 15, table 3-8)", "[base]") {
  const std::string r = "\xEF\xBF\xBD";
  CHECK(ToValidUtf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64") ==
        "a" + r + r + r + "b" + r + "c" + r + r + "d");
  CHECK(ToValidUtf8("\xC0\xAF") == r + r);
  CHECK(ToValidUtf8("fine \xC3\xA4") == "fine \xC3\xA4");
}

TEST_CASE("IncompleteUtf8Tail: holds back only the beginning of a character", "[base]") {
  const std::string text = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80";
  const std::vector<std::size_t> want{0, 0, 1, 0, 1, 2, 0, 1, 2, 3, 0};
  for (std::size_t n = 0; n <= text.size(); ++n) CHECK(IncompleteUtf8Tail(text.substr(0, n)) == want[n]);
  CHECK(IncompleteUtf8Tail("\xFF") == 0);
  CHECK(IncompleteUtf8Tail("\xED\xA0") == 0);  // can only be a surrogate
  CHECK(IncompleteUtf8Tail("\x80\x80") == 0);
}

TEST_CASE("Utf8Of: a character of each length, and invalid codes", "[base]") {
  CHECK(Utf8Of('a') == "a");
  CHECK(Utf8Of(0xe4) == "\xC3\xA4");
  CHECK(Utf8Of(0x20ac) == "\xE2\x82\xAC");
  CHECK(Utf8Of(0x1f600) == "\xF0\x9F\x98\x80");
  CHECK(Utf8Of(0x10ffff) == "\xF4\x8F\xBF\xBF");
  for (const char32_t none : {0xd800, 0xdfff, 0x110000}) CHECK(Utf8Of(none) == "\xEF\xBF\xBD");
}

TEST_CASE("Utf8Prefix: counts characters and never cuts one", "[base]") {
  CHECK(Utf8Prefix("a\xC3\xA4\xE2\x82\xAC!", 3) == "a\xC3\xA4\xE2\x82\xAC");
  CHECK(Utf8Prefix("ab", 50) == "ab");
}
