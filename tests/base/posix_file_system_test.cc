#include "base/posix_file_system.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <string>

#include "base/atomic_write.h"
#include "base/system.h"
#include "support/faulty_file_system.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::posix_file_system_test {
namespace {

void WriteFile(PosixFileSystem& disk, const std::string& path, const std::string& text) {
  auto file = disk.CreateFile(path);
  REQUIRE(file);
  REQUIRE((*file)->Append(text));
  REQUIRE((*file)->Sync());
  REQUIRE((*file)->Close());
}

template <typename T>
ErrorCode CodeOf(const Result<T>& result) {
  REQUIRE_FALSE(result);
  return result.error().code;
}

}  // namespace

TEST_CASE("PosixFileSystem: a watch tells which directories come and go", "[base]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  REQUIRE(disk.CreateDirectory(folder.File("watched")));
  const auto watch = disk.Watch(folder.File("watched"));
  if (watch == nullptr) return;  // a file system that other machines may share
  CHECK(watch->Take()->empty());
  REQUIRE(disk.CreateDirectory(folder.File("watched/new")));
  REQUIRE(disk.CreateDirectory(folder.File("watched/new/below")));
  WriteFile(disk, folder.File("watched/file"), "");
  REQUIRE(disk.Rename(folder.File("watched/new"), folder.File("away")));
  REQUIRE(disk.Rename(folder.File("away"), folder.File("watched/back")));
  const auto changes = watch->Take();
  REQUIRE(changes);
  std::string told;
  for (const auto& each : *changes) told += (each.is_there ? "+" : "-") + each.name + " ";
  CHECK(told == "+new -new +back ");
  REQUIRE(disk.Rename(folder.File("watched"), folder.File("moved")));
  CHECK_FALSE(watch->Take());
  CHECK(disk.Watch(folder.File("watched")) == nullptr);
}

TEST_CASE("PosixFileSystem: reads what was written", "[base]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  for (const std::size_t size : {0, 1, 4095, 4096, 100'000}) {
    const std::string path = folder.File(std::to_string(size));
    WriteFile(disk, path, std::string(size, 'x'));
    CHECK(disk.ReadFile(path, size) == std::string(size, 'x'));
    if (size > 0) CHECK(CodeOf(disk.ReadFile(path, size - 1)) == ErrorCode::kTooLarge);
  }
}

TEST_CASE("PosixFileSystem: each failure has its code, and the path is in the detail only", "[base]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  const std::string path = folder.File("file");
  WriteFile(disk, path, "text");
  const auto missing = disk.ReadFile(folder.File("none"), 10);
  CHECK(CodeOf(missing) == ErrorCode::kNotFound);
  CHECK(missing.error().detail.find(folder.path()) != std::string::npos);
  CHECK(missing.error().message.find(folder.path()) == std::string::npos);
  CHECK(CodeOf(disk.ReadFile(path + "/below", 10)) == ErrorCode::kNotFound);
  CHECK(CodeOf(disk.CreateFile(path)) == ErrorCode::kConflict);
  CHECK(CodeOf(disk.CreateDirectory(path)) == ErrorCode::kConflict);
  CHECK(CodeOf(disk.CreateDirectory(folder.File("a/b"))) == ErrorCode::kNotFound);
  CHECK(CodeOf(disk.ReadFile(folder.path(), 10)) == ErrorCode::kIo);
  CHECK(CodeOf(disk.RemoveFile(folder.File("none"))) == ErrorCode::kNotFound);
  CHECK(CodeOf(disk.ListDirectory(folder.File("none"))) == ErrorCode::kNotFound);
  CHECK(CodeOf(disk.SyncDirectory(folder.File("none"))) == ErrorCode::kNotFound);
  CHECK(CodeOf(disk.Rename(folder.File("none"), path)) == ErrorCode::kNotFound);
}

TEST_CASE("PosixFileSystem: without its expected folder, a file is not reported as missing", "[base]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  const std::string data = folder.File("data"), away = folder.File("away");
  REQUIRE(disk.CreateDirectory(data));
  REQUIRE(disk.CreateDirectory(data + "/chat"));
  disk.Confine(data);
  const auto expected = disk.Expect(data);
  CHECK(CodeOf(disk.ReadFile(data + "/chat/none", 1)) == ErrorCode::kNotFound);
  REQUIRE(disk.Rename(data, away));
  const auto all = [&](ErrorCode code) {
    CHECK(CodeOf(disk.ReadFile(data + "/chat/file", 1)) == code);
    CHECK(CodeOf(disk.CreateFile(data + "/chat/file")) == code);
    CHECK(CodeOf(disk.CreateDirectory(data + "/chat/more")) == code);
    CHECK(CodeOf(disk.RemoveFile(data + "/chat/file")) == code);
    CHECK(CodeOf(disk.Rename(data + "/chat/file", data + "/chat/other")) == code);
    CHECK(CodeOf(disk.SyncDirectory(data + "/chat")) == code);
    CHECK(CodeOf(disk.ListDirectory(data + "/chat")) == code);
    CHECK(CodeOf(disk.ListDirectory(data)) == code);
  };
  all(ErrorCode::kUnavailable);
  const auto gone = disk.ListDirectory(data);
  CHECK(gone.error().reason == "data_folder_gone");
  CHECK(gone.error().retryable);
  CHECK(gone.error().message.find(data) == std::string::npos);
  CHECK(CodeOf(disk.ReadFile(data + "-of-another", 1)) == ErrorCode::kNotFound);
  WriteFile(disk, folder.File("other"), "text");
  PosixFileSystem other;                              // expects nothing
  REQUIRE(other.Rename(folder.File("other"), data));  // a file in its place
  CHECK(CodeOf(disk.ListDirectory(data)) == ErrorCode::kUnavailable);
  CHECK(CodeOf(disk.ReadFile(data + "/chat/file", 1)) == ErrorCode::kUnavailable);
  REQUIRE(other.RemoveFile(data));
  REQUIRE(other.Rename(away, data));
  CHECK(disk.ListDirectory(data)->size() == 1);
}

TEST_CASE("PosixFileSystem: nothing is changed in a folder that took the place of the expected one", "[base]") {
  const TempDirectory folder;
  PosixFileSystem disk, other;
  const std::string data = folder.File("data");
  REQUIRE(other.CreateDirectory(data));
  auto expected = disk.Expect(data);
  REQUIRE(other.Rename(data, folder.File("away")));
  REQUIRE(other.CreateDirectory(data));
  WriteFile(other, data + "/file", "of another server");
  WriteFile(other, folder.File("outside"), "text");
  const auto refused = [](const auto& result) {
    REQUIRE_FALSE(result);
    CHECK(result.error().reason == "data_folder_gone");
    CHECK(result.error().message == "another folder is in the place of the data folder: stop this server");
  };
  refused(disk.CreateFile(data + "/new"));
  refused(disk.CreateDirectory(data + "/new"));
  refused(disk.RemoveFile(data + "/file"));
  refused(disk.Rename(data + "/file", data + "/renamed"));
  refused(disk.Rename(folder.File("outside"), data + "/file"));
  refused(disk.Rename(data + "/file", folder.File("outside")));
  refused(disk.ReadFile(data + "/chat", 10));  // nobody says that the chat is unknown
  CHECK(disk.ReadFile(data + "/file", 100) == "of another server");
  REQUIRE(disk.RemoveFile(folder.File("outside")));
  expected.reset();
  CHECK(disk.RemoveFile(data + "/file"));
}

TEST_CASE("PosixFileSystem: a folder made anew is another one, though its number may be the same", "[base]") {
  const TempDirectory folder;
  PosixFileSystem disk, other;
  const std::string data = folder.File("data");
  REQUIRE(other.CreateDirectory(data));
  const auto expected = disk.Expect(data);
  std::filesystem::remove(data);
  REQUIRE(other.CreateDirectory(data));
  CHECK(CodeOf(disk.CreateFile(data + "/new")) == ErrorCode::kUnavailable);
}

TEST_CASE("PosixFileSystem: a symbolic link is not followed to create a file", "[base]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  REQUIRE(::symlink(folder.File("target").c_str(), folder.File("link").c_str()) == 0);
  CHECK(CodeOf(disk.CreateFile(folder.File("link"))) == ErrorCode::kConflict);
  CHECK(CodeOf(disk.ReadFile(folder.File("target"), 10)) == ErrorCode::kNotFound);
}

TEST_CASE("PosixFileSystem: a FIFO does not block its reader", "[base]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  REQUIRE(::mkfifo(folder.File("fifo").c_str(), 0600) == 0);
  CHECK(CodeOf(disk.ReadFile(folder.File("fifo"), 10)) == ErrorCode::kIo);
}

TEST_CASE("PosixFileSystem: descriptors are closed on exec", "[base]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  const int next = ::dup(0);
  ::close(next);
  const auto file = disk.CreateFile(folder.File("file"));
  REQUIRE(file);
  CHECK((::fcntl(next, F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("PosixFileSystem: lists entries with their kinds", "[base]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  WriteFile(disk, folder.File("file"), "");
  CHECK(disk.CreateDirectory(folder.File("directory")) == true);
  CHECK(disk.CreateDirectory(folder.File("directory")) == false);
  const auto entries = disk.ListDirectory(folder.path());
  REQUIRE(entries);
  REQUIRE(entries->size() == 2);
  for (const DirectoryEntry& entry : *entries) CHECK(entry.is_directory == (entry.name == "directory"));
}

TEST_CASE("PosixFileSystem: lists a folder that takes several calls", "[base]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  std::set<std::string> there, listed;
  for (int i = 0; i < 400; ++i) {
    const std::string& name = *there.insert(std::string(200, 'x') + std::to_string(i)).first;
    WriteFile(disk, folder.File(name), "");
  }
  const auto entries = disk.ListDirectory(folder.path());
  REQUIRE(entries);
  for (const DirectoryEntry& entry : *entries) CHECK(listed.insert(entry.name).second);
  CHECK(listed == there);
}

TEST_CASE("PosixFileSystem: reads a file whose size the kernel does not say", "[base]") {
  const auto maps = PosixFileSystem().ReadFile("/proc/self/maps", 10'000'000);
  REQUIRE(maps);
  CHECK(maps->ends_with('\n'));
  CHECK(maps->find("[stack]") != maps->npos);
}

TEST_CASE("ReplaceFile: a failure leaves the old content and no temporary file", "[base]") {
  for (std::size_t n = 1;; ++n) {
    const TempDirectory folder;
    PosixFileSystem disk;
    WriteFile(disk, folder.File("file"), "old");
    FaultyFileSystem faulty(disk, {.at = n, .short_write = true});
    const auto replaced = ReplaceFile(faulty, folder.File("file"), "new content");
    CAPTURE(n);
    CHECK(disk.ReadFile(folder.File("file"), 100) == (replaced ? "new content" : "old"));
    CHECK(disk.ListDirectory(folder.path())->size() == 1);
    if (!faulty.fired()) break;
    CHECK_FALSE(replaced);
  }
}

TEST_CASE("CreateDirectories: makes missing directories and tells whether it did", "[base]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  CHECK(CreateDirectories(disk, folder.File("a/b/c")) == true);
  CHECK(CreateDirectories(disk, folder.File("a/b/c")) == false);
  WriteFile(disk, folder.File("file"), "");
  CHECK_FALSE(CreateDirectories(disk, folder.File("file/below")));
}

TEST_CASE("ParentDirectory: of every form of path", "[base]") {
  CHECK(ParentDirectory("/a/b") == "/a");
  CHECK(ParentDirectory("/a") == "/");
  CHECK(ParentDirectory("/") == "/");
  CHECK(ParentDirectory("a") == ".");
  CHECK(ParentDirectory("a/b") == "a");
}

TEST_CASE("SystemError: exhausted resources are not disk errors", "[base]") {
  for (const int error : {EMFILE, ENFILE, ENOMEM, EAGAIN}) {
    const Error told = SystemError(error, "open x");
    CHECK(told.code == ErrorCode::kUnavailable);
    CHECK(told.retryable);
    CHECK(told.reason == (error == EMFILE || error == ENFILE ? "too_many_files" : "overloaded"));
    CHECK(told.message.find("disk") == std::string::npos);
  }
  for (const int error : {ENOSPC, EDQUOT}) CHECK(SystemError(error, "write x").code == ErrorCode::kStorageFull);
  CHECK(SystemError(EIO, "read x").reason == "io_error");
  CHECK(SystemError(ENOENT, "open x").code == ErrorCode::kNotFound);
}

TEST_CASE("PosixFileSystem: reports a lack of descriptors", "[base]") {
  PosixFileSystem disk;
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const struct rlimit none { .rlim_cur = 0, .rlim_max = before.rlim_max };
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const auto read = disk.ReadFile("/etc/passwd", 1 << 20);
  const auto listed = disk.ListDirectory("/");
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(read.error().reason == "too_many_files");
  CHECK(listed.error().reason == "too_many_files");
}

}  // namespace reprise::posix_file_system_test
