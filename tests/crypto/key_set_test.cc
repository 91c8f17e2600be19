#include "crypto/key_set.h"

#include <sys/stat.h>

#include <fstream>
#include <set>
#include <thread>
#include <type_traits>

#include "base/posix_file_system.h"
#include "crypto/base64url.h"
#include "support/faulty_file_system.h"
#include "support/memory_file_system.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise {
namespace {

mode_t ModeOf(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

std::string Jwk(const std::string& kid, std::size_t bytes = 32) {
  return R"({"kty":"oct","kid":")" + kid + R"(","alg":"A256KW","use":"enc","k":")" +
         EncodeBase64Url(std::string(bytes, kid.empty() ? 'x' : kid[0])) + R"("})";
}
std::string JwkSet(const std::string& keys) { return R"({"keys":[)" + keys + "]}"; }

}  // namespace

static_assert(!std::is_copy_constructible_v<KeySet>);

TEST_CASE("KeySet: is created once, private, and loaded afterwards", "[crypto]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  const std::string path = folder.File("config/reprise/keys.jwks");
  const auto created = KeySet::LoadOrCreate(path, disk);
  REQUIRE(created);
  CHECK(ModeOf(path) == 0600);
  CHECK(ModeOf(folder.File("config/reprise")) == 0700);
  const auto loaded = KeySet::LoadOrCreate(path, disk);
  REQUIRE(loaded);
  CHECK(loaded->current().kid == created->current().kid);
  CHECK(loaded->current().secret.bytes() == created->current().secret.bytes());
  CHECK(disk.ListDirectory(folder.File("config/reprise"))->size() == 1);
}

TEST_CASE("KeySet: many that create it at once end with the same key", "[crypto]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  constexpr int kThreads = 8;
  std::vector<std::string> kids(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        const auto keys = KeySet::LoadOrCreate(folder.File("new/keys.jwks"), disk);
        kids[static_cast<std::size_t>(i)] = keys ? keys->current().kid : keys.error().message;
      });
    }
  }
  CHECK(std::set(kids.begin(), kids.end()).size() == 1);
}

TEST_CASE("KeySet: a key file that others may read is refused", "[crypto]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  const std::string path = folder.File("keys.jwks");
  REQUIRE(KeySet::LoadOrCreate(path, disk));
  for (const mode_t mode : {0640, 0604, 0660, 0601}) {
    ::chmod(path.c_str(), mode);
    const auto keys = KeySet::LoadOrCreate(path, disk);
    REQUIRE_FALSE(keys);
    CHECK(keys.error().code == ErrorCode::kForbidden);
    CHECK(keys.error().reason == "key_file_exposed");
  }
  ::chmod(path.c_str(), 0400);
  CHECK(KeySet::Load(path, disk));
}

TEST_CASE("KeySet: a missing file is not found, and not created by Load", "[crypto]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  CHECK(KeySet::Load(folder.File("keys.jwks"), disk).error().code == ErrorCode::kNotFound);
  CHECK(disk.ListDirectory(folder.path())->empty());
}

TEST_CASE("KeySet: the first key is current and all are found", "[crypto]") {
  const auto keys = KeySet::Parse(JwkSet(Jwk("new") + "," + Jwk("old")));
  REQUIRE(keys);
  CHECK(keys->current().kid == "new");
  REQUIRE(keys->Find("old") != nullptr);
  CHECK(keys->Find("old")->secret.bytes() == std::string(32, 'o'));
  CHECK(keys->Find("none") == nullptr);
}

TEST_CASE("KeySet: what is not a set of our keys is refused without showing it", "[crypto]") {
  const std::string bad[] = {"",
                             "{}",
                             "[]",
                             JwkSet(""),
                             JwkSet("1"),
                             JwkSet(Jwk("a", 16)),
                             JwkSet(Jwk("a", 33)),
                             JwkSet(Jwk("")),
                             JwkSet(Jwk("a b")),
                             JwkSet(Jwk("a") + "," + Jwk("a")),
                             JwkSet(R"({"kty":"RSA","kid":"a","k":"AAAA"})"),
                             JwkSet(R"({"kty":"oct","kid":"a","alg":"A128KW","k":"AAAA"})"),
                             JwkSet(R"({"kty":"oct","kid":"a","k":"?SECRET?"})"),
                             JwkSet(R"({"kty":"oct","kid":"a"})"),
                             JwkSet(Jwk("a")).substr(0, 40)};
  for (const std::string& text : bad) {
    CAPTURE(text);
    const auto keys = KeySet::Parse(text);
    REQUIRE_FALSE(keys);
    CHECK(keys.error().reason == "key_file_invalid");
    CHECK(keys.error().message.find("SECRET") == std::string::npos);
  }
}

TEST_CASE("KeySet: a key that was handed out survives a power loss, whatever failed before", "[crypto][fault]") {
  for (std::size_t n = 1;; ++n) {
    MemoryFileSystem disk;
    FaultyFileSystem faulty(disk, {.at = n, .from_then_on = true});
    const auto keys = KeySet::LoadOrCreate("/home/.config/reprise/keys.jwks", faulty);
    const auto after = disk.AfterPowerLoss(MemoryFileSystem::Kept::kNothing);
    const auto again = KeySet::LoadOrCreate("/home/.config/reprise/keys.jwks", *after);
    CAPTURE(n);
    REQUIRE(again);
    if (keys) REQUIRE(again->current().kid == keys->current().kid);
    if (!faulty.fired()) break;
    CHECK_FALSE(keys);
  }
}

}  // namespace reprise
