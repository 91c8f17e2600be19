
#include <filesystem>

#include "app/named_files.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::command_files_test {
namespace {

namespace fs = std::filesystem;
using File = ProjectInstructions::File;
using Kind = ProjectInstructions::Kind;
using State = ProjectInstructions::State;

std::vector<File> Commands(std::vector<File> files) {
  ReadCommandHeads(files);
  return files;
}

std::string Message(const std::string& text, const std::string& arguments) {
  const auto expanded = ExpandCommand(Commands({{.path = "/w/c/x.md", .text = text}}), "x", arguments);
  return expanded ? expanded->message : "(" + expanded.error().message + ")";
}

}  // namespace

TEST_CASE("ExpandCommand: arguments replace their placeholders once", "[app]") {
  CHECK(Message("Fix $ARGUMENTS now.\n", "a  b") == "Fix a  b now.");
  CHECK(Message("$2 before $1, $3.", "one two") == "two before one, .");
  CHECK(Message("$1|$2", "\"a b\" 'c \"d\"'") == "a b|c \"d\"");
  CHECK(Message("$1", "'unclosed quote") == "unclosed quote");
  CHECK(Message("<$1>", "''") == "<>");
  CHECK(Message("$1 $ARGUMENTS", "$ARGUMENTS $1") == "$ARGUMENTS $ARGUMENTS $1");
  CHECK(Message("It costs $100 or $0, $x and $", "") == "It costs $100 or $0, $x and $");
  CHECK(Message("Run the tests.", "twice") == "Run the tests.\n\ntwice");
  CHECK(Message("Run the tests.", "  \n") == "Run the tests.");
  CHECK(Message("---\ndescription: d\n---\nText $1", "a") == "Text a");
  CHECK(Message("$ARGUMENTS", "") == "(/w/c/x.md has no text)");
  for (const char* arguments : {"", "a"}) {
    CHECK(Message("---\ndescription: d\n---\n  \n", arguments) == "(/w/c/x.md: it has no text)");
  }
  CHECK(Commands({{.path = "/w/c/x.md", .text = "---\ndescription: d\n---\n  \n"}}).front().state == State::kUnusable);
  CHECK(Message("---\ndescription: d\n", "").find("a second line --- is missing") != std::string::npos);
}

TEST_CASE("ExpandCommand: the message is bounded", "[app]") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "$ARGUMENTS";
  CHECK(Message(text, std::string(kMaxExpanded / 1000, 'a')).size() <= kMaxExpanded);
  const auto too_long = ExpandCommand(Commands({{.path = "/w/c/x.md", .text = text}}), "x", std::string(1000, 'a'));
  REQUIRE_FALSE(too_long.has_value());
  CHECK(too_long.error().Is(Reason::kTooLarge));
}

TEST_CASE("ExpandCommand: what is not allowed, broken or unknown is no message", "[app]") {
  std::vector<File> files = Commands({{.path = "/w/c/new.md", .state = State::kNew, .text = "---\nbroken"},
                                      {.path = "/w/c/changed.md", .state = State::kChanged, .text = "text"},
                                      {.path = "/w/c/bad.md", .text = "---\nmodel: [a]\n---\ntext"},
                                      {.path = "/w/c/Capital.md", .text = "text"},
                                      {.path = "/w/c/link.md", .state = State::kUnusable, .problem = "leads out"}});
  for (const char* name : {"new", "changed"}) CHECK(ExpandCommand(files, name, "").error().Is(Reason::kUntrusted));
  CHECK(ExpandCommand(files, "new", "").error().message.find("reprise trust /w/c/new.md") != std::string::npos);
  CHECK(ExpandCommand(files, "bad", "").error().message.find("a model that is no text") != std::string::npos);
  CHECK(ExpandCommand(files, "link", "").error().message == "leads out");
  CHECK(ExpandCommand(files, "Capital", "").error().code == ErrorCode::kInvalidArgument);
  CHECK(ExpandCommand(files, "none", "").error().Is(Reason::kNoSuchCommand));
}

TEST_CASE("ExpandCommand: the nearer command, and a command before a skill", "[app]") {
  File skill{.path = "/w/.agents/skills/a/SKILL.md", .text = "---\nname: a\ndescription: b\n---\nSkill $1"};
  skill.kind = Kind::kSkill;
  skill.name = "a";
  CHECK(ExpandCommand({skill}, "a", "x")->message ==
        "Use the skill a (/w/.agents/skills/a/SKILL.md; paths in it are relative to its folder):\n\nSkill x");
  std::vector<File> files = Commands(
      {{.path = "/w/c/a.md", .text = "far"}, {.path = "/w/i/c/a.md", .text = "---\nmodel: m\n---\nnear\nline"}});
  CHECK(files[0].state == State::kUnusable);
  CHECK((files[1].name == "a" && files[1].description == "near"));
  files.insert(files.begin(), skill);
  CHECK(ExpandCommand(files, "a", "")->message == "near\nline");
  CHECK(ExpandCommand(files, "a", "")->model == "m");
}

TEST_CASE("NamedFilesIn: Markdown files by their names, and not too many", "[app]") {
  const TempDirectory directory;
  bool cut = true;
  CHECK(NamedFilesIn(directory.File("none"), cut).empty());
  CHECK_FALSE(cut);
  for (const char* name : {"b.md", "a.md", "c.txt", ".md"}) directory.Write(name, "");
  CHECK(NamedFilesIn(directory.path(), cut) == std::vector{directory.File("a.md"), directory.File("b.md")});
  for (std::size_t i = 0; i < kMaxNamedFiles; ++i) directory.Write("d" + std::to_string(i) + ".md", "");
  CHECK(NamedFilesIn(directory.path(), cut).size() == kMaxNamedFiles);
  CHECK(cut);
}

}  // namespace reprise::command_files_test
