#include <string>
#include <utility>
#include <vector>

#include "support/test.h"
#include "terminal/terminal_input.h"

namespace reprise {
namespace {

using Kind = Key::Kind;

// What comes of bytes that arrive at once, with nothing behind them: "<esc>" for the Esc key.
std::vector<std::string> KeysOf(std::string_view bytes) {
  std::vector<std::string> keys;
  bool in_paste = false;
  while (!bytes.empty()) {
    const auto key = FirstKey(bytes, in_paste, /*no_more=*/true);
    REQUIRE(key);
    REQUIRE(key->length > 0);
    REQUIRE(key->length <= bytes.size());
    bytes.remove_prefix(key->length);
    if (key->bytes == kPasteBegin) in_paste = true;
    if (key->bytes == kPasteEnd) in_paste = false;
    if (key->kind == Kind::kEscape) keys.emplace_back("<esc>");
    if (key->kind == Kind::kEdits) keys.push_back(key->bytes);
  }
  return keys;
}

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE("Keys: a control string, such as a late answer of the terminal, is no text", "[terminal]") {
  for (const std::string_view begin : {"\x1b]11;rgb:0000/0000/0000", "\x1bP1$r0m", "\x1b_a", "\x1b^b", "\x1bXc"}) {
    CHECK(KeysOf(std::string(begin) + "\ax") == Keys{"x"});
    CHECK(KeysOf(std::string(begin) + "\x1b\\x") == Keys{"x"});
    CHECK_FALSE(FirstKey(begin, /*in_paste=*/false, /*no_more=*/false));  // the rest is waited for
  }
  CHECK(KeysOf("\x1b]hi") == Keys{"<esc>", "]", "h", "i"});
  CHECK(FirstKey("\x1b]" + std::string(5000, 'a'), false, false)->kind == Kind::kEscape);
}

TEST_CASE("Keys: Esc alone swallows nothing of what follows", "[terminal]") {
  CHECK(KeysOf("\x1b") == Keys{"<esc>"});
  CHECK(KeysOf("\x1bhello") == Keys{"<esc>", "h", "e", "l", "l", "o"});
  CHECK(KeysOf("\x1b\x03") == Keys{"<esc>", "\x03"});
  CHECK(KeysOf("\x1b\x1b[A") == Keys{"<esc>", "\x1b[A"});
  CHECK(KeysOf("\x1b\x1b") == Keys{"<esc>", "<esc>"});
  CHECK(KeysOf("\x1b\xc3\xa9") == Keys{"<esc>", "\xc3\xa9"});
  CHECK_FALSE(FirstKey("\x1b", /*in_paste=*/false, /*no_more=*/false));
  CHECK_FALSE(FirstKey("\x1b[1;5", /*in_paste=*/false, /*no_more=*/false));
  CHECK_FALSE(FirstKey("\xe2\x82", /*in_paste=*/false, /*no_more=*/false));
}

TEST_CASE("Keys: Alt and a letter is one key, if it comes alone", "[terminal]") {
  CHECK(KeysOf("\x1b"
               "b") == Keys{"\x1b"
                            "b"});
  CHECK(KeysOf("\x1b"
               "b\x1b"
               "f") == Keys{"\x1b"
                            "b",
                            "\x1b"
                            "f"});
  CHECK(KeysOf("\x1b\rx") == Keys{"\x1b\r", "x"});
}

TEST_CASE("Keys: Alt with a key that has no meaning stops nothing", "[terminal]") {
  CHECK(KeysOf("\x1bz").empty());
  CHECK(KeysOf("\x1b.").empty());
  CHECK(KeysOf("\x1bO").empty());
  CHECK(KeysOf("\x1b[").empty());
  CHECK(KeysOf("\x1bz\x1b.").empty());
  CHECK(KeysOf("\x1bzz") == Keys{"<esc>", "z", "z"});  // a text
}

TEST_CASE("Keys: the number pad is not Esc and text", "[terminal]") {
  CHECK(KeysOf("\x1bOM") == Keys{"\r"});
  CHECK(KeysOf("\x1bOj") == Keys{"*"});
  CHECK(KeysOf("\x1bOp") == Keys{"0"});
  CHECK(KeysOf("\x1bOE").empty());
}

TEST_CASE("Keys: Ctrl-Space is nothing", "[terminal]") {
  CHECK(KeysOf({"a\0b", 3}) == Keys{"a", "b"});
  CHECK(KeysOf("\x1b[32;5u").empty());
  CHECK(KeysOf("\x1b[64;5u").empty());
}

TEST_CASE("Keys: what a terminal writes that tells keys apart is what it always wrote", "[terminal]") {
  const std::vector<std::pair<std::string, Keys>> table = {
      {"\x1b[13;2u", {"\x1b\r"}},
      {"\x1b[27;2;13~", {"\x1b\r"}},
      {"\x1b[13u", {"\r"}},
      {"\x1b[99;5u", {"\x03"}},
      {"\x1b[27;5;99~", {"\x03"}},
      {"\x1b[100;5u", {"\x04"}},
      {"\x1b[27u", {"<esc>"}},
      {"\x1b[27;1u", {"<esc>"}},
      {"\x1b[98;3u",
       {"\x1b"
        "b"}},
      {"\x1b[122;3u", {"z"}},
      {"\x1b[233u", {"\xc3\xa9"}},
      {"\x1b[106;5u", {"\n"}},
      {"\x1b[111;5u", {"\x0f"}},
      {"\x1b[27;5;111~", {"\x0f"}},
      {"\x1b[99;69u", {"\x03"}},
      {"\x1b[57441;2u", {}},
      {"\x1b[99;5:1u", {"\x03"}},
      {"\x1bOA", {"\x1b[A"}},
      {"\x1b[1;2A", {"\x1b[A"}},
      {"\x1b[1;3C", {"\x1b[1;5C"}},
  };
  for (const auto& [bytes, keys] : table) {
    INFO(bytes.substr(1));
    CHECK(KeysOf(bytes) == keys);
  }
}

TEST_CASE("Keys: a key without a meaning leaves no text", "[terminal]") {
  for (const char* const bytes : {"\x1b[15~", "\x1b[5~", "\x1b[2~", "\x1bOP", "\x1b[I", "\x1b[<0;10;5M", "\x1b[3;2R"}) {
    INFO(std::string(bytes + 1));
    CHECK(KeysOf(bytes) == Keys{});
  }
}

TEST_CASE("Keys: a paste is taken as it is, to the mark of its end", "[terminal]") {
  CHECK(KeysOf("\x1b[200~a\x1b[Ab\x1b[201~c") == Keys{"\x1b[200~", "a", "\x1b", "[", "A", "b", "\x1b[201~", "c"});
  CHECK_FALSE(FirstKey("\x1b[20", /*in_paste=*/true, /*no_more=*/false));
}

}  // namespace reprise
