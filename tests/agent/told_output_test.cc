#include <string>

#include "agent/told.h"
#include "base/text.h"
#include "support/test.h"

namespace reprise {
namespace told_output_test {

std::string Told(const std::string& output) { return ToldOutput("run_shell", output); }

TEST_CASE("ToldOutput: a command's output is the text that a terminal finally shows", "[agent]") {
  CHECK(Told("\x1b[1;31mred\x1b[0m and \x1b[38;5;12mblue\x1b(B\n") == "red and blue\n");
  CHECK(Told("10 %\r20 %\r\x1b[K100 %\ndone\n") == "100 %\ndone\n");
  CHECK(Told("short\r\nlines\r\n") == "short\nlines\n");
  CHECK(Told("last\r") == "last");
  CHECK(Told("a\rb") == "b");
  CHECK(Told("gone\r\x1b[2K") == "");
  CHECK(Told("\x1b]0;a title\a\x1b]8;;http://x.test\x1b\\link\x1b]8;;\x1b\\") == "link");
  CHECK(Told("\x1b]never ends") == "]never ends");
  CHECK(Told("\x1b") == "");
  CHECK(Told("tab\tand \xc3\xa4") == "tab\tand \xc3\xa4");
}

TEST_CASE("ToldOutput: a long output keeps its beginning and end, with the size of the gap", "[agent]") {
  std::string lines;
  for (int i = 0; i < 10'000; ++i) lines += std::to_string(i) + "\n";
  const std::string told = Told(lines);
  CHECK(told.size() < 33 << 10);
  CHECK(told.starts_with("0\n1\n"));
  CHECK(told.ends_with("\n9998\n9999\n"));
  const std::size_t note = told.find("(... "), rest = told.find(" ...)\n");
  REQUIRE(note != std::string::npos);
  REQUIRE(told[note - 1] == '\n');
  const std::string_view head = std::string_view(told).substr(0, note), tail = std::string_view(told).substr(rest + 6);
  CHECK(lines.starts_with(head));
  CHECK(lines.ends_with("\n" + std::string(tail)));
  std::string left = std::to_string(lines.size() - head.size() - tail.size());
  left.insert(left.size() - 3, ",");
  CHECK(told.substr(note).starts_with("(... " + left + " bytes left out here"));
  // Bytes that the tool itself has cut count too.
  const std::string cut =
      Told(std::string(32 << 10, 'a') + "\n(... 5000000 bytes cut ...)\n" + std::string(32 << 10, 'b'));
  CHECK(cut.find("(... 5,033,024 ") != std::string::npos);
}

TEST_CASE("ToldOutput: a long line is cut between characters", "[agent]") {
  for (const std::size_t shift : {0, 1, 2, 3}) {
    std::string line(shift, 'x');
    while (line.size() < 40'000) line += "\xe2\x82\xac";
    const std::string told = Told("head\n" + line);
    CHECK(IsUtf8(told));
    CHECK(told.size() > 32'000);
    CHECK(told.find("bytes left out") != std::string::npos);
  }
}

TEST_CASE("ToldOutput: an escape before any text leaves every character whole", "[agent]") {
  for (int first = 0; first < 0x80; ++first) {
    for (const std::string_view next : {"", "[", "(", "1;", ";\xe2\x82\xac", "\r", "\x1b"}) {
      const std::string output = std::string("\x1b") + static_cast<char>(first) + std::string(next) +
                                 "\xe2\x82\xac\xc3\xa4\xf0\x9f\x99\x82 end";
      const std::string told = Told(output);
      CAPTURE(output, told);
      CHECK(IsUtf8(told));
      CHECK(told.ends_with(" end"));
      CHECK(IsToldOutput("run_shell", told, output));
    }
  }
}

TEST_CASE("ToldOutput: overwritten progress costs nothing", "[agent]") {
  std::string progress;
  for (int i = 0; i < 20'000; ++i) progress += "\r" + std::to_string(i);
  CHECK(Told(progress + "\ndone\n") == "19999\ndone\n");
}

TEST_CASE("ToldOutput: repeated strings without an end are searched only once", "[agent]") {
  std::string begins, ends;
  for (int i = 0; i < 1 << 20; ++i) begins += "\x1b]", ends += "\x1b]0;t\a";
  CHECK(Told(begins + "done\n").ends_with("]]done\n"));
  CHECK(Told(ends + "done\n") == "done\n");
  CHECK(Told("\x1b]0;title\x1b\\a\x1b]8;;http://x\x1b\\b\x1b]never") == "ab]never");
}

TEST_CASE("ToldOutput: other tools' outputs stay unchanged", "[agent]") {
  const std::string text = "\x1b[31mred\rx" + std::string(100'000, 'x');
  CHECK(ToldOutput("read_file", text) == text);
}

}  // namespace told_output_test
}  // namespace reprise
