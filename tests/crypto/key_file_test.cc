#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "base/posix_file_system.h"
#include "crypto/jwe.h"
#include "crypto/key_set.h"
#include "support/faulty_file_system.h"
#include "support/memory_file_system.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::key_file_test {
namespace {

mode_t ModeOf(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

SecretText Secret(std::string_view text) { return {text.begin(), text.end()}; }
PassphraseSource Says(std::string_view text) {
  return [text = std::string(text)]() -> Result<SecretText> { return Secret(text); };
}
Result<SecretText> MustNotAsk() { throw std::logic_error("asked for a passphrase"); }

std::set<std::string> KidsIn(const KeySet& keys) {
  std::set<std::string> kids;
  for (const KeySet::Key& key : keys.keys()) kids.insert(key.kid);
  return kids;
}

}  // namespace

TEST_CASE("KeyFile: is created once, private, and loaded afterwards", "[crypto]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  const std::string path = folder.File("config/reprise/keys.jwks");
  const auto created = LoadOrCreateKeyFile(path, disk);
  REQUIRE(created);
  CHECK(ModeOf(path) == 0600);
  CHECK(ModeOf(folder.File("config/reprise")) == 0700);
  const auto loaded = LoadOrCreateKeyFile(path, disk);
  REQUIRE(loaded);
  CHECK(loaded->current().kid == created->current().kid);
  CHECK(loaded->current().secret.bytes() == created->current().secret.bytes());
  CHECK(disk.ListDirectory(folder.File("config/reprise"))->size() == 1);
}

TEST_CASE("KeyFile: concurrent creators end with the same key", "[crypto]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  constexpr int kThreads = 8;
  std::vector<std::string> kids(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        const auto keys = LoadOrCreateKeyFile(folder.File("new/keys.jwks"), disk);
        kids[static_cast<std::size_t>(i)] = keys ? keys->current().kid : keys.error().message;
      });
    }
  }
  CHECK(std::set(kids.begin(), kids.end()).size() == 1);
}

TEST_CASE("KeyFile: a key file that others may read is refused", "[crypto]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  const std::string path = folder.File("keys.jwks");
  REQUIRE(LoadOrCreateKeyFile(path, disk));
  for (const mode_t mode : {0640, 0604, 0660, 0601}) {
    ::chmod(path.c_str(), mode);
    const auto keys = LoadOrCreateKeyFile(path, disk);
    REQUIRE_FALSE(keys);
    CHECK(keys.error().code == ErrorCode::kForbidden);
    CHECK(keys.error().reason == "key_file_exposed");
  }
  ::chmod(path.c_str(), 0400);
  CHECK(LoadKeyFile(path, disk));
}

TEST_CASE("KeyFile: a missing file is not found, and not created by Load", "[crypto]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  CHECK(LoadKeyFile(folder.File("keys.jwks"), disk).error().code == ErrorCode::kNotFound);
  CHECK(disk.ListDirectory(folder.path())->empty());
}

TEST_CASE("KeyFile: a returned key survives a power loss, whatever failed before", "[crypto][fault]") {
  for (std::size_t n = 1;; ++n) {
    MemoryFileSystem disk;
    FaultyFileSystem faulty(disk, {.at = n, .from_then_on = true});
    const auto keys = LoadOrCreateKeyFile("/home/.config/reprise/keys.jwks", faulty);
    const auto after = disk.AfterPowerLoss(MemoryFileSystem::Kept::kNothing);
    const auto again = LoadOrCreateKeyFile("/home/.config/reprise/keys.jwks", *after);
    CAPTURE(n);
    REQUIRE(again);
    if (keys) REQUIRE(again->current().kid == keys->current().kid);
    if (!faulty.fired()) break;
    CHECK_FALSE(keys);
  }
}

TEST_CASE("KeyFile: a new key seals, and the old one stays", "[crypto]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  const std::string path = folder.File("keys.jwks");
  const auto before = LoadOrCreateKeyFile(path, disk, MustNotAsk);
  REQUIRE(before);
  {
    auto file = KeyFile::Open(path, disk, MustNotAsk);
    REQUIRE(file);
    REQUIRE(file->AddKey());
    CHECK(file->keys().keys().size() == 2);
  }
  CHECK(ModeOf(path) == 0600);
  auto after = LoadKeyFile(path, disk);
  REQUIRE(after);
  CHECK(after->current().kid != before->current().kid);
  REQUIRE(after->Find(before->current().kid) != nullptr);
  CHECK(after->Find(before->current().kid)->secret.bytes() == before->current().secret.bytes());
  REQUIRE(KeyFile::Open(path, disk)->RemoveOldKeys());
  CHECK(KidsIn(*LoadKeyFile(path, disk)) == std::set{after->current().kid});
}

TEST_CASE("KeyFile: concurrent rotations lose no key", "[crypto]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  const std::string path = folder.File("keys.jwks");
  std::set<std::string> kids = KidsIn(*LoadOrCreateKeyFile(path, disk));
  constexpr int kThreads = 8;
  std::vector<std::string> made(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        auto file = KeyFile::Open(path, disk);
        if (file && file->AddKey()) made[static_cast<std::size_t>(i)] = file->keys().current().kid;
      });
    }
  }
  kids.insert(made.begin(), made.end());
  CHECK(kids.size() == 1 + kThreads);
  CHECK(KidsIn(*LoadKeyFile(path, disk)) == kids);
}

TEST_CASE("KeyFile: a symbolic link to it stays one", "[crypto]") {
  const TempDirectory folder, elsewhere;
  PosixFileSystem disk;
  REQUIRE(LoadOrCreateKeyFile(elsewhere.File("real.jwks"), disk));
  REQUIRE(::symlink(elsewhere.File("real.jwks").c_str(), folder.File("keys.jwks").c_str()) == 0);
  REQUIRE(KeyFile::Open(folder.File("keys.jwks"), disk)->AddKey());
  CHECK(LoadKeyFile(elsewhere.File("real.jwks"), disk)->keys().size() == 2);
  CHECK(disk.ListDirectory(folder.path())->size() == 1);
}

TEST_CASE("KeyFile: the next change removes leftovers of a crash", "[crypto]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  REQUIRE(LoadOrCreateKeyFile(folder.File("keys.jwks"), disk));
  std::ofstream(folder.File(".keys.jwks.0123456789abcdef.tmp")) << "a key";
  std::ofstream(folder.File(".other.0123456789abcdef.tmp")) << "not ours";
  REQUIRE(KeyFile::Open(folder.File("keys.jwks"), disk)->AddKey());
  CHECK(disk.ListDirectory(folder.path())->size() == 2);
  CHECK(TextOf(folder.File(".other.0123456789abcdef.tmp")) == "not ours");
}

TEST_CASE("KeyFile: whatever fails in a change, no key is lost", "[crypto][fault]") {
  using Change = Result<void> (*)(KeyFile&);
  const std::string path = "/home/.config/reprise/keys.jwks";
  for (const Change change : {Change([](KeyFile& file) { return file.AddKey(); }),
                              Change([](KeyFile& file) { return file.RemovePassphrase(); })}) {
    for (std::size_t n = 1;; ++n) {
      MemoryFileSystem disk;
      const auto before = LoadOrCreateKeyFile(path, disk);
      REQUIRE(before);
      FaultyFileSystem faulty(disk, {.at = n, .from_then_on = true});
      auto file = KeyFile::Open(path, faulty);
      REQUIRE(file);
      const auto changed = change(*file);
      for (const auto kept : {MemoryFileSystem::Kept::kNothing, MemoryFileSystem::Kept::kNames}) {
        CAPTURE(n);
        const auto after = LoadKeyFile(path, *disk.AfterPowerLoss(kept));
        REQUIRE(after);
        REQUIRE(after->Find(before->current().kid) != nullptr);
        if (changed) REQUIRE(KidsIn(*after) == KidsIn(file->keys()));
      }
      if (!faulty.fired()) break;
      CHECK_FALSE(changed);
    }
  }
}

TEST_CASE("KeyFile: a passphrase is set, used, changed and removed", "[crypto]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  const std::string path = folder.File("keys.jwks");
  const auto keys = LoadOrCreateKeyFile(path, disk);
  REQUIRE(keys);
  const std::string k = TextOf(path).substr(TextOf(path).find("\"k\":\"") + 5, 43);
  {
    auto file = KeyFile::Open(path, disk, MustNotAsk);
    REQUIRE_FALSE(file->has_passphrase());
    REQUIRE(file->SetPassphrase(Secret("correct horse")));
    CHECK(file->has_passphrase());
    REQUIRE(file->AddKey());  // under the same passphrase
  }
  CHECK(ModeOf(path) == 0600);
  CHECK(TextOf(path).find(k) == std::string::npos);
  const auto unasked = LoadKeyFile(path, disk);
  REQUIRE_FALSE(unasked);
  CHECK(unasked.error().reason == "passphrase_needed");
  auto file = KeyFile::Open(path, disk, Says("correct horse"));
  REQUIRE(file);
  CHECK(file->keys().keys().size() == 2);
  CHECK(file->keys().Find(keys->current().kid)->secret.bytes() == keys->current().secret.bytes());

  REQUIRE(file->SetPassphrase(Secret("battery staple")));
  CHECK(LoadKeyFile(path, disk, Says("correct horse")).error().reason == "passphrase_wrong");
  REQUIRE(LoadOrCreateKeyFile(path, disk, Says("battery staple")));
  REQUIRE(file->RemovePassphrase());
  CHECK_FALSE(file->has_passphrase());
  CHECK(LoadKeyFile(path, disk, MustNotAsk)->keys().size() == 2);
}

TEST_CASE("KeyFile: opening fails with the error of the passphrase's source", "[crypto]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  REQUIRE(LoadOrCreateKeyFile(folder.File("keys.jwks"), disk));
  REQUIRE(KeyFile::Open(folder.File("keys.jwks"), disk)->SetPassphrase(Secret("x")));
  const auto loaded = LoadKeyFile(folder.File("keys.jwks"), disk,
                                  []() -> Result<SecretText> { return Fail(ErrorCode::kCancelled, "nobody there"); });
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().message == "nobody there");
}

}  // namespace reprise::key_file_test
