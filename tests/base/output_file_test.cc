#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

#include "base/private_file.h"
#include "base/system.h"
#include "support/fixtures.h"
#include "support/test.h"

namespace reprise::test::output_file_test {
namespace {

std::ptrdiff_t Entries(const TempDirectory& dir) {
  const std::filesystem::directory_iterator all(dir.path());
  return std::distance(begin(all), end(all));
}

}  // namespace

TEST_CASE("WriteOutputFile: writes a new private file, and replaces one only on request", "[base]") {
  const TempDirectory dir;
  const std::string path = dir.File("out.json");
  REQUIRE(WriteOutputFile(path, "first", /*replace=*/false).has_value());
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const auto again = WriteOutputFile(path, "second", /*replace=*/false);
  REQUIRE_FALSE(again.has_value());
  CHECK(again.error().reason == "file_exists");
  CHECK(ReadText(path) == "first");
  REQUIRE(WriteOutputFile(path, "third", /*replace=*/true).has_value());
  CHECK(ReadText(path) == "third");
  CHECK(Entries(dir) == 1);
  CHECK(WriteOutputFile(dir.File("none/out"), "x", /*replace=*/false).error().message ==
        "there is no folder " + dir.File("none"));
}

TEST_CASE("WriteOutputFile: adds to a file that the process has open, and replaces one in memory", "[base]") {
  const TempDirectory dir;
  const std::string path = dir.File("out");
  REQUIRE(WriteOutputFile(path, "first, ", /*replace=*/false));
  const UniqueFd open(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  const std::string opened = "/proc/self/fd/" + std::to_string(open.get());
  REQUIRE(WriteOutputFile(opened, "then", /*replace=*/true));
  CHECK(ReadText(path) == "first, then");
  const std::string in_memory = "/dev/shm/reprise-" + RandomHex(8);
  REQUIRE(WriteOutputFile(in_memory, "a long text", /*replace=*/false));
  REQUIRE(WriteOutputFile(in_memory, "a text", /*replace=*/true));
  CHECK(ReadText(in_memory) == "a text");
  ::unlink(in_memory.c_str());
}

TEST_CASE("WriteOutputFile: what stands there stays what it is", "[base]") {
  namespace fs = std::filesystem;
  const TempDirectory dir;
  const std::string link = dir.File("link"), target = dir.Write("target", "old");
  fs::create_symlink("target", link);
  CHECK_FALSE(WriteOutputFile(link, "new", /*replace=*/false));
  REQUIRE(WriteOutputFile(link, "new", /*replace=*/true));
  CHECK((fs::is_symlink(link) && ReadText(target) == "new"));
  fs::remove(target);
  REQUIRE(WriteOutputFile(link, "anew", /*replace=*/true));
  CHECK((fs::is_symlink(link) && ReadText(target) == "anew"));

  const std::string fifo = dir.File("fifo");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(WriteOutputFile(fifo, "x", /*replace=*/true).error().message ==
        "cannot write to " + fifo + ": nobody reads from it");
  const std::string content(1 << 20, 'x');  // more than a pipe holds
  std::string got;
  std::jthread reader([&] { got = ReadText(fifo); });
  while (!WriteOutputFile(fifo, content, /*replace=*/true)) std::this_thread::yield();  // until the reader is there
  reader.join();
  CHECK((fs::is_fifo(fifo) && got == content));

  REQUIRE(WriteOutputFile("/dev/null", "x", /*replace=*/true));
  CHECK(fs::is_character_file("/dev/null"));
  CHECK(WriteOutputFile(dir.path(), "x", /*replace=*/true).error().reason == "file_exists");
}

TEST_CASE("MoveToFreeName: never replaces a file, a folder or a dangling link that appeared meanwhile", "[base]") {
  const TempDirectory dir;
  const std::string made = dir.Write("made", "new"), taken = dir.File("taken");
  SECTION("a file") { dir.Write("taken", "old"); }
  SECTION("an empty folder") { std::filesystem::create_directory(taken); }
  SECTION("a link") { std::filesystem::create_symlink("nowhere", taken); }
  const auto before = std::filesystem::symlink_status(taken).type();
  const auto moved = MoveToFreeName(made, taken);
  REQUIRE_FALSE(moved.has_value());
  CHECK(moved.error().code == ErrorCode::kConflict);
  CHECK(moved.error().reason == "file_exists");
  CHECK(moved.error().message == taken + " is there already (--force replaces it)");
  CHECK(std::filesystem::symlink_status(taken).type() == before);
  CHECK(ReadText(made) == "new");
  REQUIRE(MoveToFreeName(made, dir.File("free")).has_value());
  CHECK(ReadText(dir.File("free")) == "new");
  CHECK(MoveToFreeName(made, dir.File("other")).error().code == ErrorCode::kNotFound);
}

}  // namespace reprise::test::output_file_test
