#include "terminal/code_colours.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "support/test.h"
#include "terminal/terminal_style.h"
#include "terminal/wrapped_text.h"

namespace reprise::test::code_colours_test {
namespace {

// With a letter for each colour in place of its sequence.
std::string Painted(std::string_view language, std::string_view line) {
  std::string text = CodeColours(language, Style(Colour::kAlways)).Paint(line);
  for (const auto& [sequence, mark] :
       {std::pair("\x1b[35m", "K<"), std::pair("\x1b[32m", "S<"), std::pair("\x1b[33m", "N<"),
        std::pair("\x1b[2m", "C<"), std::pair("\x1b[0m", ">")}) {
    for (std::size_t at = text.find(sequence); at != std::string::npos; at = text.find(sequence)) {
      text.replace(at, std::string_view(sequence).size(), mark);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("CodeColours: comments, texts, numbers and keywords of usual languages", "[terminal]") {
  CHECK(Painted("cpp", "if (a == \"x\\\"y\") return 12;  // why") ==
        "K<if> (a == S<\"x\\\"y\">) K<return> N<12>;  C<// why>");
  CHECK(Painted("src/main.rs", "fn f<'a>(x: &'a str) -> char { 'b' }") ==
        "K<fn> f<'a>(x: &'a K<str>) -> K<char> { S<'b'> }");
  CHECK(Painted("python", "x = 'it' # no") == "x = S<'it'> C<# no>");
  CHECK(Painted("sh", "echo ${#x} $# # yes") == "K<echo> ${#x} $# C<# yes>");
  CHECK(Painted("json", R"({"a": "b", "n": 1.5})") == R"({K<"a">: S<"b">, K<"n">: N<1.5>})");
  CHECK(Painted("html", "<a href=\"x\">don't</a>") == "<K<a> href=S<\"x\">>don't</K<a>>");
  CHECK(Painted("sql", "SELECT 1 -- one") == "K<SELECT> N<1> C<-- one>");
  CHECK(Painted("klingon", "if 1") == "if 1");
  CHECK(Painted("", "if 1") == "if 1");
}

TEST_CASE("CodeColours: a comment or text goes on over several lines", "[terminal]") {
  CodeColours code("c", Style(Colour::kAlways));
  CHECK(code.Paint("a /* b") == "a \x1b[2m/* b\x1b[0m");
  CHECK(code.Paint("c") == "\x1b[2mc\x1b[0m");
  CHECK(code.Paint("*/ d") == "\x1b[2m*/\x1b[0m d");
  CodeColours text("py", Style(Colour::kAlways));
  CHECK(text.Paint("\"\"\"a") == "\x1b[32m\"\"\"a\x1b[0m");
  CHECK(text.Paint("b\"\"\" if") == "\x1b[32mb\"\"\"\x1b[0m \x1b[35mif\x1b[0m");
}

TEST_CASE("CodeColours: only adds colours, whatever the line holds", "[terminal]") {
  for (const char* const language : {"c", "py", "html", "json", "sh", "js", "rs", "lua", "diff"}) {
    for (const char* const line :
         {"", "\"", "'", "\\", "\"\\", "/*", "*/", "<!--", "`", "''", "\xc3\xa9 '\xe8\xaa\x9e' #", "<<<>>>"}) {
      CodeColours code(language, Style(Colour::kAlways));
      std::string plain;
      const std::string painted = code.Paint(line);
      for (std::string_view rest = painted; !rest.empty();) {
        const std::size_t paint = PaintSequence(rest);
        if (paint == 0) plain += rest[0];
        rest.remove_prefix(paint == 0 ? 1 : paint);
      }
      CHECK(plain == line);
    }
  }
}

TEST_CASE("ChangeOfLine: writes what differs", "[terminal]") {
  const auto change = ChangeOfLine("\x1b[2mab 12 s\x1b[0m", "\x1b[2mab 13 s\x1b[0m");
  CHECK(change.column == 4);
  CHECK(change.text == "\x1b[2m3\x1b[0m");
  CHECK(ChangeOfLine("a", "abc").text == "bc\x1b[K");
  CHECK(ChangeOfLine("abc", "a").text == "\x1b[K");
}

}  // namespace reprise::test::code_colours_test
