#include "tools/shell/command_line.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "support/test.h"

// Compares the recognised words of a command line with those of real shells.
namespace reprise::command_line_test {
namespace {

std::vector<std::string> Literals(const ShellCommand& command) {
  std::vector<std::string> words;
  for (const ShellWord& word : command.words) words.push_back(word.is_literal() ? word.text : "?");
  return words;
}

// The output of `shell` for the script.
std::string Output(const char* shell, const std::string& script) {
  std::string file = "/tmp/reprise-command-line-XXXXXX";
  const int fd = ::mkstemp(file.data());
  REQUIRE(fd >= 0);
  REQUIRE(::write(fd, script.data(), script.size()) == static_cast<ssize_t>(script.size()));
  ::close(fd);
  // As a string, not as a file: that is how run_shell does it.
  const std::string command = "cd / && exec " + std::string(shell) + " -c \"$(cat " + file + "; echo .)\" 2>/dev/null";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output;
  std::array<char, 4096> buffer{};
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    output.append(buffer.data(), got);
  ::pclose(pipe);
  ::unlink(file.c_str());
  return output;
}

// Each line runs in a shell of its own, so that one that it does not understand spoils no other.
std::vector<std::string> WordsByShell(const char* shell, const std::vector<std::string>& lines) {
  std::string script;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string quoted;
    for (const char c : lines[i]) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    script += std::string(shell) + " -c '" + quoted + "' </dev/null\nprintf '\\001'\n";
  }
  script += "exit\n";
  const std::string output = Output(shell, script);
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = output.find('\001', at);
    if (end == std::string::npos) break;
    parts.push_back(output.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

constexpr std::string_view kProgram = "printf '<%s>'";

// A line of a few commands, each of which prints its words, with whatever may mean something to a shell in them.
std::string RandomLine(std::mt19937& random) {
  static const std::vector<std::string> pieces = {
      "a",       "b1",      "-x",       "--long=v",   "'",        "\"",  "\\",     " ",      "  ",        "\t",
      "'a b'",   "\"a b\"", "''",       "\"\"",       "\\ ",      "\\'", "\\\"",   "\\\\",   "\"\\\"\"",  "\"\\a\"",
      "\"\\$\"", "'\\'",    "#",        "a#b",        "~",        "a~",  "=~",     "x=1",    "a=b",       "%",
      "^",       "@",       "+",        ":",          ",",        "/",   ".",      "-",      "_",         "]",
      "!",       "{",       "}",        "{a,b}",      "$",        "$x",  "\"$x\"", "${x}",   "$(echo s)", "`echo s`",
      "*",       "?",       "[",        "/d?v/nul*",  "'*'",      "\\*", "&&",     "||",     "|",         ";",
      "&",       "\n",      ";;",       "(",          ")",        "<",   ">",      " 2>&1 ", "2>&1",      "1",
      "2",       "12",      "<<",       "if",         "then",     "fi",  "time",   "\\\n",   "\"\n\"",    "'%s'",
      "--",      "-n",      "\xc3\xa4", "'\xc3\xa4'", "\xc2\xa0", "\\n", "'\"'",   "\"'\""};
  std::uniform_int_distribution<std::size_t> any(0, pieces.size() - 1), length(1, 7);
  std::string line;
  for (std::size_t commands = 1 + random() % 2; commands > 0; --commands) {
    if (!line.empty()) line += std::array{" ; ", " && ", "\n", ";"}[random() % 4];
    line += std::string(kProgram) + " ";
    for (std::size_t count = length(random); count > 0; --count) {
      line += pieces[any(random)];
      if (random() % 2 == 0) line += ' ';
    }
  }
  return line;
}

// The expected output of those commands; nullopt if it cannot be told.
std::optional<std::string> Expected(const CommandLine& line) {
  std::string text;
  for (const ShellCommand& command : line) {
    const bool is_plain =
        !command.words.empty() && !command.has_assignments && !command.has_redirections && !command.in_background;
    // Only commands that always run and print here.
    if (!is_plain || command.joint == ShellJoint::kOr || command.joint == ShellJoint::kPipe) return std::nullopt;
    const auto& words = command.words;
    if (words.size() < 2 || words[0] != ShellWord{"printf"} || words[1] != ShellWord{"<%s>"}) return std::nullopt;
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (!words[i].is_literal()) return std::nullopt;
      text += "<" + words[i].text + ">";
    }
    if (words.size() == 2) text += "<>";
  }
  return text;
}

TEST_CASE("ParseCommandLine: words, quotes and joints", "[tools]") {
  const auto line = ParseCommandLine("git  'log'  \"a b\" c\\ d '' | head -5 && echo 'it'\"'\"'s'; ls\n pwd");
  REQUIRE(line);
  REQUIRE(line->size() == 5);
  CHECK(Literals(line->at(0)) == std::vector<std::string>{"git", "log", "a b", "c d", ""});
  CHECK(line->at(1).joint == ShellJoint::kPipe);
  CHECK(line->at(2).joint == ShellJoint::kAnd);
  CHECK(Literals(line->at(2)) == std::vector<std::string>{"echo", "it's"});
  CHECK(line->at(3).joint == ShellJoint::kThen);
  CHECK(line->at(4).joint == ShellJoint::kThen);
}

TEST_CASE("ParseCommandLine: marks words that may not be one word", "[tools]") {
  const auto kind = [](const char* word) { return ParseCommandLine("x " + std::string(word))->at(0).words.at(1).kind; };
  for (const char* word : {"a", "'*'", "\\*", "a=b", "a~", "HEAD^", "a#b"})
    CHECK(kind(word) == ShellWord::Kind::kLiteral);
  for (const char* word : {"*", "a*", "a?b", "[a"}) CHECK(kind(word) == ShellWord::Kind::kGlob);
  for (const char* word : {"$x", "\"$x\"", "~", "~a", "a=~", "{a,b}", "[a]", "!", "\xc3\xa4", "'\xc3\xa4'"}) {
    CHECK(kind(word) == ShellWord::Kind::kOpaque);
  }
}

TEST_CASE("ParseCommandLine: reports redirections, assignments and background commands", "[tools]") {
  const auto first = [](const char* text) { return ParseCommandLine(text)->at(0); };
  for (const char* text :
       {"a >/dev/null", "a 2>&1", "a > /dev/null 2>&1", "a </dev/null", "a 1>&2", "a 2>>/dev/null"}) {
    CAPTURE(text);
    CHECK_FALSE(first(text).has_redirections);
  }
  for (const char* text :
       {"a >x", "a <x", "a >>x", "a 2>x", "a >&x", "a 3>&1", "a >/dev/nullx", "a >$x", "a >|x", "a <>x", "a >&-"}) {
    CAPTURE(text);
    CHECK(first(text).has_redirections);
  }
  CHECK(first("X=1 a").has_assignments);
  CHECK(first("X=1 a").words.size() == 1);
  CHECK(first("a X=1").has_assignments == false);
  CHECK(first("a & b").in_background);
}

TEST_CASE("ParseCommandLine: refuses all other grammar", "[tools]") {
  for (const char* text : {"",           " ",
                           "\n",         "a &&",
                           "a |",        "| a",
                           "; a",        "a ;; b",
                           "a && && b",  "$(a)",
                           "x $(a)",     "x `a`",
                           "x ${a}",     "x \"$(a)\"",
                           "x $'a'",     "(a)",
                           "{ a; }",     "if a; then b; fi",
                           "! a",        "time a",
                           "a() { b; }", "function a { b; }",
                           "a <<E\nE",   "a <<<b",
                           "a <(b)",     "a # b",
                           "'a",         "\"a",
                           "a\\",        "a\\\nb",
                           "a\rb",       "a\x1b",
                           "a 'x\ny'",   "a |& b",
                           "a &> b",     "a >",
                           "a 10>b",     "while a; do b; done",
                           "[[ a ]]"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseCommandLine(text));
  }
  CHECK_FALSE(ParseCommandLine(std::string("a\0b", 3)));
}

TEST_CASE("ParseCommandLine: finds the same words as the shell", "[tools]") {
  const char* const chosen = std::getenv("REPRISE_COMMAND_LINES");
  const std::size_t wanted = chosen ? std::strtoul(chosen, nullptr, 10) : 1500;
  std::mt19937 random(Catch::rngSeed());
  std::vector<std::string> lines, expected;
  while (lines.size() < wanted) {
    std::string line = RandomLine(random);
    const auto parsed = ParseCommandLine(line);
    auto words = parsed ? Expected(*parsed) : std::nullopt;
    if (!words) continue;  // refused
    lines.push_back(std::move(line));
    expected.push_back(*std::move(words));
  }
  for (const char* shell : {"/bin/sh", "/bin/bash"}) {
    if (::access(shell, X_OK) != 0) continue;
    constexpr std::size_t kAtOnce = 250;
    for (std::size_t from = 0; from < lines.size(); from += kAtOnce) {
      const std::size_t end = std::min(from + kAtOnce, lines.size());
      const auto made = WordsByShell(
          shell, {lines.begin() + static_cast<std::ptrdiff_t>(from), lines.begin() + static_cast<std::ptrdiff_t>(end)});
      REQUIRE(made.size() == end - from);
      for (std::size_t i = 0; i < made.size(); ++i) {
        CAPTURE(shell, lines[from + i]);
        CHECK(made[i] == expected[from + i]);
      }
    }
  }
}

TEST_CASE("QuotedWord: the parser reads the same word back", "[tools]") {
  for (const char* word :
       {"a", "", "a b", "it's", "$x", "*", "a=b", "--a=b", "if", "!", "~", "#", "a;b", "\\", "\"", "{a}", "time"}) {
    CAPTURE(word);
    const auto line = ParseCommandLine("x " + QuotedWord(word));
    REQUIRE(line);
    CHECK(Literals(line->at(0)) == std::vector<std::string>{"x", word});
    if (*word == '\0' || std::string_view(word).starts_with("--")) continue;
    const auto first = ParseCommandLine(QuotedWord(word));
    REQUIRE(first);
    CHECK(Literals(first->at(0)) == std::vector<std::string>{word});
  }
}

}  // namespace
}  // namespace reprise::command_line_test
