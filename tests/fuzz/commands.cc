// Command lines of models, and the patterns that they are compared with.

#include <string>
#include <vector>

#include "fuzz/driver.h"
#include "tools/shell/command_line.h"
#include "tools/shell/command_pattern.h"

namespace reprise::fuzz {
namespace {

const std::vector<std::string> kPatterns = {"git status", "git log *",          "ls *",     "cat *", "echo *",
                                            "npm test *", "cd web && npm test", "make test"};

// A line of plain words that is quoted and parsed again yields the same words.
void CheckWords(std::string_view line) {
  const auto commands = ParseCommandLine(line);
  if (!commands) return;
  Expect(!commands->empty(), "a line without a command");
  for (const ShellCommand& command : *commands) {
    std::string written = "x";
    std::vector<ShellWord> words;
    for (const ShellWord& word : command.words) {
      if (!word.is_literal()) continue;
      Expect(word.text.find('\n') == std::string::npos && word.text.find('\0') == std::string::npos,
             "a word of two lines");
      written += " " + QuotedWord(word.text);
      words.push_back(word);
    }
    const auto again = ParseCommandLine(written);
    Expect(again && again->size() == 1, "words that are read as something else");
    Expect(std::vector<ShellWord>(again->front().words.begin() + 1, again->front().words.end()) == words,
           "other words");
  }
}

void CheckPatterns(std::string_view line) {
  for (const CallPattern& offered : PatternsOfCommand(line)) {
    Expect(CommandCoveredBy({offered.pattern}, line).has_value(), "a pattern that does not cover its call");
    Expect(!offered.means.empty(), "a pattern without a sentence");
    Expect(MeaningOfCommandPattern(offered.pattern, PatternUse::kAllow).value_or("") == offered.means, "two sentences");
  }
  const bool is_covered = CommandCoveredBy(kPatterns, line).has_value();
  for (const std::string_view mark : {"$(", "`", "<<", "${", "(", "\\\n"}) {
    // Within quotes they have no meaning.
    const bool is_bare = line.find(mark) != std::string_view::npos &&
                         line.find_first_of("'\"") == std::string_view::npos &&
                         line.find('\\') == std::string_view::npos;
    if (is_bare) Expect(!is_covered, "a line that does more than its words say");
  }
  // A covered line was parsed completely, so rules that hold back are certain, too.
  if (is_covered) {
    for (const char* held : {"rm", "git push", "curl"})
      Expect(CommandTouches(held, line) != Touch::kYes, "a covered line that is held back");
  }
}

void Run(std::string_view input) {
  CheckWords(input);
  CheckPatterns(input);
  static_cast<void>(CommandTouches(input, "git push origin"));
  if (const auto meaning = MeaningOfCommandPattern(input, PatternUse::kAllow))
    Expect(!meaning->empty(), "an empty sentence");
}

}  // namespace
}  // namespace reprise::fuzz

int main(int argc, char** argv) {
  using namespace reprise;
  return fuzz::Main(argc, argv,
                    {.name = "commands",
                     .seeds = {"git log --oneline | head -20", "cd web && npm test", "echo 'a b' \"c\\\"d\" e\\ f",
                               "git status >/dev/null 2>&1; ls -la src/*.cc", "X=1 git push", "cat <<E\nx\nE",
                               "ls $(id) `id` ${x}", "if a; then b; fi"},
                     .words = {"'", "\"",  "\\",     "$(",  ")",  "`",    "${", "}",    "&&",       "||", "|",
                               ";", "&",   "\n",     ">",   "<<", "2>&1", "*",  "?",    "[",        "~",  "#",
                               "=", "git", "status", "log", "--", "-x",   "cd", "echo", "\xc3\xa4", " ",  "\t"},
                     .run = fuzz::Run});
}
