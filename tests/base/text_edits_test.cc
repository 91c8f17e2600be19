#include "base/text_edits.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "support/test.h"

namespace reprise::text_edits_test {
namespace {

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// The text after the edits, or "FAILED: " and why.
std::string Edit(const std::string& text, const std::vector<TextEdit>& edits, Quoting quoting = Quoting::kAllowed) {
  const auto edited = ApplyEdits(text, edits, quoting);
  return edited ? edited->text : "FAILED: " + edited.error().message;
}
std::string Edit(const std::string& text, const std::string& from, const std::string& to, bool all = false) {
  return Edit(text, {{from, to, all}});
}
std::vector<std::string> Notes(const std::string& text, const std::string& from, const std::string& to) {
  const auto edited = ApplyEdits(text, {{from, to, false}});
  REQUIRE(edited);
  return edited->notes;
}

}  // namespace

TEST_CASE("ApplyEdits: several in order, all or none", "[base]") {
  CHECK(Edit("a b c", {{"a", "x"}, {"x b", "y"}, {"c", ""}}) == "y ");
  const std::string failed = Edit("a b c", {{"a", "x"}, {"a", "y"}, {"c", ""}});
  CHECK(Has(failed, "FAILED: edit 2 of 3, after those before it: old_text occurs 0 times"));
  CHECK(Has(failed, "None of the edits was made"));
  CHECK(Edit("aXaXa", "a", "b", /*all=*/true) == "bXbXb");
  CHECK(Edit("aaa", "aa", "b", /*all=*/true) == "ba");
  CHECK(Has(Edit("text", "", "b"), "old_text is empty"));
  CHECK(Has(Edit("text", "text", "text"), "nothing would change"));
  CHECK(Has(Edit("", "text", "b"), "The file is empty"));
}

TEST_CASE("ApplyEdits: what is not unique is refused, with its places", "[base]") {
  const std::string text = "def a():\n  return 1\ndef b():\n  return 1\n";
  const std::string failed = Edit(text, "  return 1\n", "  return 2\n");
  CHECK(Has(failed, "old_text occurs 2 times in the file, in line 2 (below `def a():`) and 4 (below `def b():`)"));
  CHECK(Has(failed, "until it is unique"));
  CHECK_FALSE(Has(Edit(text, {{"return 1", "return 2"}}, Quoting::kForbidden), "def"));
  // Likewise when only similar places are found.
  CHECK(Has(Edit("  a();\n    a();\n", "\ta();", "b();"), "occurs 0 times in the file; 2 places are like it"));
  CHECK(Has(Edit("a \nb\na\t\nb\n", "a\nb\n", "c\n"), "2 places are like it"));
  CHECK(Has(Edit("x\xE2\x80\x99s x\xE2\x80\x98s", "x's", "y"), "2 places are like it"));
}

TEST_CASE("ApplyEdits: blanks at line ends and carriage returns do not matter", "[base]") {
  CHECK(Edit("one  \ntwo\t\nthree\n", "one\ntwo\n", "1\n2\n") == "1\n2\nthree\n");
  CHECK(Edit("one\ntwo\n", "one  \ntwo  ", "1\n2") == "1\n2\n");
  CHECK(Edit("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n") == "x\r\ny\r\nz\r\nc\r\n");
  CHECK(Edit("a\r\nb\r\n", "b", "x\ny") == "a\r\nx\r\ny\r\n");
  CHECK(Edit("a\r\nb\r\n", "a\r\nb", "x\ny") == "x\ny\r\n");  // who writes line ends means them
  CHECK(Edit("a\nb", "b\n", "c\n") == "a\nc");                // the file has no last line end
  // Lines that stay keep their bytes.
  CHECK(Edit("keep  \nold\nkeep\t\n", "keep\nold\nkeep\n", "keep\nnew\nkeep\n") == "keep  \nnew\nkeep\t\n");
  // Blanks at the end of the wanted text are the beginning of a line, not its end.
  CHECK(Edit("a \n    b\n", "a\n    ", "c\n    ") == "c\n    b\n");
  CHECK(Has(Edit("return xyz\n", "return x ", "return y"), "FAILED"));
  CHECK(Notes("a\r\nb\r\n", "a\nb", "c\nd") ==
        std::vector<std::string>{"took lines 1 to 2 for old_text, in spite of differences in line ends (CRLF); "
                                 "new_text was fitted in likewise"});
  CHECK(Notes("a\nb\n", "a\nb", "c").empty());
}

TEST_CASE("ApplyEdits: characters that look alike", "[base]") {
  const std::string typed = "say \xE2\x80\x9Chello\xE2\x80\x9D \xE2\x80\x93 now\nend\n";
  CHECK(Edit(typed, "say \"hello\" - now\nend", "say \"hello\" - now\nEND") ==
        typed.substr(0, typed.size() - 4) + "END\n");
  CHECK(Edit("print('x')\n", "print(\xE2\x80\x98x\xE2\x80\x99)", "print(\xE2\x80\x98y\xE2\x80\x99)") == "print('y')\n");
  CHECK(Edit("a\xC2\xA0"
             "b\n",
             "a b", "c") == "c\n");
  CHECK(Edit("x = '\xE2\x80\xA6'\n", "x = '\xE2\x80\xA6'", "y") == "y\n");
}

TEST_CASE("ApplyEdits: an indentation that is shifted as a whole", "[base]") {
  const std::string text = "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n";
  CHECK(Edit(text, "def g(self):\n    return 2\n", "def g(self):\n    x = 2\n    return x\n") ==
        "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        x = 2\n        return x\n");
  CHECK(Edit("if x:\n\ta()\n\tif y:\n\t\tb()\n", "    a()\n    if y:\n        b()",
             "    a()\n    if z:\n        c()") == "if x:\n\ta()\n\tif z:\n\t\tc()\n");
  CHECK(Edit("if x:\n  a()\n", "\ta()\n", "\tb()\n\t\tc()\n") == "if x:\n  b()\n    c()\n");
  CHECK(Edit("a()\nb()\n", "    a()\n    b()", "    a()\n    c()") == "a()\nc()\n");
  // Not shifted as a whole.
  CHECK(Has(Edit("  a()\n      b()\n", "a()\n  b()\n", "c()\n"),
            "indentation (the file has 6 spaces, old_text 2 spaces)"));
  // The new text goes further left than the file can.
  CHECK(Has(Edit("a()\n", "    a()\n", "  b()\n"), "cannot be indented"));
}

TEST_CASE("ApplyEdits: a text that is not there is told of the nearest place", "[base]") {
  const std::string text = "one\nint Sum(int a, int b) {\n  return a + b;\n}\nlast\n";
  const std::string failed = Edit(text, "int Sum(int a, int b) {\n  return a - b;\n}\n", "x");
  CHECK(Has(failed,
            "old_text occurs 0 times in the file; it must occur exactly once. The nearest place is lines 2 to 4. "
            "Line 3 differs: the file has `  return a + b;`, old_text has `  return a - b;`. The file has there:\n"
            "2\tint Sum(int a, int b) {\n3\t  return a + b;\n4\t}"));
  const std::string closed = Edit(text, {{"int Sum(int a, int b) {\n  return a - b;\n", "x"}}, Quoting::kForbidden);
  CHECK(Has(closed, "lines 2 to 3. Line 3 differs."));
  CHECK_FALSE(Has(closed, "a + b"));
  CHECK(Has(Edit(text, "  return  a + b;\n x", "x"), "blanks within the line"));
  CHECK(Has(Edit(text, "RETURN A + B;\n", "x"), "upper and lower case"));
  CHECK(Has(Edit(text, "2\tint Sum(int a, int b) {\n3\t  return a + b;\n", "x"), "line numbers in front"));
  CHECK(Has(Edit(text, "nothing of this kind at all", "x"), "read the file again"));
  CHECK(Has(Edit(text, "last\nand more\n", "x"), "The file has no line for `and more`"));
}

TEST_CASE("ApplyEdits: huge and hostile texts take linear time and give valid UTF-8", "[base]") {
  const auto start = std::chrono::steady_clock::now();
  const std::string as(4 << 20, 'a');
  CHECK(Has(Edit(as, as.substr(0, 400'000) + "b", "x"), "FAILED"));
  CHECK(Has(Edit(as, "aa", "x"), "at least 100 times"));
  CHECK(Has(Edit(as, "a", std::string(500'000, 'b'), /*all=*/true), "too large"));
  const std::string lines(4 << 20, '\n');
  CHECK(Has(Edit(lines + "}", std::string(200'000, '\n') + "{\n", "x"), "FAILED"));
  std::string braces;
  for (int i = 0; i < 500'000; ++i) braces += "}\n";
  CHECK(Has(Edit(braces, braces.substr(0, 100'000) + "x", "x"), "FAILED"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
  const std::string bad = Edit("caf\xE9 one two three\n", "caf\xE9 one two four", "x");
  CHECK(Has(bad, "caf\xEF\xBF\xBD one two three"));
}

TEST_CASE("EditsIn: one edit or several", "[base]") {
  const auto edits = [](const char* text) { return EditsIn(Json::parse(text)); };
  CHECK(edits(R"({"old_text":"a","new_text":"b"})")->size() == 1);
  CHECK(edits(R"({"old_text":"a","new_text":"b","replace_all":true})")->front().replace_all);
  CHECK(edits(R"({"edits":[{"old_text":"a","new_text":"b"},{"old_text":"c","new_text":""}]})")->at(1).old_text == "c");
  CHECK_FALSE(edits(R"({"edits":[]})"));
  CHECK_FALSE(edits(R"({"old_text":"a"})"));
  CHECK_FALSE(edits(R"({"old_text":"a","new_text":"b","edits":[{"old_text":"a","new_text":"b"}]})"));
}

}  // namespace reprise::text_edits_test
