#include <algorithm>
#include <filesystem>

#include "app/prompt_files.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::skill_files_test {
namespace {

namespace fs = std::filesystem;
using File = ProjectInstructions::File;
using State = ProjectInstructions::State;

File Skill(const std::string& path, const std::string& name, const std::string& description = "d") {
  File file{.path = path, .text = "---\nname: " + name + "\ndescription: " + description + "\n---\n"};
  file.kind = ProjectInstructions::Kind::kSkill;
  return file;
}

std::size_t LinesIn(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("SkillsIn: folders that have a SKILL.md, by their names, and not too many", "[app]") {
  const TempDirectory directory;
  bool cut = true;
  CHECK(SkillsIn(directory.File("none"), cut).empty());
  CHECK_FALSE(cut);
  for (const char* name : {"b", "a", "c"}) fs::create_directory(directory.File(name));
  directory.Write("b/SKILL.md", "");
  directory.Write("a/SKILL.md", "");
  directory.Write("c/skill.md", "");
  directory.Write("SKILL.md", "");
  CHECK(SkillsIn(directory.path(), cut) == std::vector{directory.File("a/SKILL.md"), directory.File("b/SKILL.md")});
  for (std::size_t i = 0; i < kMaxSkills; ++i) {
    fs::create_directory(directory.File("d" + std::to_string(i)));
    directory.Write("d" + std::to_string(i) + "/SKILL.md", "");
  }
  CHECK(SkillsIn(directory.path(), cut).size() == kMaxSkills);
  CHECK(cut);
}

TEST_CASE("ReadHeads: the nearer of two skills of one name is used, and what is not used is not read", "[app]") {
  std::vector<File> files = {
      Skill("/home/.agents/skills/a/SKILL.md", "a", "far"), Skill("/w/.agents/skills/a/SKILL.md", "a", "near"),
      Skill("/w/.agents/skills/b/SKILL.md", "B"), Skill("/w/.agents/skills/new/SKILL.md", "a", "not allowed")};
  files.back().state = State::kNew;
  ReadHeads(files);
  CHECK(files[0].state == State::kUnusable);
  CHECK(files[0].problem.find("/w/.agents/skills/a/SKILL.md, which lies nearer") != std::string::npos);
  CHECK(files[0].digest.empty());
  CHECK((files[1].state == State::kUsed && files[1].name == "a" && files[1].description == "near"));
  CHECK((files[2].state == State::kUnusable && files[2].problem.starts_with("/w/.agents/skills/b/SKILL.md: ")));
  CHECK((files[3].state == State::kNew && files[3].name.empty()));
}

TEST_CASE("SkillsText: a line for each, the nearest first in line for the room, the same bytes each time", "[app]") {
  const TempDirectory directory;
  const std::string workspace = fs::canonical(directory.path()).string();
  CHECK(SkillsText({}, workspace).empty());
  std::vector<File> files = {Skill("/elsewhere/one/SKILL.md", "one", "first"),
                             Skill(workspace + "/.agents/skills/two/SKILL.md", "two", "second")};
  ReadHeads(files);
  const std::string text = SkillsText(files, workspace);
  CHECK(text.ends_with("\n- one (/elsewhere/one/SKILL.md): first\n- two (.agents/skills/two/SKILL.md): second"));
  CHECK(text == SkillsText(files, workspace));
  CHECK(SkillFoldersOutside(files, workspace) == std::vector<std::string>{"/elsewhere/one"});

  files.clear();
  for (std::size_t i = 0; i < kMaxSkillsToldOf + 5; ++i)
    files.push_back(Skill("/s/" + std::to_string(i) + "/SKILL.md", "s" + std::to_string(i)));
  ReadHeads(files);
  const std::string many = SkillsText(files, workspace);
  CHECK(LinesIn(many) == kMaxSkillsToldOf + 1);
  CHECK(many.ends_with("\n(5 more are left out)"));
  CHECK(many.find("- s4 ") == std::string::npos);
  CHECK(many.find("- s5 ") != std::string::npos);

  files.clear();
  for (int i = 0; i < 20; ++i)
    files.push_back(Skill("/s/" + std::to_string(i) + "/SKILL.md", "s" + std::to_string(i), std::string(1000, 'x')));
  ReadHeads(files);
  const std::string large = SkillsText(files, workspace);
  CHECK(large.size() < kMaxSkillList + 1000);
  CHECK(large.find("more are left out)") != std::string::npos);
}

TEST_CASE("SkillFoldersOutside: what a link takes out of the workspace lies outside", "[app]") {
  const TempDirectory directory, other;
  const std::string workspace = fs::canonical(directory.path()).string();
  fs::create_directory(other.File("x"));
  other.Write("x/SKILL.md", "");
  fs::create_directory_symlink(other.File("x"), workspace + "/x");
  std::vector<File> files = {Skill(workspace + "/x/SKILL.md", "x")};
  ReadHeads(files);
  CHECK(SkillFoldersOutside(files, workspace) == std::vector<std::string>{workspace + "/x"});
  CHECK(SkillsText(files, workspace).ends_with("- x (" + workspace + "/x/SKILL.md): d"));
}

}  // namespace reprise::skill_files_test
