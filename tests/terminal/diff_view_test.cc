#include "terminal/diff_view.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "support/test.h"
#include "terminal/terminal_lines.h"

namespace reprise::test::diff_view_test {

using Lines = std::vector<std::string>;

const Style kNoColour(Colour::kNever);
const Style kColour(Colour::kAlways);

Lines Shown(std::optional<std::string_view> before, std::optional<std::string_view> after) {
  UseUtf8Locale();
  const Diff diff = DiffLines(before, after, kNoColour, {.path = "a.txt"});
  CHECK_FALSE(diff.cut);
  return diff.lines;
}

// The lines without the two of the head.
Lines Body(std::optional<std::string_view> before, std::optional<std::string_view> after) {
  Lines lines = Shown(before, after);
  REQUIRE(lines.size() >= 2);
  lines.erase(lines.begin(), lines.begin() + 2);
  return lines;
}

std::string Numbers(int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i) text += std::to_string(i) + "\n";
  return text;
}

TEST_CASE("DiffLines: a change and the lines around it", "[terminal]") {
  CHECK(Shown("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n") ==
        Lines{"--- a/a.txt", "+++ b/a.txt", "@@ -2,7 +2,7 @@", " 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8"});
  CHECK(Body("a\n", "a\nb\n") == Lines{"@@ -1 +1,2 @@", " a", "+b"});
  CHECK(Body("a\nb\n", "b\n") == Lines{"@@ -1,2 +1 @@", "-a", " b"});
}

TEST_CASE("DiffLines: files that come and go", "[terminal]") {
  CHECK(Shown(std::nullopt, "a\nb\n") == Lines{"--- /dev/null", "+++ b/a.txt", "@@ -0,0 +1,2 @@", "+a", "+b"});
  CHECK(Shown("a\n", std::nullopt) == Lines{"--- a/a.txt", "+++ /dev/null", "@@ -1 +0,0 @@", "-a"});
  CHECK(Shown(std::nullopt, "") == Lines{"--- /dev/null", "+++ b/a.txt", "(an empty file)"});
  CHECK(Shown("a", "a") == Lines{"no change of a.txt"});
  CHECK(Body("", "a\n") == Lines{"@@ -0,0 +1 @@", "+a"});
  CHECK(DiffLines("", "a", kNoColour, {.path = "/etc/x"}).lines[0] == "--- a/etc/x");
}

TEST_CASE("DiffLines: changes far from each other are hunks of their own, near ones are not", "[terminal]") {
  const std::string before = Numbers(0, 30);
  std::string after = before;
  after.replace(after.find("5\n"), 1, "five");
  after.replace(after.find("20\n"), 2, "twenty");
  CHECK(Body(before, after) == Lines{"@@ -3,7 +3,7 @@", " 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8",
                                     "@@ -18,7 +18,7 @@", " 17", " 18", " 19", "-20", "+twenty", " 21", " 22", " 23"});
  CHECK(Body("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n") ==
        Lines{"@@ -1,8 +1,8 @@", "-a", "+A", " 1", " 2", " 3", " 4", " 5", " 6", "-b", "+B"});
  CHECK(Body("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n") ==
        Lines{"@@ -1,4 +1,4 @@", "-a", "+A", " 1", " 2", " 3", "@@ -6,4 +6,4 @@", " 5", " 6", " 7", "-b", "+B"});
}

TEST_CASE("DiffLines: what cannot be seen is spelled out", "[terminal]") {
  CHECK(Body("", "a\x1b[2J\u200b\u202e\n") == Lines{"@@ -0,0 +1 @@", "+a<U+001B>[2J<U+200B><U+202E>"});
  CHECK(Body("", "\ta\tb\n") == Lines{"@@ -0,0 +1 @@", "+→   a→  b"});
  CHECK(DiffLines("", "x", kNoColour, {.path = "a\x1b\n"}).lines[1] == "+++ b/a<U+001B> ");
}

TEST_CASE("DiffLines: line ends", "[terminal]") {
  CHECK(Body("a", "a\n") == Lines{"@@ -1 +1 @@", "-a", "\\ No newline at end of file", "+a"});
  CHECK(Body("a\nb", "a\nc") ==
        Lines{"@@ -1,2 +1,2 @@", " a", "-b", "\\ No newline at end of file", "+c", "\\ No newline at end of file"});
  CHECK(Body("a\r\n", "a\n") == Lines{"@@ -1 +1 @@", "-a<U+000D>", "+a"});
  CHECK(Body("a\nb\n", "a\r\nb\n") == Lines{"@@ -1,2 +1,2 @@", "-a", "+a<U+000D>", " b"});
  CHECK(Body("a\r\n", "b\r\n") ==
        Lines{"(each line ends with a carriage return and a line feed)", "@@ -1 +1 @@", "-a", "+b"});
  CHECK(Body("", "\r\r\n") ==
        Lines{"(each line ends with a carriage return and a line feed)", "@@ -0,0 +1 @@", "+<U+000D>"});
}

TEST_CASE("DiffLines: what is not text is said to be so", "[terminal]") {
  CHECK(Body("a\n", std::string_view("x\0y", 3)) ==
        Lines{"@@ -1 +1 @@", "-a", "+(3 bytes, not UTF-8 text: cannot be shown)"});
  CHECK(Body("\xff", "\xfe") == Lines{"@@ -1 +1 @@", "-(1 byte, not UTF-8 text: cannot be shown)",
                                      "+(1 byte, not UTF-8 text: cannot be shown)"});
}

TEST_CASE("DiffLines: colours", "[terminal]") {
  UseUtf8Locale();
  CHECK(DiffLines("a\nb\n", "a\nc\n", kColour, {.path = "p"}).lines ==
        Lines{"\x1b[1m--- a/p\x1b[0m", "\x1b[1m+++ b/p\x1b[0m", "\x1b[36m@@ -1,2 +1,2 @@\x1b[0m", " a",
              "\x1b[31m-b\x1b[0m", "\x1b[32m+c\x1b[0m"});
}

TEST_CASE("DiffLines: what there is no room for is counted", "[terminal]") {
  UseUtf8Locale();
  const Diff added = DiffLines(std::nullopt, Numbers(0, 100), kNoColour, {.path = "p", .max_lines = 12});
  CHECK(added.cut);
  CHECK(added.lines == Lines{"--- /dev/null", "+++ b/p", "@@ -0,0 +1,100 @@", "+0", "+1", "+2", "+3", "+4", "+5", "+6",
                             "+7", "… not shown: 0 lines removed, 92 lines added"});
  const Diff replaced = DiffLines(Numbers(0, 50), Numbers(100, 160), kNoColour, {.path = "p", .max_lines = 12});
  CHECK(replaced.cut);
  CHECK(replaced.lines == Lines{"--- a/p", "+++ b/p", "@@ -1,50 +1,60 @@",
                                "50 lines replaced by 60 lines; the beginning of both:", "-0", "-1", "-2", "-3", "+100",
                                "+101", "+102", "… not shown: 46 lines removed, 57 lines added"});
  const Diff whole = DiffLines(Numbers(0, 3), Numbers(1, 4), kNoColour, {.path = "p", .max_lines = 12});
  CHECK_FALSE(whole.cut);
  CHECK(whole.lines.size() == 7);
}

TEST_CASE("DiffLines: long lines", "[terminal]") {
  UseUtf8Locale();
  const std::string text = std::string(1000, 'x') + "\n";
  const Diff all = DiffLines("", text, kNoColour, {.path = "p", .width = 40});
  CHECK_FALSE(all.cut);
  std::string together;
  for (const std::string& line : all.lines) together += line;
  CHECK(std::count(together.begin(), together.end(), 'x') == 1000);
  const Diff part = DiffLines("", text, kNoColour, {.path = "p", .width = 40, .max_lines = 40});
  CHECK(part.cut);
  CHECK(part.lines.size() < 12);
  CHECK(part.lines.back() == "… not shown: the rest of long lines");
  CHECK(Joined(part.lines).find("800 more") != std::string::npos);
}

// Lines that are taken out or added make the one file of the other.
void RequireCorrect(const std::string& before, const std::string& after) {
  const Diff diff = DiffLines(before, after, kNoColour, {.path = "p", .context = 1'000'000});
  std::string old_text, new_text;
  for (std::size_t i = 2; i < diff.lines.size(); ++i) {
    const std::string& line = diff.lines[i];
    if (line.starts_with('@')) continue;
    if (line[0] != '+') old_text += line.substr(1) + "\n";
    if (line[0] != '-') new_text += line.substr(1) + "\n";
  }
  REQUIRE((before == after || old_text == before));
  REQUIRE((before == after || new_text == after));
}

TEST_CASE("DiffLines: is right for any two files", "[terminal]") {
  UseUtf8Locale();
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto file = [&] {
      std::string text;
      for (std::size_t i = random() % 40; i-- > 0;) text += std::to_string(random() % 10) + "\n";
      return text;
    };
    RequireCorrect(file(), file());
  }
}

TEST_CASE("DiffLines: any bytes, any width", "[terminal]") {
  UseUtf8Locale();
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::string before = RandomBytes(random, random() % 300);
    std::string after = before;
    if (!after.empty()) after.replace(random() % after.size(), random() % 20, RandomBytes(random, random() % 50));
    const int width = 8 + static_cast<int>(random() % 80);
    const int most = random() % 2 ? 10 + static_cast<int>(random() % 40) : 0;
    for (const bool text : {true, false}) {
      const std::string from = text ? ToValidUtf8(before) : before, to = text ? ToValidUtf8(after) : after;
      const Diff diff = DiffLines(from, to, kColour, {.path = "p", .width = width, .max_lines = most});
      REQUIRE(FaultOf(diff.lines, width) == "");
      if (most > 0) REQUIRE(diff.lines.size() <= static_cast<std::size_t>(most) + 12);
    }
  }
}

TEST_CASE("DiffLines: large files", "[terminal][long]") {
  UseUtf8Locale();
  std::string shuffled, other;
  std::vector<int> numbers;
  for (int i = 0; i < 20'000; ++i) numbers.push_back(i);
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937(1));
  for (const int i : numbers) shuffled += std::to_string(i) + "\n";
  for (int i = 0; i < 20'000; ++i) other += "other " + std::to_string(i) + "\n";
  const std::string ordered = Numbers(0, 20'000);
  RequireCorrect(ordered, other);
  RequireCorrect(ordered, shuffled);
  RequireCorrect(ordered + ordered, shuffled + shuffled);  // more than is compared
  RequireCorrect(ordered, "0\n" + ordered + "1\n");
  const Diff diff = DiffLines(ordered + ordered, shuffled + shuffled, kNoColour, {.path = "p", .max_lines = 40});
  CHECK(diff.lines.size() <= 40);
  CHECK(diff.lines[3] == "40,000 lines replaced by 40,000 lines; the beginning of both:");
}

TEST_CASE("DrawUnified: lines have their numbers, behind blank lines and in a deleted file", "[terminal]") {
  UseUtf8Locale();
  const auto drawn = [](const std::string& diff) {
    return DrawUnified(Json::array({{{"path", "a.txt"}, {"change", "modified"}, {"diff", diff}}}), kNoColour, 80);
  };
  const Lines far = drawn("--- a/a.txt\n+++ b/a.txt\n@@ -1,7 +1,8 @@\n one\n \n \n \n \n \n two\n+three\n");
  REQUIRE(far.size() == 6);
  CHECK(far[3] == "<5 blank lines>");
  CHECK(far[4].starts_with("   7 "));
  CHECK(far[5].starts_with("   8 "));
  std::string many;
  for (int i = 0; i < 1'200; ++i) many += " \n";
  CHECK(drawn("--- a/a.txt\n+++ b/a.txt\n@@ -1,1201 +1,1202 @@\n one\n" + many + "+two\n").back().starts_with("1202 "));
  const Lines deleted = drawn("--- a/a.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n");
  REQUIRE(deleted.size() == 4);
  CHECK(deleted[2].starts_with("   1 "));
  CHECK(deleted[3].starts_with("   2 "));
}

}  // namespace reprise::test::diff_view_test
