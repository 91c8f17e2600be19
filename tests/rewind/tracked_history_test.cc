#include "rewind/tracked_history.h"

#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "base/logging.h"
#include "base/posix_file_system.h"
#include "store/file_blob_store.h"
#include "support/forwarding_file_system.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise {
namespace tracked_history_test {

namespace fs = std::filesystem;

const ChatId kChat = *ChatId::Parse("c");

std::string ContentOf(const fs::path& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

// What is below it: path to kind, permissions and content.
std::map<std::string, std::string> TreeOf(const fs::path& root) {
  std::map<std::string, std::string> tree;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    struct stat status {};
    ::lstat(entry.path().c_str(), &status);
    std::ostringstream text;
    text << std::oct << status.st_mode << " "
         << (S_ISLNK(status.st_mode)   ? fs::read_symlink(entry.path()).string()
             : S_ISREG(status.st_mode) ? ContentOf(entry.path())
                                       : "");
    tree[fs::relative(entry.path(), root).string()] = text.str();
  }
  return tree;
}

// A workspace, a folder of chats, and what a process has of them.
struct World {
  explicit World(const fs::path& folder, RewindLimits limits = {})
      : root(folder / "workspace"),
        chats(folder / "chats"),
        workspace(root.string(), {}),
        tracker(workspace, folder.string(), limits),
        blobs(chats.string(), nullptr, disk),
        history(tracker, blobs, /*shared=*/false) {}

  static void Make(const fs::path& folder) {
    fs::create_directory(folder / "workspace");
    fs::create_directories(folder / "chats" / "c");
  }
  void Write(const std::string& path, const std::string& content) const {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path, std::ios::binary) << content;
  }
  std::vector<WorkspaceChange> During(const std::function<void()>& change) {
    const auto run = history.Record(kChat, /*hooks_change=*/false);
    ToolTraits command;
    command.read_only = false;
    const auto call = run->Begin(command, "{}", {});
    REQUIRE(call);
    change();
    return call->Finish().recorded;
  }

  fs::path root, chats;
  PosixFileSystem disk;
  Workspace workspace;
  WorkspaceTracker tracker;
  FileBlobStore blobs;
  TrackedHistory history;
};

std::vector<RestoreStep> Backwards(const std::vector<WorkspaceChange>& changes) {
  std::vector<RestoreStep> steps;
  for (const WorkspaceChange& change : changes) steps.push_back({change.path, change.after, change.before});
  return steps;
}

// Whether a call of the system changes files.
bool Changes(std::uint64_t call) {
  switch (call) {
    case SYS_write:
    case SYS_pwrite64:
    case SYS_openat:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_unlinkat:
    case SYS_mkdirat:
    case SYS_symlinkat:
    case SYS_linkat:
    case SYS_fchmod:
    case SYS_fchmodat:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_syncfs:
    case SYS_ftruncate:
#ifdef SYS_rename
    case SYS_rename:
    case SYS_unlink:
    case SYS_mkdir:
    case SYS_rmdir:
    case SYS_symlink:
    case SYS_link:
    case SYS_open:
    case SYS_chmod:
#endif
      return true;
    default:
      return false;
  }
}

enum class End { kKilled, kByItself, kNotTraced };

// Does it in a process that is killed just before the nth call of the system that changes files.
End KilledBefore(int nth, const std::function<void()>& work) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(2);
    ::raise(SIGSTOP);
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) return End::kNotTraced;
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
  for (bool entered = false; ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr) == 0;) {
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) || WIFSIGNALED(status)) break;
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80)) continue;
    entered = !entered;
    __ptrace_syscall_info info{};
    if (!entered || ::ptrace(PTRACE_GET_SYSCALL_INFO, child, reinterpret_cast<void*>(sizeof info), &info) <= 0)
      continue;
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !Changes(info.entry.nr) || --nth > 0) continue;
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return End::kKilled;
  }
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  return End::kByItself;
}

// Changes of every kind.
void ChangeMuch(const World& world) {
  world.Write("modified", "other");
  world.Write("made/deep/new", "new");
  fs::remove(world.root / "gone");
  fs::remove_all(world.root / "tree");
  fs::remove(world.root / "was_file");
  world.Write("was_file/in", "in");
  fs::remove_all(world.root / "was_directory");
  world.Write("was_directory", "a file");
  ::chmod((world.root / "tool").c_str(), 0755);
  fs::remove(world.root / "link");
  fs::create_symlink("elsewhere", world.root / "link");
  ::chmod((world.root / "closed").c_str(), 0755);
}

void Begin(const World& world) {
  world.Write("modified", "one");
  world.Write("gone", "gone");
  world.Write("tree/a/b/c", "c");
  world.Write("tree/d", "d");
  world.Write("was_file", "a file");
  world.Write("was_directory/in", "in");
  world.Write("tool", "#!/bin/sh\n");
  fs::create_symlink("somewhere", world.root / "link");
  world.Write("closed/file", "x");
  ::chmod((world.root / "closed").c_str(), 0700);
}

TEST_CASE("TrackedHistory: restores a call's changes exactly, with the permissions of folders", "[rewind]") {
  TempDirectory folder;
  World::Make(folder.path());
  World world(folder.path());
  Begin(world);
  const auto start = TreeOf(world.root);
  const auto changes = world.During([&] { ChangeMuch(world); });
  const auto changed = TreeOf(world.root);
  REQUIRE(changed != start);
  int commits = 0;
  const auto commit = [&]() -> Result<void> { return ++commits, Result<void>(); };
  REQUIRE(world.history.Restore(kChat, Backwards(changes), "then", commit));
  CHECK(TreeOf(world.root) == start);
  std::vector<RestoreStep> forwards;
  for (const WorkspaceChange& change : changes) forwards.push_back({change.path, change.before, change.after});
  REQUIRE(world.history.Restore(kChat, forwards, "then", commit));
  CHECK(TreeOf(world.root) == changed);
  CHECK(commits == 2);
  // If the commit fails, the restore is undone.
  CHECK_FALSE(world.history.Restore(kChat, Backwards(changes), "then",
                                    [] { return Result<void>(Fail(ErrorCode::kIo, "full")); }));
  CHECK(TreeOf(world.root) == changed);
}

TEST_CASE("TrackedHistory: a folder gets its set-group and sticky bits back", "[rewind]") {
  TempDirectory folder;
  World::Make(folder.path());
  World world(folder.path());
  const std::map<std::string, mode_t> modes = {{"shared", 02775}, {"drop", 01777}, {"plain", 0755}, {"both", 03750}};
  for (const auto& [name, mode] : modes) {
    world.Write(name + "/file", "x");
    REQUIRE(::chmod((world.root / name).c_str(), mode) == 0);
  }
  const auto changes = world.During([&] {
    fs::remove_all(world.root / "shared");
    ::chmod((world.root / "drop").c_str(), 0755);
    ::chmod((world.root / "plain").c_str(), 02755);
    fs::remove_all(world.root / "both");
    world.Write("both", "a file");
  });
  REQUIRE(world.history.Restore(kChat, Backwards(changes), "then", [] { return Result<void>(); }));
  for (const auto& [name, mode] : modes) {
    struct stat status {};
    REQUIRE(::stat((world.root / name).c_str(), &status) == 0);
    INFO(name);
    CHECK((status.st_mode & 07777) == mode);
  }
}

TEST_CASE("TrackedHistory: restores read-only folders with their content", "[rewind]") {
  TempDirectory folder;
  World::Make(folder.path());
  World world(folder.path());
  world.Write("closed/sub/file", "x");
  ::chmod((world.root / "closed/sub").c_str(), 0555);
  ::chmod((world.root / "closed").c_str(), 0555);
  const auto start = TreeOf(world.root);
  const auto changes = world.During([&] {
    ::chmod((world.root / "closed").c_str(), 0755);
    ::chmod((world.root / "closed/sub").c_str(), 0755);
    fs::remove_all(world.root / "closed");
    world.Write("locked/new", "x");
    ::chmod((world.root / "locked").c_str(), 0555);
  });
  REQUIRE(world.history.Restore(kChat, Backwards(changes), "then", [] { return Result<void>(); }));
  CHECK(TreeOf(world.root) == start);
  ::chmod((world.root / "closed").c_str(), 0755);
  ::chmod((world.root / "closed/sub").c_str(), 0755);
}

// Does something once, before the nth file is read from here on.
class Interrupted final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) override {
    if (--nth == 0) act();
    return ForwardingFileSystem::ReadFile(path, max_bytes);
  }
  int nth = 0;
  std::function<void()> act;
};

TEST_CASE("TrackedHistory: what a person saves during a restore stays, and nothing else is restored", "[rewind]") {
  TempDirectory folder;
  World::Make(folder.path());
  World world(folder.path());
  Interrupted disk(world.disk);
  FileBlobStore blobs(world.chats.string(), nullptr, disk);
  TrackedHistory history(world.tracker, blobs, /*shared=*/false);
  for (const char* name : {"a", "b", "c"}) world.Write(name, std::string("old ") + name);
  fs::create_hard_link(world.root / "b", world.root / "second name of b");
  const auto changes = world.During([&] {
    for (const char* name : {"a", "b", "c", "made"}) world.Write(name, "new");
  });
  // Contents are read in a first check, and again when they are staged: then the files have been looked at.
  const auto steps = Backwards(changes);
  const int reads =
      static_cast<int>(std::ranges::count_if(steps, [](const RestoreStep& each) { return each.to.has_value(); }));
  const auto path = GENERATE(as<std::string>(), "a", "c", "made", "new");
  CAPTURE(path);
  auto wanted = TreeOf(world.root);
  disk.nth = reads + 2;
  disk.act = [&] {
    if (path == "new")
      return fs::remove(world.root / "c"), world.Write("new", "x"), fs::rename(world.root / "new", world.root / "c");
    world.Write(path, "an hour of work");
  };
  int commits = 0;
  const auto restored =
      history.Restore(kChat, steps, "then", [&]() -> Result<void> { return ++commits, Result<void>(); });
  REQUIRE(disk.nth <= 0);
  REQUIRE_FALSE(restored);
  CHECK(restored.error().reason == "workspace_conflict");
  const std::string named = path == "new" ? "c" : path;
  CHECK(restored.error().details_json.find("\"path\":\"" + named + "\"") != std::string::npos);
  CHECK(commits == 0);
  CHECK(ContentOf(world.root / named) == (path == "new" ? "x" : "an hour of work"));
  auto is = TreeOf(world.root);
  is.erase(named), wanted.erase(named);
  CHECK(is == wanted);
}

TEST_CASE("TrackedHistory: in a workspace with too many files, a command is neither recorded nor counted as recordable",
          "[rewind]") {
  TempDirectory folder;
  World::Make(folder.path());
  World world(folder.path(), {.entries = 2});
  for (const char* name : {"a", "b", "c", "d"}) world.Write(name, "x");
  const auto run = world.history.Record(kChat, /*hooks_change=*/false);
  ToolTraits command;
  command.read_only = false;
  CHECK_FALSE(run->CanRecord(command, "{}", {}));
  const auto call = run->Begin(command, "{}", {});
  REQUIRE(call);
  const WorkspaceChanges changes = call->Finish();
  CHECK(changes.unseen);
  CHECK(changes.recorded.empty());
  ToolTraits edit = command;
  edit.file_effect = FileEffect::kOneFile;
  CHECK(run->CanRecord(edit, R"({"path":"a"})", {}));
}

// Thousands of states; a sanitizer has its own ideas of processes.
TEST_CASE("TrackedHistory: killed at any step, a restore is finished at the next start or was never begun",
          "[rewind][long]") {
  for (const bool again : {false, true}) {
    int kills = 0;
    for (int nth = 1;; ++nth) {
      CAPTURE(again, nth);
      TempDirectory folder;
      World::Make(folder.path());
      std::map<std::string, std::string> start, changed;
      std::vector<RestoreStep> steps;
      {
        World world(folder.path());
        Begin(world);
        start = TreeOf(world.root);
        steps = Backwards(world.During([&] { ChangeMuch(world); }));
        changed = TreeOf(world.root);
      }
      const fs::path committed = fs::path(folder.path()) / "committed";
      const auto restore = [&] {
        World world(folder.path());
        static_cast<void>(world.history.Restore(kChat, steps, "then", [&]() -> Result<void> {
          std::ofstream(committed) << "restored";
          return {};
        }));
      };
      const auto recover = [&] {
        World world(folder.path());
        world.history.Recover([&](const ChatId& chat, const std::string& then) -> Result<void> {
          if (chat == kChat && then == "then") std::ofstream(committed) << "recovered";
          return {};
        });
      };
      // In the second run the restore is killed halfway, and then its recovery too.
      constexpr int kMiddle = 40;
      End end;
      if (again) {
        end = KilledBefore(kMiddle, restore);
        if (end == End::kKilled) end = KilledBefore(nth, recover);
      } else {
        end = KilledBefore(nth, restore);
      }
      if (end == End::kNotTraced) {
        WARN("this system lets no process be traced: nothing is tested");
        return;
      }
      kills += end == End::kKilled;
      recover();
      const auto found = TreeOf(fs::path(folder.path()) / "workspace");
      if (fs::exists(committed)) {
        CHECK(found == start);
      } else {
        CHECK(found == changed);
        CHECK_FALSE(again);
      }
      CHECK_FALSE(fs::exists(fs::path(folder.path()) / "chats" / ".restore.c"));
      if (end == End::kByItself) break;
    }
    CHECK(kills > 20);
  }
}

}  // namespace tracked_history_test
}  // namespace reprise
