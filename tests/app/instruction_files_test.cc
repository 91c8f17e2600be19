#include "app/instruction_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "crypto/digest.h"
#include "support/fixtures.h"
#include "support/test.h"

namespace reprise::test::instruction_files_test {
namespace {

namespace fs = std::filesystem;

// How often this thread has read from a file, these lines included.
std::uint64_t Reads() {
  std::ifstream file("/proc/thread-self/io");
  std::string word;
  std::uint64_t count = 0;
  while (file >> word && word != "syscr:") continue;
  file >> count;
  return count;
}

class Project {
 public:
  Project() {
    fs::create_directories(directory_.File("w/.git"));
    fs::create_directories(directory_.File("config"));
    Options options;
    options.workspace = File("w");
    options.trust_file = File("config/trusted.json");
    files_.emplace(options, options.workspace, /*with_skills=*/true);
  }
  std::string File(const std::string& name) const { return directory_.File(name); }
  void Write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(File(name)).parent_path());
    std::ofstream(File(name), std::ios::trunc) << text;
  }
  // "AGENTS.md: text", for each, and its state if it is not in use.
  std::string List() {
    std::string list;
    for (const auto& file : files_->List()) {
      list += fs::path(file.path).lexically_relative(File("w")).string() + ": " + file.text;
      if (file.state != ProjectInstructions::State::kUsed) list += " (" + std::string(ToString(file.state)) + ")";
      list += "\n";
    }
    return list;
  }
  // Lists until nothing is read for it, which is soon after the last change.
  bool ListsFromMemory() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const std::uint64_t first = Reads(), own = Reads() - first;
    while (std::chrono::steady_clock::now() < end) {
      const std::uint64_t before = Reads();
      List();
      if (Reads() - before == own) return true;
    }
    return false;
  }

 private:
  const TempDirectory directory_;
  std::optional<InstructionFiles> files_;
};

}  // namespace

TEST_CASE("InstructionFiles: what has not changed is not read again, and every change is seen", "[app]") {
  Project project;
  project.Write("w/AGENTS.md", "one");
  REQUIRE(project.List() == "AGENTS.md: one (new)\n");
  REQUIRE(project.ListsFromMemory());

  // The same size and time of modification.
  struct stat before {};
  REQUIRE(::stat(project.File("w/AGENTS.md").c_str(), &before) == 0);
  project.Write("w/AGENTS.md", "two");
  const timespec times[] = {before.st_atim, before.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, project.File("w/AGENTS.md").c_str(), times, 0) == 0);
  CHECK(project.List() == "AGENTS.md: two (new)\n");
  REQUIRE(project.ListsFromMemory());

  const auto digest = Sha256Digest({"two"});
  REQUIRE(TrustedFiles(project.File("config/trusted.json")).Allow({{project.File("w/AGENTS.md"), digest}}));
  CHECK(project.List() == "AGENTS.md: two\n");
  REQUIRE(project.ListsFromMemory());
  REQUIRE(TrustedFiles(project.File("config/trusted.json")).Revoke(project.File("w/AGENTS.md")));
  CHECK(project.List() == "AGENTS.md: two (new)\n");
  REQUIRE(project.ListsFromMemory());

  fs::rename(project.File("w/AGENTS.md"), project.File("w/CLAUDE.md"));
  CHECK(project.List() == "CLAUDE.md: two (new)\n");
  REQUIRE(project.ListsFromMemory());
  fs::remove(project.File("w/CLAUDE.md"));
  CHECK(project.List().empty());
  REQUIRE(project.ListsFromMemory());

  // What appears in folders that were not there, and in one that was.
  project.Write("w/.reprise/commands/go.md", "Go.");
  CHECK(project.List() == ".reprise/commands/go.md: Go. (new)\n");
  fs::create_directories(project.File("w/.agents/skills/a"));
  REQUIRE(project.ListsFromMemory());
  project.Write("w/.agents/skills/a/SKILL.md", "x");
  CHECK(project.List().starts_with(".agents/skills/a/SKILL.md: x"));
  REQUIRE(project.ListsFromMemory());
  project.Write("config/AGENTS.md", "own");
  CHECK(project.List().starts_with("../config/AGENTS.md: own\n"));
}

TEST_CASE("InstructionFiles: a link is followed to what it leads to now", "[app]") {
  Project project;
  project.Write("w/docs/a.md", "a");
  fs::create_symlink("docs/a.md", project.File("w/AGENTS.md"));
  REQUIRE(project.List() == "AGENTS.md: a (new)\n");
  REQUIRE(project.ListsFromMemory());
  project.Write("w/docs/a.md", "b");
  CHECK(project.List() == "AGENTS.md: b (new)\n");
  REQUIRE(project.ListsFromMemory());
  fs::remove(project.File("w/docs/a.md"));
  CHECK(project.List().ends_with("(unusable)\n"));
  REQUIRE(project.ListsFromMemory());
  project.Write("w/docs/a.md", "c");
  CHECK(project.List() == "AGENTS.md: c (new)\n");
  REQUIRE(project.ListsFromMemory());
  fs::rename(project.File("w"), project.File("moved"));
  CHECK(project.List().empty());
}

}  // namespace reprise::test::instruction_files_test
