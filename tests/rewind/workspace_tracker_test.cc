#include "rewind/workspace_tracker.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "crypto/digest.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise {
namespace workspace_tracker_test {

namespace fs = std::filesystem;

struct World {
  TempDirectory folder;
  fs::path root = fs::path(folder.path()) / "workspace";
  std::unique_ptr<Workspace> workspace;
  std::unique_ptr<WorkspaceTracker> tracker;
  std::map<std::string, std::string> kept{};

  explicit World(RewindLimits limits = {}) {
    fs::create_directory(root);
    workspace = std::make_unique<Workspace>(root.string(), std::vector<std::string>{(root / "chats").string()});
    tracker = std::make_unique<WorkspaceTracker>(*workspace, folder.path(), limits);
  }
  void Write(const std::string& path, const std::string& content) const {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path, std::ios::binary) << content;
  }
  WorkspaceChanges Collect() {
    return tracker->Collect([&](const std::string& digest, std::string content) { kept[digest] = std::move(content); },
                            tracker->limits().changes);
  }
  // "+path" made, "-path" gone, "~path" another.
  std::string Changes() {
    std::string text;
    for (const WorkspaceChange& change : Collect().recorded) {
      text += (text.empty() ? "" : " ") + std::string(!change.before ? "+" : !change.after ? "-" : "~") + change.path;
    }
    return text;
  }
};

TEST_CASE("WorkspaceTracker: reports changes with the old content", "[rewind]") {
  World world;
  world.Write("a", "one");
  world.Write("d/b", "two");
  REQUIRE(world.tracker->Refresh({}));
  CHECK(world.Changes().empty());
  world.Write("a", "three");
  world.Write("new/deep/c", "four");
  fs::rename(world.root / "d", world.root / "e");
  fs::create_symlink("nowhere", world.root / "link");
  CHECK(world.Changes() == "~a -d -d/b +e +e/b +link +new +new/deep +new/deep/c");
  CHECK(world.kept[Sha256Digest({"one"})] == "one");
  CHECK(world.kept[Sha256Digest({"three"})] == "three");
  CHECK(world.Changes().empty());
  // Changes below a moved folder are reported too.
  world.Write("e/b", "five");
  ::chmod((world.root / "a").c_str(), 0755);
  CHECK(world.Changes() == "~a ~e/b");
  fs::remove(world.root / "a");
  fs::create_directory(world.root / "a");
  world.Write("a/in", "x");
  CHECK(world.Changes() == "~a +a/in");
}

TEST_CASE("WorkspaceTracker: a workspace that was deleted and made again is read anew", "[rewind]") {
  World world;
  world.Write("a", "one");
  REQUIRE(world.tracker->Refresh({}));
  fs::remove_all(world.root);
  world.Write("precious", "two");
  REQUIRE(world.tracker->Refresh({}));
  CHECK(world.Changes().empty());
  world.Write("precious", "gone");
  CHECK(world.Changes() == "~precious");
  CHECK(world.kept[Sha256Digest({"two"})] == "two");
}

// A file system gives a new directory the inode of one that has just gone.
TEST_CASE("WorkspaceTracker: tracks a recreated folder and its later entries", "[rewind]") {
  const bool is_lost = GENERATE(false, true);  // whether the kernel's event queue overflowed
  CAPTURE(is_lost);
  World world;
  world.Write("d/old", "one");
  world.Write("d/e/deep", "two");
  world.Write("x", "x");
  REQUIRE(world.tracker->Refresh({}));
  for (int i = 0; is_lost && i < 10'000; ++i) {
    fs::rename(world.root / "x", world.root / "y");
    fs::rename(world.root / "y", world.root / "x");
  }
  fs::remove_all(world.root / "d");
  world.Write("d/new", "three");
  CHECK(world.Changes() == "-d/e -d/e/deep +d/new -d/old");
  CHECK(world.kept[Sha256Digest({"two"})] == "two");
  world.Write("d/new", "four");
  world.Write("d/more", "five");
  CHECK(world.Changes() == "+d/more ~d/new");
  fs::remove_all(world.root / "d");
  CHECK(world.Changes() == "-d -d/more -d/new");
  CHECK(world.kept[Sha256Digest({"four"})] == "four");
  // Between two calls: by a person.
  world.Write("d/mine", "six");
  REQUIRE(world.tracker->Refresh({}));
  fs::remove_all(world.root / "d");
  world.Write("d/mine", "seven");
  REQUIRE(world.tracker->Refresh({}));
  fs::remove(world.root / "d/mine");
  CHECK(world.Changes() == "-d/mine");
  CHECK(world.kept[Sha256Digest({"seven"})] == "seven");
}

TEST_CASE("WorkspaceTracker: changes between two calls belong to neither", "[rewind]") {
  World world;
  world.Write("a", "one");
  REQUIRE(world.tracker->Refresh({}));
  world.Write("a", "two");
  REQUIRE(world.tracker->Refresh({}));
  world.Write("b", "three");
  world.tracker->Settle({"b"});
  CHECK(world.Changes().empty());
  world.Write("a", "four");
  CHECK(world.Changes() == "~a");
  CHECK(world.kept.contains(Sha256Digest({"two"})));
}

TEST_CASE("WorkspaceTracker: reads a file again after a write of the same length", "[rewind]") {
  World world;
  world.Write("a", "one");
  REQUIRE(world.tracker->Refresh({}));
  for (const char* content : {"two", "six", "ten"}) {
    world.Write("a", content);
    CHECK(world.Changes() == "~a");
  }
  world.Write("a", "ten");
  CHECK(world.Changes().empty());
}

TEST_CASE("WorkspaceTracker: changed ignore rules are not changes of files", "[rewind]") {
  World world;
  world.Write("x.log", "1");
  world.Write("d/y.log", "1");
  REQUIRE(world.tracker->Refresh({}));
  world.Write(".gitignore", "*.log\n");
  CHECK(world.Changes() == "+.gitignore");
  world.Write("d/y.log", "2");
  CHECK(world.Changes().empty());
  fs::remove(world.root / ".gitignore");
  CHECK(world.Changes() == "-.gitignore");
  world.Write("d/y.log", "3");
  world.Write("d/z.log", "3");
  CHECK(world.Changes() == "~d/y.log +d/z.log");
}

TEST_CASE("WorkspaceTracker: looks at nothing that is closed, git's or Reprise's own", "[rewind]") {
  World world;
  REQUIRE(world.tracker->Refresh({}));
  world.Write("chats/c/chat.json", "1");
  world.Write(".git/index", "1");
  world.Write("sub/.git/index", "1");
  world.Write(".reprise-0123.tmp", "1");
  CHECK(world.Changes() == "+sub");
  CHECK(world.tracker->IsIgnored("chats/c/chat.json"));
  CHECK(world.tracker->IsIgnored(".GIT/index"));
  CHECK(world.tracker->IsIgnored("../x"));
  CHECK_FALSE(world.tracker->IsIgnored("sub/x"));
}

TEST_CASE("WorkspaceTracker: reports files that others run, even ignored ones and git's own", "[rewind]") {
  World world;
  world.Write(".gitignore", ".envrc\n.vscode/\n.cargo/\nbuild/\n");
  world.Write(".git/config", "1");
  world.Write(".vscode/tasks.json", "1");
  REQUIRE(world.tracker->Refresh({}));
  for (const char* path :
       {".git/config", ".git/hooks/pre-commit", ".git/info/attributes", ".git/commondir", ".git/modules/s/config",
        "sub/.git/hooks/x", ".envrc", ".vscode/tasks.json", ".vscode/settings.json", ".cargo/config.toml"}) {
    CAPTURE(path);
    const bool is_new = !fs::exists(world.root / path);
    world.Write(path, "2");
    const std::string changes = world.Changes();
    CHECK(changes.find((is_new ? "+" : "~") + std::string(path)) != std::string::npos);
    CHECK_FALSE(world.tracker->IsIgnored(path));
  }
  for (const char* path : {".git/index", ".git/refs/heads/config", ".git/objects/aa/hooks", ".git/logs/HEAD",
                           ".git/ORIG_HEAD", ".git/COMMIT_EDITMSG", ".git/hooks/x.sample", ".git/modules/s/objects/x",
                           ".cargo/registry/x", "build/.cargo/y", "build/x"}) {
    CAPTURE(path);
    world.Write(path, "2");
    CHECK(world.Changes().find(path) == std::string::npos);
  }
}

TEST_CASE("WorkspaceTracker: reports changes of large files without content", "[rewind]") {
  World world({.file_bytes = 10});
  world.Write("large", "01234567890");
  REQUIRE(world.tracker->Refresh({}));
  world.Write("large", "012345678901");
  const auto changes = world.Collect().recorded;
  REQUIRE(changes.size() == 1);
  CHECK_FALSE(changes[0].before->is_kept());
  CHECK_FALSE(changes[0].after->is_kept());
  CHECK(changes[0].after->size == 12);
}

TEST_CASE("WorkspaceTracker: only counts changes over the limit, except files that others run", "[rewind]") {
  World world({.changes = 3});
  for (const char* name : {"a1", "a2", "a3", "a4"}) world.Write(name, "old");
  REQUIRE(world.tracker->Refresh({}));
  for (const char* name : {"a1", "a2", "a3", "a4", "new/a5"}) world.Write(name, "new");
  const auto changes = world.Collect();
  CHECK(changes.recorded.size() == 3);
  CHECK(changes.omitted == 3);
  CHECK(world.kept.size() == 2);
  // Counted changes are still tracked.
  fs::remove(world.root / "a4");
  fs::remove(world.root / "new/a5");
  CHECK(world.Changes() == "-a4 -new/a5");
  world.Write(".envrc", "x");
  world.Write(".git/hooks/pre-push", "x");
  CHECK(world.Changes() == "+.envrc +.git/hooks/pre-push");
  // The file that git or direnv runs is not lost among many others.
  const auto room_for_none = [&] {
    return world.tracker->Collect([](const std::string&, const std::string&) {}, /*most=*/0);
  };
  world.Write("a1", "once more");
  world.Write(".envrc", "y");
  world.Write(".git/hooks/pre-push", "y");
  const auto rest = room_for_none();
  CHECK(rest.omitted == 1);
  REQUIRE(rest.recorded.size() == 2);
  CHECK(rest.recorded[0].path == ".envrc");
  CHECK(rest.recorded[1].path == ".git/hooks/pre-push");
}

TEST_CASE("WorkspaceTracker: sees a change through another name of the file", "[rewind]") {
  World world;
  world.Write("a", "one");
  fs::create_hard_link(world.root / "a", fs::path(world.folder.path()) / "elsewhere");
  REQUIRE(world.tracker->Refresh({}));
  std::ofstream(fs::path(world.folder.path()) / "elsewhere") << "changed";
  CHECK(world.Changes() == "~a");
}

TEST_CASE("WorkspaceTracker: reports a change through a new hard link", "[rewind]") {
  World world;
  world.Write("a", "one");
  REQUIRE(world.tracker->Refresh({}));
  fs::create_hard_link(world.root / "a", world.root / "b");
  CHECK(world.Changes() == "+b");
  world.Write("b", "two");
  CHECK(world.Changes() == "~a ~b");
  world.Write("a", "three");
  CHECK(world.Changes() == "~a ~b");
  CHECK(world.kept.contains(Sha256Digest({"two"})));
}

TEST_CASE("WorkspaceFiles: no path leads out", "[rewind]") {
  World world;
  fs::create_directory(fs::path(world.folder.path()) / "outside");
  fs::create_symlink("../outside", world.root / "d");
  world.Write("chats/x", "a chat");
  const WorkspaceFiles& files = world.tracker->files();
  const std::string staging = WorkspaceFiles::NewStaging();
  const auto write = [&](const std::string& path, const std::string& content, std::uint32_t mode) {
    return files.Stage(staging, path, {.mode = mode}, content, /*sync=*/true).and_then([&] {
      return files.Place(staging, path);
    });
  };
  for (const char* path : {"", "..", "../x", "/x", "a/../b", "a//b", "./a", ".git/hooks/x", "d/x", "chats/x", "a/"}) {
    CAPTURE(path);
    CHECK_FALSE(write(path, "x", 0644));
    const auto read = files.Read(path);
    CHECK((!read || !*read));
    CHECK_FALSE(files.SetMode(path, 0777, WorkspaceFiles::SpecialBits::kKeep));
  }
  for (const char* folder : {"", "x", "..", "../outside", ".reprise-/../../outside.restore.tmp", "d"}) {
    CAPTURE(folder);
    CHECK_FALSE(files.Stage(folder, "a", {.mode = 0644}, "x", /*sync=*/false));
  }
  REQUIRE(write("made/x", "content", 0755));
  const auto read = files.Read("made/x");
  REQUIRE(read);
  REQUIRE(*read);
  CHECK((*read)->content == "content");
  CHECK((*read)->version.mode == 0755);
  if (::geteuid() == 0) {  // who may give a file any group
    const std::string made = world.root / "made/x";
    REQUIRE(::chown(made.c_str(), static_cast<uid_t>(-1), 100) == 0);
    REQUIRE(write("made/x", "again", 0664));
    struct stat status {};
    REQUIRE(::stat(made.c_str(), &status) == 0);
    CHECK(status.st_gid == 100);
    CHECK((status.st_mode & 07777) == 0664);
  }
  CHECK(fs::is_empty(fs::path(world.folder.path()) / "outside"));
  // The link itself can be replaced.
  REQUIRE(write("d", "file", 0644));
  CHECK(fs::is_regular_file(fs::symlink_status(world.root / "d")));
  files.RemoveStaging(staging);
  CHECK_FALSE(fs::exists(world.root / staging));
}

TEST_CASE("WorkspaceTracker: reports permissions of folders, ignores devices and pipes", "[rewind]") {
  World world;
  world.Write("d/a", "1");
  REQUIRE(world.tracker->Refresh({}));
  ::chmod((world.root / "d").c_str(), 0700);
  REQUIRE(::mkfifo((world.root / "pipe").c_str(), 0600) == 0);
  CHECK(world.Changes() == "~d");
  fs::remove(world.root / "d/a");
  REQUIRE(::mkfifo((world.root / "d/a").c_str(), 0600) == 0);
  CHECK(world.Changes() == "-d/a");
  CHECK_FALSE(world.tracker->files().Read("d/a"));
}

}  // namespace workspace_tracker_test
}  // namespace reprise
