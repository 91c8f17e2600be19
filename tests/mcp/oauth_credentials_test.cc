#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "base/posix_file_system.h"
#include "base/system.h"
#include "mcp/oauth_authorizer.h"
#include "support/faulty_file_system.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::oauth_credentials_test {
namespace {

constexpr const char* kUrl = "https://mcp.example/mcp";
constexpr int kProcesses = 3, kWrites = 60;

std::string NameOf(int process, int write) { return std::to_string(process) + "-" + std::to_string(write); }

// What one of several processes does: log-ins at servers of its own, and one more token's worth of scope at
// everybody's.
bool WriteMany(const std::string& path, const std::shared_ptr<const KeySet>& keys, int process) {
  PosixFileSystem disk;
  OAuthCredentials credentials(disk, path, keys);
  for (int write = 0; write < kWrites; ++write) {
    const std::string name = NameOf(process, write);
    const auto kept = credentials.Change(name, kUrl, [&](OAuthLogin& login) { login.tokens.access_token = name; });
    const auto shared =
        credentials.Change("everybody", kUrl, [&](OAuthLogin& login) { login.wanted_scope += name + " "; });
    if (!kept || !shared) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("OAuthCredentials: concurrent processes lose no change", "[mcp]") {
  const TempDirectory directory;
  const std::string path = directory.File("logins");
  const auto keys =
      GENERATE(false, true) ? std::make_shared<const KeySet>(KeySet::Generate()) : std::shared_ptr<const KeySet>();
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) ::_exit(WriteMany(path, keys, process) ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  PosixFileSystem disk;
  OAuthCredentials credentials(disk, path, keys);
  const auto everybody = credentials.Look("everybody", kUrl);
  REQUIRE(everybody.has_value());
  std::vector<std::string> lost;
  for (int process = 0; process < kProcesses; ++process) {
    for (int write = 0; write < kWrites; ++write) {
      const std::string name = NameOf(process, write);
      const auto login = credentials.Look(name, kUrl);
      REQUIRE(login.has_value());
      if (login->tokens.access_token != name || everybody->wanted_scope.find(name + " ") == std::string::npos)
        lost.push_back(name);
    }
  }
  CHECK(lost.empty());
  CHECK(disk.ListDirectory(directory.path())->size() == 1);  // no lock file, nothing set aside
}

TEST_CASE("OAuthCredentials: a process that is stopped while it writes blocks others only for a while", "[mcp][long]") {
  const TempDirectory directory;
  PosixFileSystem disk;
  OAuthCredentials credentials(disk, directory.File("logins"), nullptr);
  UniqueFd held(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(held.get(), LOCK_EX) == 0);
  const auto refused = credentials.Change("s", kUrl, [](OAuthLogin& login) { login.tokens.access_token = "t"; });
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kUnavailable);
  CHECK(credentials.Look("s", kUrl)->tokens.access_token.empty());  // readers do not wait
  held.Reset();
  CHECK(credentials.Change("s", kUrl, [](OAuthLogin& login) { login.tokens.access_token = "t"; }).has_value());
  CHECK(credentials.Look("s", kUrl)->tokens.access_token == "t");
}

TEST_CASE("OAuthCredentials: a file that cannot be read is set aside by the next change", "[mcp]") {
  const TempDirectory directory;
  PosixFileSystem disk;
  const std::string path = directory.Write("logins", "{\"servers\": 7");
  OAuthCredentials credentials(disk, path, nullptr);
  CHECK_FALSE(credentials.Look("s", kUrl).has_value());
  REQUIRE(credentials.Change("s", kUrl, [](OAuthLogin& login) { login.wanted_scope = "x"; }).has_value());
  CHECK(credentials.Look("s", kUrl)->wanted_scope == "x");
  CHECK(credentials.Look("s", "https://other.example/mcp")->wanted_scope.empty());
  CHECK(disk.ListDirectory(directory.path())->size() == 2);
}

TEST_CASE("OAuthCredentials: a disk or a system that fails for a moment costs no log-in", "[mcp]") {
  const TempDirectory directory;
  PosixFileSystem disk;
  const auto log_in = [](OAuthLogin& login) { login.tokens.access_token = "t"; };
  REQUIRE(OAuthCredentials(disk, directory.File("logins"), nullptr).Change("s", kUrl, log_in).has_value());
  const ErrorCode code = GENERATE(ErrorCode::kIo, ErrorCode::kUnavailable);
  FaultyFileSystem failing(disk, {.at = 1, .code = code, .reads = true});
  OAuthCredentials credentials(failing, directory.File("logins"), nullptr);
  const auto refused = credentials.Change("other", kUrl, log_in);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == code);
  CHECK(credentials.Look("s", kUrl)->tokens.access_token == "t");
  CHECK(disk.ListDirectory(directory.path())->size() == 1);  // nothing set aside
}

}  // namespace reprise::oauth_credentials_test
