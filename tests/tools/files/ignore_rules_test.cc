#include "tools/files/ignore_rules.h"

#include <string>

#include "support/test.h"

namespace reprise {
namespace ignore_rules_test {

TEST_CASE("IgnoreRules: patterns match as gitignore(5) says", "[rewind]") {
  const auto [pattern, path, is_directory, named] = GENERATE(table<std::string, std::string, bool, bool>({
      {"*.log", "a.log", false, true},
      {"*.log", "deep/er/a.log", false, true},
      {"*.log", "a.logs", false, false},
      {"/build", "build", true, true},
      {"/build", "sub/build", true, false},
      {"build/", "build", false, false},
      {"build/", "sub/build", true, true},
      {"a/b", "a/b", false, true},
      {"a/b", "x/a/b", false, false},
      {"a/*", "a/b", false, true},
      {"a/*", "a/b/c", false, false},
      {"**/x", "x", false, true},
      {"**/x", "a/b/x", false, true},
      {"a/**", "a/b/c", false, true},
      {"a/**", "a", true, false},
      {"a/**/z", "a/z", false, true},
      {"a/**/z", "a/b/c/z", false, true},
      {"a**z", "abcz", false, true},
      {"***/x", "a/b/x", false, true},
      {"a/****", "a/b/c", false, true},
      {"?.c", "x.c", false, true},
      {"?.c", "xy.c", false, false},
      {"[a-c]x", "bx", false, true},
      {"[!a-c]x", "bx", false, false},
      {"[^a-c]x", "dx", false, true},
      {"[]]", "]", false, true},
      {"[[:digit:]]", "7", false, true},
      {"[a", "[a", false, false},
      {"\\#x", "#x", false, true},
      {"#x", "#x", false, false},
      {"\\!x", "!x", false, true},
      {"x\\ ", "x ", false, true},
      {"x  ", "x", false, true},
      {"a.b", "axb", false, false},
      {"(a|b)+", "(a|b)+", false, true},
      {"*.log\n!keep.log", "keep.log", false, false},
      {"!keep.log\n*.log", "keep.log", false, true},
      {"\xff\xfe*", "\xff\xfez", false, true},
  }));
  CAPTURE(pattern, path);
  const auto rules = IgnoreRules::Parse(pattern, "", nullptr);
  CHECK((rules && rules->Names(path, is_directory)) == named);
}

TEST_CASE("IgnoreRules: the nearest matching file decides", "[rewind]") {
  const auto above = IgnoreRules::Parse("*.o\n/top\n", "", nullptr);
  const auto below = IgnoreRules::Parse("!keep.o\n/here\n", "sub/", above);
  CHECK(below->Names("sub/a.o", false));
  CHECK_FALSE(below->Names("sub/keep.o", false));
  CHECK(below->Names("sub/here", false));
  CHECK_FALSE(below->Names("sub/deep/here", false));
  CHECK(below->Names("top", false));
}

TEST_CASE("IgnoreRules: no content of a file breaks it", "[rewind]") {
  for (const std::string& text : {std::string(), std::string("\n\n\r\n"), std::string(100'000, '*'), std::string("\\"),
                                  std::string("[[:nothing:]]"), std::string("a\0b", 3), std::string("/"),
                                  std::string("!"), std::string("**"), std::string("[z-a]")}) {
    const auto rules = IgnoreRules::Parse(text, "", nullptr);
    if (rules) static_cast<void>(rules->Names("some/path", false));
  }
}

}  // namespace ignore_rules_test
}  // namespace reprise
