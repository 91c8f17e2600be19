#include "tools/shell/command_pattern.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/source_directory.h"
#include "support/test.h"

namespace reprise::command_pattern_test {
namespace {

using Lines = std::vector<std::string>;

nlohmann::json Table() {
  std::ifstream file(SourceDirectory() + "/tests/data/command_lines/lines.json");
  REQUIRE(file);
  return nlohmann::json::parse(file);
}

Lines Patterns(std::string_view command) {
  Lines patterns;
  for (const CallPattern& each : PatternsOfCommand(command)) patterns.push_back(each.pattern);
  return patterns;
}

bool Covers(const Lines& patterns, std::string_view command) { return CommandCoveredBy(patterns, command).has_value(); }

TEST_CASE("command patterns: no hostile line is covered by the usual patterns, and the harmless ones are", "[tools]") {
  const auto table = Table();
  const Lines patterns = table.at("patterns");
  const Lines hostile = table.at("hostile"), harmless = table.at("harmless");
  REQUIRE(hostile.size() >= 400);
  REQUIRE(harmless.size() >= 100);
  for (const std::string& pattern : patterns) {
    CAPTURE(pattern);
    CHECK(MeaningOfCommandPattern(pattern, PatternUse::kAllow));
  }
  for (const std::string& line : hostile) {
    CAPTURE(line);
    CHECK_FALSE(Covers(patterns, line));
  }
  for (const std::string& line : harmless) {
    CAPTURE(line);
    CHECK(Covers(patterns, line));
  }
}

TEST_CASE("command patterns: what is offered covers its call, and no hostile line", "[tools]") {
  const auto table = Table();
  Lines offered;
  for (const std::string line : table.at("harmless")) {
    for (const CallPattern& each : PatternsOfCommand(line)) {
      CAPTURE(line, each.pattern);
      CHECK(Covers({each.pattern}, line));
      CHECK(MeaningOfCommandPattern(each.pattern, PatternUse::kAllow).value_or("") == each.means);
      CHECK(each.means.ends_with("."));
      offered.push_back(each.pattern);
    }
  }
  REQUIRE(offered.size() > 100);
  // "git status *" is offered and the table's list has only "git status"; likewise for the others here.
  const Lines covered_by_wider = {"git status -s x", "git status x", "npm run build x", "cd web && git status"};
  for (const std::string line : table.at("hostile")) {
    if (std::find(covered_by_wider.begin(), covered_by_wider.end(), line) != covered_by_wider.end()) continue;
    CAPTURE(line);
    CHECK_FALSE(Covers(offered, line));
  }
}

TEST_CASE("command patterns: the narrowest comes first, and never a * where a program runs what it is given",
          "[tools]") {
  CHECK(Patterns("git status") == Lines{"git status", "git status *"});
  CHECK(Patterns("git log -5 | head -2") == Lines{"git log -5; head -2", "git log *; head *"});
  CHECK(Patterns("cd web && npm test && ls") == Lines{"cd web && npm test && ls", "cd web && npm test * && ls *"});
  CHECK(Patterns("ls src/*.cc") == Lines{"ls *"});
  CHECK(Patterns("make test") == Lines{"make test"});
  for (const char* line : {"python3 -c 'x y'", "env ls", "xargs ls", "find . -name x", "sudo ls", "bash -c ls",
                           "git push origin", "npm install", "tar xf a"}) {
    CAPTURE(line);
    for (const std::string& pattern : Patterns(line)) CHECK(pattern.find('*') == std::string::npos);
    CHECK(Patterns(line).size() == 1);
  }
  for (const char* line : {"ls $x", "ls > x", "X=1 ls", "ls & id", "$(ls)", "echo x | sh", "cd /tmp; ls", "eval ls",
                           "for x in y; do ls; done", ""}) {
    CAPTURE(line);
    CHECK(Patterns(line).empty());
  }
}

TEST_CASE("command patterns: the sentence is made of the pattern", "[tools]") {
  const auto meaning = [](const char* pattern) {
    return MeaningOfCommandPattern(pattern, PatternUse::kAllow).value_or("-");
  };
  CHECK(meaning("pwd") == "Runs exactly `pwd`, alone or in one line with other commands that are allowed.");
  CHECK(meaning("make test") ==
        "Runs exactly `make test` (files decide what that does, and they may change), alone or in one line with other "
        "commands that are allowed.");
  CHECK(meaning("wc *") ==
        "Runs `wc` followed by any words that do not begin with -, + or @, and by no options but -l, -w, -c, -m, -L, "
        "alone "
        "or in one line with other commands that are allowed.");
  CHECK(meaning("frobnicate now *") ==
        "Runs `frobnicate now` followed by any words that do not begin with -, + or @, alone or in one line with other "
        "commands that are allowed.");
  CHECK(MeaningOfCommandPattern("git push", PatternUse::kHold).value_or("") ==
        "Every command line with a command that begins with `git push`, whatever follows; one that could have it and "
        "cannot be told asks.");
}

TEST_CASE("command patterns: what cannot be believed is none", "[tools]") {
  for (const char* pattern :
       {"",        "*",           "git *",         "npm *",  "git push *", "git config *",   "env *",
        "bash *",  "python3 *",   "python3.11 *",  "find *", "sudo *",     "/usr/bin/env *", "make *",
        "xargs *", "cd web",      "cd *",          "eval x", "export A=b", "ls$x",           "ls ?",
        "ls *.c",  "l* x",        "ls * x",        "A=b ls", "ls > x",     "ls | wc",        "ls && wc",
        "$(ls)",   "ls \xc3\xa4", "git log --* x", "awk *",  "vim *",      "git -C x *"}) {
    CAPTURE(pattern);
    CHECK_FALSE(MeaningOfCommandPattern(pattern, PatternUse::kAllow));
    CHECK_FALSE(Covers({pattern}, "ls"));
  }
  for (const char* pattern : {"", "*", "ls | wc", "$(ls)", "cd x && ls", "ls ?"}) {
    CAPTURE(pattern);
    CHECK_FALSE(MeaningOfCommandPattern(pattern, PatternUse::kHold));
  }
}

TEST_CASE("command patterns: each part of a line needs one, and those that were needed are told", "[tools]") {
  const Lines patterns = {"git status", "git log *", "head *"};
  CHECK(CommandCoveredBy(patterns, "git log | head -5 && git status") == std::vector<std::size_t>{1, 2, 0});
  CHECK(CommandCoveredBy(patterns, "git status") == std::vector<std::size_t>{0});
  CHECK_FALSE(CommandCoveredBy(patterns, "git log | tail"));
  CHECK_FALSE(CommandCoveredBy({}, "git status"));
}

TEST_CASE("command patterns: what holds back speaks of all that could be meant", "[tools]") {
  const auto touch = [](const char* pattern, const char* command) { return CommandTouches(pattern, command); };
  for (const char* line : {"git push",
                           "git push origin main",
                           "/usr/bin/git push",
                           "git -C x push",
                           "git --no-pager push",
                           "\\git push",
                           "'git' \"push\"",
                           "GIT push",
                           "ls; git push",
                           "ls | git push",
                           "ls && git push",
                           "ls & git push",
                           "X=1 git push",
                           "git push > x",
                           "env git push",
                           "sudo git push",
                           "xargs git push",
                           "nice -n 5 git push",
                           "timeout 5 git push",
                           "busybox git push",
                           "command git push",
                           "exec git push",
                           "git\tpush",
                           "find . -exec git push \\;",
                           "git push $x",
                           "git push *"}) {
    CAPTURE(line);
    CHECK(touch("git push", line) == Touch::kYes);
    CHECK(touch("git push *", line) == Touch::kYes);
  }
  for (const char* line : {"$g push",
                           "git $p",
                           "git p*",
                           "g?t push",
                           "$(echo git) push",
                           "`git push`",
                           "sh -c 'git push'",
                           "bash x",
                           "python3 -c x",
                           "eval x",
                           "if git push; then ls; fi",
                           "git -c alias.x=push x",
                           "xargs -n1 x",
                           "(git push)",
                           "git push <<E\nE",
                           "X=1",
                           "{ git push; }",
                           "ls --x=git",
                           ". x",
                           "git() { x; }",
                           "g{it,x} push"}) {
    CAPTURE(line);
    CHECK(touch("git push", line) != Touch::kNo);
  }
  for (const char* line : {"git status", "git commit -m x", "ls", "echo git push", "ls *.c", "cat $x", "ls > git",
                           "git log push", "cd x && ls", "grep 'git push' x"}) {
    CAPTURE(line);
    CHECK(touch("git push", line) == Touch::kNo);
  }
  CHECK(touch("rm -rf", "rm -rf x") == Touch::kYes);
  CHECK(touch("rm -rf", "rm -r -f x") == Touch::kMaybe);
  CHECK(touch("rm -rf", "rm --recursive x") == Touch::kMaybe);
  CHECK(touch("rm -rf", "rm x") == Touch::kNo);
  CHECK(touch("rm; mv", "mv a b") == Touch::kYes);
}

}  // namespace
}  // namespace reprise::command_pattern_test
