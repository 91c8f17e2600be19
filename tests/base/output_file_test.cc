#include <sys/stat.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

#include "base/private_file.h"
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
