#include "terminal/markdown_stream.h"

#include <set>

#include "base/terminal_text.h"
#include "support/test.h"
#include "terminal/terminal_lines.h"

namespace reprise::test::markdown_stream_test {

using Lines = std::vector<std::string>;

const Style kNoColour(Colour::kNever);
const Style kColour(Colour::kAlways);

void Append(Lines& lines, Lines more) { lines.insert(lines.end(), more.begin(), more.end()); }

Lines Drawn(std::string_view markdown, int width = 60, const Style& style = kNoColour) {
  UseUtf8Locale();
  MarkdownStream stream(style, width);
  Lines lines = stream.Add(markdown);
  Append(lines, stream.End());
  return lines;
}

TEST_CASE("MarkdownStream: paragraphs keep their lines", "[terminal]") {
  CHECK(Drawn("one\ntwo\n\nthree") == Lines{"one", "two", "", "three"});
  CHECK(Drawn("\n\none\n\n\n\ntwo\n\n") == Lines{"one", "", "two"});
  CHECK(Drawn("").empty());
  CHECK(Drawn("one two three four five", 16) == Lines{"one two three", "four five"});
  CHECK(Drawn("one\r\ntwo\r\n\r\nthree\r\n") == Lines{"one", "two", "", "three"});
}

TEST_CASE("MarkdownStream: emphasis, code and links", "[terminal]") {
  CHECK(Drawn("a *b* **c** ***d*** `e` ~~f~~ snake_case_name") == Lines{"a b c d e ~~f~~ snake_case_name"});
  CHECK(Drawn("a *b* **c** `d` [e](f)", 60, kColour) ==
        Lines{"a \x1b[3mb\x1b[0m \x1b[1mc\x1b[0m \x1b[35md\x1b[0m \x1b[4;36me\x1b[0m\x1b[2m (f)\x1b[0m"});
  CHECK(Drawn("[text](http://a.b/c \"title\")") == Lines{"text (http://a.b/c \"title\")"});
  CHECK(Drawn("[http://a.b](http://a.b) <http://a.b> http://a.b/x_y_z. <m@a.b>") ==
        Lines{"http://a.b http://a.b http://a.b/x_y_z. m@a.b"});
  CHECK(Drawn("![alt](a.png) ![](b.png)") == Lines{"alt (a.png) b.png"});
  CHECK(Drawn("[![badge](b.svg)](http://a.b)") == Lines{"badge (b.svg) (http://a.b)"});
  CHECK(Drawn("\\*a\\* &amp; &lt;b&gt; &copy; &#65;&#x42; &unknown;") == Lines{"*a* & <b> © AB &unknown;"});
}

TEST_CASE("MarkdownStream: headings", "[terminal]") {
  CHECK(Drawn("# One\ntext\n## Two ##\n\nThree\n===\nFour\n---\n####### five") ==
        Lines{"One", "", "text", "", "Two", "", "Three", "", "Four", "", "####### five"});
  CHECK(Drawn("# One\n## Two", 60, kColour) == Lines{"\x1b[1m\x1b[4mOne\x1b[0m", "", "\x1b[1mTwo\x1b[0m"});
  CHECK(Drawn("#hashtag\n#5") == Lines{"#hashtag", "#5"});
}

TEST_CASE("MarkdownStream: lists", "[terminal]") {
  CHECK(Drawn("Intro:\n- one\n- two\n  - three\n    1. four\n- five\n\ntext") ==
        Lines{"Intro:", "• one", "• two", "  • three", "    1. four", "• five", "", "text"});
  CHECK(Drawn("3. a\n3. b\n\n3. c\n") == Lines{"3. a", "4. b", "", "5. c"});
  CHECK(Drawn("1) a\n2) b") == Lines{"1) a", "2) b"});
  CHECK(Drawn("- [ ] a\n- [x] b\n- [y] c") == Lines{"[ ] a", "[x] b", "• [y] c"});
  CHECK(Drawn("- a\n+ b\n1. c") == Lines{"• a", "• b", "1. c"});
  CHECK(Drawn("-\n- b") == Lines{"•", "• b"});
  CHECK(Drawn("- a\n\n  b\n\n      code\n- c") == Lines{"• a", "", "  b", "", "    code", "• c"});
  CHECK(Drawn("- one two three four", 16) == Lines{"• one two three", "  four"});
  CHECK(Drawn("- - - a") == Lines{"• • • a"});
  CHECK(Drawn("- a\nlazy\n\nnot lazy") == Lines{"• a", "  lazy", "", "not lazy"});
  CHECK(Drawn("year was\n1986. A good one") == Lines{"year was", "1986. A good one"});
  CHECK(Drawn("1. Run:\n   ```sh\n   make\n   ```\n2. Done") == Lines{"1. Run:", "     sh", "     make", "2. Done"});
  CHECK(Drawn("1. Run:\n```sh\nmake\n```\n2. Done") == Lines{"1. Run:", "", "  sh", "  make", "", "2. Done"});
}

TEST_CASE("MarkdownStream: quotes", "[terminal]") {
  CHECK(Drawn("> a\n> b\n>\n> > c\n\nd") == Lines{"│ a", "│ b", "│", "│ │ c", "", "d"});
  CHECK(Drawn("> a\nlazy\n# h") == Lines{"│ a", "│ lazy", "", "h"});
  CHECK(Drawn("> - a\n>   ```\n>   x\n>   ```") == Lines{"│ • a", "│     x"});
}

TEST_CASE("MarkdownStream: code", "[terminal]") {
  CHECK(Drawn("```python\ndef f():\n\n\treturn *1*\n```\ntext") ==
        Lines{"  python", "  def f():", "", "      return *1*", "", "text"});
  CHECK(Drawn("~~~\n```\n~~~~\nx") == Lines{"  ```", "", "x"});
  CHECK(Drawn("  ```\n  a\n    b\n c\n  ```") == Lines{"  a", "    b", "  c"});
  CHECK(Drawn("```c title=\"x\"\n```") == Lines{"  c title=\"x\""});
  CHECK(Drawn("    a\n\n      b\n\nc") == Lines{"  a", "", "    b", "", "c"});
  CHECK(Drawn("```\n0123456789abcdefXYZ\n```", 16) == Lines{"  0123456789abcd", "↪ efXYZ"});
  CHECK(Drawn("```\nnot closed") == Lines{"  not closed"});
  CHECK(Drawn("`` not `a` fence ``") == Lines{"not `a` fence"});
}

TEST_CASE("MarkdownStream: tables", "[terminal]") {
  CHECK(Drawn("| a | b |\n|---|--:|\n| *c* | 1 |\n| `d|e` | 22 |\n\nx") ==
        Lines{"a   │  b", "────┼───", "c   │  1", "d|e │ 22", "", "x"});
  CHECK(Drawn("Look:\n| a | b |\n|---|---|\n| c | d |") == Lines{"Look:", "", "a │ b", "──┼──", "c │ d"});
  CHECK(Drawn("a | b\n--- | ---\nc\n- x") == Lines{"a │ b", "──┼──", "c │", "", "• x"});
  CHECK(Drawn("|a|b|\n|-|-|\n|c|`d||e`|\n|f|g | h|i|\n|j \\| k") ==
        Lines{"a     │ b", "──────┼────────", "c     │ d||e", "f     │ g | h|i", "j | k │"});
  CHECK(Drawn("a | b\n--- | --- | ---\nc") == Lines{"a | b", "--- | --- | ---", "c"});
  CHECK(Drawn("a | b | c\n--- | ---\nd") == Lines{"a | b | c", "--- | ---", "d"});
  CHECK(Drawn("| first column | second column |\n|--|--|\n| value | other |", 16) ==
        Lines{"first column:", "  value", "second column:", "  other"});
}

TEST_CASE("MarkdownStream: rules are as wide as the lines", "[terminal]") {
  std::string rule;
  for (int i = 0; i < 20; ++i) rule += "─";
  CHECK(Drawn("a\n\n---\n***\n_ _ _", 20) == Lines{"a", "", rule, "", rule, "", rule});
}

TEST_CASE("MarkdownStream: HTML and definitions of links are text", "[terminal]") {
  CHECK(Drawn("<b>x</b>\n\n<!-- note -->\n\n<div>\ny\n</div>") ==
        Lines{"<b>x</b>", "", "<!-- note -->", "", "<div>", "y", "</div>"});
  CHECK(Drawn("[a][1]\n\n[1]: http://a.b\n\n[^2]: word\n\n> [3]: c\n\n- [4]: d\n\n[5\n6]: e") ==
        Lines{"[a][1]", "", "[1]: http://a.b", "", "[^2]: word", "", "│ [3]: c", "", "• [4]: d", "", "[5", "6]: e"});
}

TEST_CASE("MarkdownStream: nothing steers the terminal", "[terminal]") {
  CHECK(Drawn("a\x1b[31mb \xc2\x9b \xe2\x80\xae") == Lines{"a<U+001B>[31mb <U+009B> <U+202E>"});
  CHECK(Drawn("&#27;[2J &#x9b; &#x202e; a&#10;b&#0;") == Lines{"<U+001B>[2J <U+009B> <U+202E> a b\uFFFD"});
  CHECK(Drawn("`\x1b`\n\n```\x1b\n\x1b[1m\n```") == Lines{"<U+001B>", "", "  <U+001B>", "  <U+001B>[1m"});
  CHECK(Drawn("[a](http://b/&#27;c \"\x07\")") == Lines{"a (http://b/<U+001B>c \"<U+0007>\")"});
  CHECK(Drawn("[a](http://b/\u200b)") == Lines{"a (http://b/<U+200B>)"});
  CHECK(Drawn("|a\x1b|b|\n|-|-|\n|\x1b|&#7;|") ==
        Lines{"a<U+001B> │ b", "──────────┼─────────", "<U+001B>  │ <U+0007>"});
  CHECK(Drawn("a\rb") == Lines{"a<U+000D>b"});
  CHECK(Drawn("\xff\xfe") == Lines{"\uFFFD\uFFFD"});
}

TEST_CASE("MarkdownStream: a block is final when its end has come", "[terminal]") {
  UseUtf8Locale();
  MarkdownStream stream(kNoColour, 60);
  CHECK(stream.Add("# A *ti").empty());
  CHECK(stream.Tail() == Lines{"A *ti"});
  CHECK(stream.Add("tle*\n") == Lines{"A title"});
  CHECK(stream.Tail().empty());
  CHECK(stream.Add("Some **te").empty());
  CHECK(stream.Tail() == Lines{"", "Some **te"});
  CHECK(stream.Add("xt**\n").empty());
  CHECK(stream.Tail() == Lines{"", "Some text"});
  CHECK(stream.Add("\n") == Lines{"", "Some text"});
  CHECK(stream.Add("- one\n").empty());
  CHECK(stream.Add("- t").empty());
  CHECK(stream.Tail() == Lines{"", "• one", "• t"});
  CHECK(stream.Add("wo\n") == Lines{"", "• one"});
  CHECK(stream.Tail() == Lines{"• two"});
  CHECK(stream.Add("```c\n") == Lines{"• two", "", "  c"});
  CHECK(stream.Add("int x;\nint") == Lines{"  int x;"});
  CHECK(stream.Tail() == Lines{"  int"});
  CHECK(stream.Add(" y;\n``") == Lines{"  int y;"});
  CHECK(stream.Tail().empty());
  CHECK(stream.Add("`\n").empty());
  CHECK(stream.Add("end \xe6\x97").empty());
  CHECK(stream.Tail() == Lines{"", "end"});
  CHECK(stream.Add("\xa5").empty());
  CHECK(stream.End() == Lines{"", "end 日"});
  CHECK(stream.End().empty());
  CHECK(stream.Add("anew\n\n") == Lines{"anew"});
}

TEST_CASE("MarkdownStream: another width is for what is not final", "[terminal]") {
  UseUtf8Locale();
  MarkdownStream stream(kNoColour, 60);
  CHECK(stream.Add("one two three four\n\none two three four") == Lines{"one two three four"});
  stream.SetWidth(16);
  CHECK(stream.Tail() == Lines{"", "one two three", "four"});
  CHECK(stream.End() == Lines{"", "one two three", "four"});
  stream.SetWidth(1);
  CHECK(stream.Add("one two three four\n\n") == Lines{"one two three", "four"});
}

const std::vector<std::string> kSnippets{
    "# Heading *one*\n",
    "Heading\n=====\n",
    "Two\nlines\n---\n",
    "plain text\n",
    "two lines\nof text\n",
    "**bold** _it_ `code` ***both*** ~~gone~~\n",
    "a  \nhard break\\\nhere\n",
    "[link](http://a.b \"t\") ![i](x.png)\n",
    "http://a.b/c_d and <http://e.f>\n",
    "\n",
    "\n\n",
    "- a\n- b\n",
    "- a\n  - b\n    - c\n- d\n",
    "1. a\n2. b\n10. c\n",
    "1) x\n\n2) y\n",
    "* a\n\n  para\n\n* b\n",
    "+ [ ] open\n+ [x] done\n",
    "- a\n  ```sh\n  ls\n\n  cd\n  ```\n- b\n",
    "> quote\n> more\n",
    "> a\nlazy\n",
    "> - x\n> - y\n>\n> ```\n> code\n> ```\n",
    "```python\nx = 1\n\n\ty\n```\n",
    "~~~\n```\n~~~\n",
    "````\n```\n````\n",
    "```\nopen\n",
    "    indented\n\n    code\n",
    "\tcode\n",
    "| a | b |\n|---|:-:|\n| 1 | 2 |\n| 日本 | `x` |\n",
    "a | b\n-|-\nc | d\n",
    "text\n| a |\n| - |\n| b |\n",
    "---\n",
    "***\n",
    "- - -\n",
    "<div>\n<b>x</b>\n</div>\n",
    "<!-- c -->\n",
    "[r]: http://a.b\n",
    "[r][r] [^1]\n\n[^1]: foot\n",
    "&amp; &#65; &#27;[1m\n",
    "\x1b[31mred\x1b[0m\r\n",
    "日本語のテキスト 👩‍👩‍👧 e\u0301\n",
    "\xff\xfe\n",
    "a\rb\n",
    "\\* \\[ \\`\n",
    "-\n\n  x\n",
    "1. a\n```\nb\n```\n2. c\n",
    "     deep\n",
    "* * a\n",
    "$x^2$ and \\(y\\)\n",
    "no line end",
    "very long line with many words that certainly has to be wrapped somewhere because it is too wide for a terminal\n",
    "averyveryveryveryveryveryveryveryveryveryveryveryveryveryveryverylongword\n",
    "| head | other head that is long |\n|--|--|\n| a cell with many words in it | another cell with many words |\n"};

std::string RandomDocument(std::mt19937& random) {
  std::string document;
  for (std::size_t i = random() % 12; i-- > 0;) {
    document += kSnippets[random() % kSnippets.size()];
    if (random() % 2) document += "\n";
  }
  return document;
}

Lines DrawnInPieces(std::string_view markdown, int width, std::mt19937& random, std::size_t longest) {
  MarkdownStream stream(kColour, width);
  Lines lines;
  while (!markdown.empty()) {
    const std::string_view piece = markdown.substr(0, 1 + random() % longest);
    markdown.remove_prefix(piece.size());
    Append(lines, stream.Add(piece));
    if (random() % 4 == 0) REQUIRE(FaultOf(stream.Tail(), width) == "");
  }
  Append(lines, stream.End());
  return lines;
}

TEST_CASE("MarkdownStream: where the pieces end makes no difference", "[terminal]") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::string document = RandomDocument(random);
    const int width = 16 + static_cast<int>(random() % 80);
    CAPTURE(document, width);
    const Lines whole = Drawn(document, width, kColour);
    REQUIRE(DrawnInPieces(document, width, random, 1) == whole);
    REQUIRE(DrawnInPieces(document, width, random, 20) == whole);
    REQUIRE(FaultOf(whole, width) == "");
    REQUIRE(WithoutPaint(whole) == Drawn(document, width, kNoColour));
  }
}

TEST_CASE("MarkdownStream: whatever comes, lines fit and nothing in them steers the terminal", "[terminal]") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::string bytes = RandomBytes(random, random() % 400);
    const int width = 16 + static_cast<int>(random() % 60);
    CAPTURE(width);
    const Lines whole = Drawn(bytes, width, kColour);
    REQUIRE(FaultOf(whole, width) == "");
    REQUIRE(DrawnInPieces(bytes, width, random, 30) == whole);
  }
}

TEST_CASE("MarkdownStream: no word is lost", "[terminal]") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    int words = 0;
    std::string document;
    while (words < 60) {
      for (std::size_t depth = random() % 4; depth-- > 0;) {
        static const std::vector<std::string> kMarks{"- ",    "> ", "  ",     "    ", "1. ", "* ",  "# ",
                                                     "```\n", "[",  "- [ ] ", "<",    "*",   "~~~ "};
        document += kMarks[random() % kMarks.size()];
      }
      static const std::vector<std::string> kEnds{"\n", "\n\n", "\n", " ", "]: ", "](", ") ", "` `", "*", ">"};
      document += "w" + std::to_string(words++) + "w" + kEnds[random() % kEnds.size()];
    }
    CAPTURE(document);
    const std::string drawn = Joined(Drawn(document, 2000));
    for (int i = 0; i < words; ++i) {
      CAPTURE(i);
      REQUIRE(drawn.find("w" + std::to_string(i) + "w") != std::string::npos);
    }
  }
}

// 10,000 lines of many shapes. Time is not measured but what it depends on: how much is drawn, and how much is held.
TEST_CASE("MarkdownStream: every byte is drawn once, and little is held", "[terminal]") {
  UseUtf8Locale();
  const auto repeated = [](const std::string& first, const std::string& line) {
    std::string document = first;
    for (int i = 0; i < 10'000; ++i) document += line;
    return document;
  };
  const std::vector<std::string> documents{repeated("", "some words in a line\n"),
                                           repeated("", "a paragraph\n\n"),
                                           repeated("", "- item\n"),
                                           repeated("", "- item\n\n"),
                                           repeated("- item\n", "  - nested\n"),
                                           repeated("- item\n", "  text\n\n"),
                                           repeated("- item\n", "\n"),
                                           repeated("", "1. item\n"),
                                           repeated("> ```\n", "> code\n"),
                                           repeated("", "> quote\n"),
                                           repeated("```\n", "code\n"),
                                           repeated("- x\n  ```\n", "  code\n"),
                                           repeated("", "    code\n"),
                                           repeated("|a|b|\n|-|-|\n", "| c | d |\n"),
                                           repeated("", "# heading\n"),
                                           repeated("", "---\n"),
                                           repeated("", "[x]: y\n"),
                                           repeated("", "<b>\n"),
                                           repeated("", "\n"),
                                           repeated("", "word "),
                                           repeated("", "a very long word without a "),
                                           repeated("```\n", "longlinein code "),
                                           repeated("", "a|"),
                                           repeated("- ", "[a](b) *c* "),
                                           repeated("", "*a `b "),
                                           repeated("|a|\n|-|\n", "|\n"),
                                           repeated("", "![["),
                                           repeated("", ">"),
                                           repeated("# ", "heading and more "),
                                           repeated("", "- ")};
  for (const std::string& document : documents) {
    CAPTURE(document.substr(0, 40));
    MarkdownStream stream(kNoColour, 80);
    std::size_t most_held = 0, lines = 0;
    for (std::size_t at = 0; at < document.size(); at += 1000) {
      lines += stream.Add(std::string_view(document).substr(at, 1000)).size();
      most_held = std::max(most_held, stream.held_bytes());
    }
    static_cast<void>(stream.Tail());
    lines += stream.End().size();
    CHECK(stream.drawn_bytes() <= document.size() + document.size() / 4 + 10'000);
    CHECK(most_held <= 3 * 64 * 1024);
    CHECK(stream.held_bytes() == 0);
    CHECK((lines > 0 || document.find_first_not_of(">\n") == std::string::npos));
  }
}

TEST_CASE("MarkdownStream: what is not waited for is not lost", "[terminal]") {
  std::string table = "| a | b |\n|---|---|\n", list = "- item\n", text, line;
  for (int i = 0; i < 1000; ++i) {
    const std::string number = std::to_string(i);
    table += "| r" + number + "r | x |\n";
    list += "  - n" + number + "n\n";
    text += "t" + number + "t\n";
    line += "l" + number +
            "l aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ";
  }
  const std::string drawn = Joined(Drawn(table + "\n" + list + "\nText:\n" + text + "\n" + line + "\n\n# end"));
  for (int i = 0; i < 1000; ++i) {
    const std::string number = std::to_string(i);
    CAPTURE(i);
    CHECK(drawn.find("\nr" + number + "r ") != std::string::npos);
    CHECK(drawn.find("| r" + number + "r") == std::string::npos);
    CHECK(drawn.find("  - n" + number + "n\n") + drawn.find("  • n" + number + "n\n") != 2 * std::string::npos);
    CHECK(drawn.find("t" + number + "t\n") != std::string::npos);
    CHECK(drawn.find("l" + number + "l") != std::string::npos);
  }
  CHECK(drawn.ends_with("\n\nend\n"));
  // The head is repeated, with the names of the columns.
  std::size_t heads = 0;
  for (std::size_t at = 0; (at = drawn.find(" │ b\n", at)) != std::string::npos; ++at) ++heads;
  CHECK(heads >= 4);
}

TEST_CASE("MarkdownStream: very deep nesting leaves room for the text", "[terminal]") {
  std::string list;
  for (int depth = 0; depth < 60; ++depth) list += std::string(static_cast<std::size_t>(2 * depth), ' ') + "- deep\n";
  const Lines lines = Drawn(list, 24);
  REQUIRE(lines.size() == 60);
  CHECK(FaultOf(lines, 24) == "");
  for (const std::string& line : lines) CHECK(line.ends_with("• deep"));
  CHECK(FaultOf(Drawn(std::string(5000, '>') + " x"), 60) == "");
}

}  // namespace reprise::test::markdown_stream_test
