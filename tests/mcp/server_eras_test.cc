#include "mcp/server_eras.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/posix_file_system.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::server_eras_test {
namespace {

const KnownServer kOlder{.launch = "sha256:a", .era = McpEra::kHandshake, .version = "s 1"};
const KnownServer kNewer{.launch = "sha256:b", .era = McpEra::kStateless, .version = "t 2"};

}  // namespace

TEST_CASE("ServerEras: a server's era outlives the process, as long as its launch is the same", "[mcp]") {
  const TempDirectory directory;
  PosixFileSystem disk;
  const std::string path = directory.File("eras");
  ServerEras first(disk, path, {"s", "t"});
  CHECK(first.Look("s", "sha256:a") == std::nullopt);
  CHECK_FALSE(std::filesystem::exists(path));
  first.Keep("s", kOlder);
  first.Keep("t", kNewer);
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);

  ServerEras second(disk, path, {"s", "t"});
  CHECK(second.Look("s", "sha256:a") == kOlder);
  CHECK(second.Look("t", "sha256:b") == kNewer);
  CHECK(second.Look("s", "sha256:b") == std::nullopt);  // its command has changed
  second.Forget("t");
  CHECK(ServerEras(disk, path, {"s", "t"}).Look("t", "sha256:b") == std::nullopt);

  ServerEras third(disk, path, {"t"});  // s is no longer configured
  third.Keep("t", kNewer);
  CHECK(ServerEras(disk, path, {"s", "t"}).Look("s", "sha256:a") == std::nullopt);
}

TEST_CASE("ServerEras: an unchanged era is not written again", "[mcp]") {
  const TempDirectory directory;
  PosixFileSystem disk;
  const std::string path = directory.File("eras");
  ServerEras eras(disk, path, {"s"});
  eras.Keep("s", kOlder);
  std::filesystem::remove(path);
  eras.Keep("s", kOlder);
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("ServerEras: a damaged file, or a link, counts as empty and is replaced", "[mcp]") {
  const TempDirectory directory, elsewhere;
  PosixFileSystem disk;
  disk.Confine(directory.path());
  const std::string path = directory.File("eras");
  const auto text =
      GENERATE(as<std::string>(), "", "{", "[]", "7", R"({"schema":2,"servers":{}})", R"({"schema":1,"servers":[]})",
               R"({"schema":1,"servers":{"s":7,"t":{"era":"handshake"}}})",
               R"({"schema":1,"servers":{"s":{"launch":"sha256:a","era":"none"}}})", "link");
  const std::string target =
      elsewhere.Write("other", R"({"schema":1,"servers":{"s":{"launch":"sha256:a","era":"handshake"}}})");
  if (text == "link") {
    std::filesystem::create_symlink(target, path);
  } else {
    directory.Write("eras", text);
  }
  ServerEras eras(disk, path, {"s", "t"});
  CHECK(eras.Look("s", "sha256:a") == std::nullopt);
  CHECK(eras.Look("t", "sha256:b") == std::nullopt);
  eras.Keep("s", kOlder);
  CHECK(ServerEras(disk, path, {"s"}).Look("s", "sha256:a") == kOlder);
  CHECK_FALSE(std::filesystem::is_symlink(path));
  CHECK(disk.ReadFile(target, 1000).value().find("s 1") == std::string::npos);
}

}  // namespace reprise::server_eras_test
