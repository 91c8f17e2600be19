#include "store/sealed_file_store.h"

#include <set>

#include "base/atomic_write.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/record.h"
#include "store/sample.h"
#include "store/verify.h"
#include "support/faulty_file_system.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::sealed_file_store_test {
namespace {

const std::string kRoot = "/data";

StoredFile File(std::string content, std::string_view name = "notes.txt") {
  return MakeFile(name, "text/plain", std::move(content)).value();
}

struct World {
  MemoryFileSystem disk;
  std::shared_ptr<const KeySet> keys;
  std::unique_ptr<SealedFileStore> store;
  ChatId other = *ChatId::Parse("other");

  explicit World(bool sealed = true) {
    if (sealed) keys = std::make_shared<const KeySet>(KeySet::Generate());
    auto chats = FileInteractionStore::Open({.root = kRoot, .keys = keys, .file_system = disk, .lock = false});
    for (const ChatId& chat : {Chat1(), other}) REQUIRE((*chats)->CreateChat(chat, {.title = "title"}));
    Reopen();
  }
  void Reopen() {
    store =
        std::make_unique<SealedFileStore>(SealedFileStore::Options{.root = kRoot, .keys = keys, .file_system = disk});
  }
  StoredFile Put(std::string content, std::string_view name = "notes.txt") {
    StoredFile file = File(std::move(content), name);
    REQUIRE(store->Put(Chat1(), file));
    return file;
  }
  std::string PathOf(const StoredFile& file) const { return FilePath(kRoot, Chat1(), file.info.id); }
  std::string Read(const std::string& path) { return disk.ReadFile(path, kMaxRecordBytes).value(); }
  void Write(const std::string& path, const std::string& content) {
    REQUIRE(ReplaceFile(disk, path, content));
    Reopen();
  }
  std::vector<Problem> Problems() { return VerifyStore(kRoot, keys, disk).value().problems; }
};

}  // namespace

TEST_CASE("SealedFileStore: a given name never becomes part of a path, and the content cannot be read", "[files]") {
  World world;
  for (const char* name : {"../../escape", "/etc/passwd", "..", "a/b\\c", "chat.json", "\xe2\x80\xaegpj.exe"}) {
    const StoredFile file = world.Put("needle-4711", name);
    CHECK(file.info.filename.find('/') == std::string::npos);
    CHECK(world.Read(world.PathOf(file)).find("needle-4711") == std::string::npos);
  }
  std::set<std::string> names;
  const auto entries = world.disk.ListDirectory(FilesDirectory(kRoot, Chat1())).value();
  for (const DirectoryEntry& entry : entries) {
    CHECK(ParseFileName(entry.name));
    names.insert(entry.name);
  }
  CHECK(names.size() == 6);
  CHECK_FALSE(world.disk.ReadFile(kRoot + "/escape", 1000));
  CHECK(world.Problems().empty());
}

TEST_CASE("SealedFileStore: a file for a missing chat is refused, and makes no folder", "[files]") {
  World world;
  const auto put = world.store->Put(*ChatId::Parse("nobody"), File("x"));
  REQUIRE_FALSE(put);
  CHECK(put.error().code == ErrorCode::kNotFound);
  CHECK_FALSE(world.disk.ListDirectory(kRoot + "/nobody"));
}

TEST_CASE("SealedFileStore: every changed byte is noticed, by name", "[files]") {
  World world;
  const StoredFile file = world.Put("some text"), neighbour = world.Put("other text");
  const std::string whole = world.Read(world.PathOf(file));
  const std::string name = FileRecordName(Chat1(), file.info.id);
  for (std::size_t i = 0; i < whole.size(); i += 7) {
    CAPTURE(i);
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    world.Write(world.PathOf(file), flipped);
    const auto got = world.store->Get(Chat1(), file.info.id);
    if (got) {  // in the unprotected header, which may name another key
      CHECK(*got == file);
      continue;
    }
    CHECK(got.error().code == ErrorCode::kCorruption);
    CHECK(got.error().detail == name);
    const auto problems = world.Problems();
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].file == name);
  }
  for (const std::size_t length : {std::size_t{0}, whole.size() / 2, whole.size() - 1}) {
    world.Write(world.PathOf(file), whole.substr(0, length));
    CHECK(world.store->Get(Chat1(), file.info.id).error().reason == "integrity_auth");
    CHECK(world.Problems().size() == 1);
    const auto listing = world.store->List(Chat1()).value();
    REQUIRE(listing.damaged.size() == 1);
    CHECK(listing.damaged[0].id == file.info.id);
    CHECK(listing.files == std::vector<FileInfo>{neighbour.info});
  }
  // It can still be deleted.
  CHECK(world.store->Delete(Chat1(), file.info.id));
  CHECK(world.Problems().empty());
}

TEST_CASE("SealedFileStore: a record of another place is noticed", "[files]") {
  World world;
  const StoredFile file = world.Put("one"), second = world.Put("two");
  const std::string text = world.Read(world.PathOf(file));
  const auto kind = [&](const std::string& path, const ChatId& chat, const FileId& id) {
    const auto got = world.store->Get(chat, id);
    REQUIRE_FALSE(got);
    const auto report = VerifyFile(path, world.keys, world.disk).value();
    REQUIRE(report.problems.size() == 1);
    CHECK("integrity_" + report.problems[0].kind == got.error().reason);
    return report.problems[0].kind;
  };
  world.Write(world.PathOf(second), text);
  CHECK(kind(world.PathOf(second), Chat1(), second.info.id) == "swap");
  REQUIRE(world.disk.CreateDirectory(FilesDirectory(kRoot, world.other)));
  const std::string elsewhere = FilePath(kRoot, world.other, file.info.id);
  world.Write(elsewhere, text);
  CHECK(kind(elsewhere, world.other, file.info.id) == "swap");
  world.Write(world.PathOf(second), FileToJson(Chat1(), second));
  CHECK(kind(world.PathOf(second), Chat1(), second.info.id) == "plain");
  world.Write(world.PathOf(second), world.Read(ChatFile(kRoot, Chat1())));
  CHECK(kind(world.PathOf(second), Chat1(), second.info.id) == "swap");
  // The same for a file's record in the place of an index.
  world.Write(ChatFile(kRoot, world.other), text);
  CHECK(VerifyFile(ChatFile(kRoot, world.other), world.keys, world.disk).value().problems[0].kind == "swap");
}

TEST_CASE("SealedFileStore: a changed content of a plain file is noticed", "[files]") {
  World world(/*sealed=*/false);
  const StoredFile file = world.Put("some text");
  std::string text = world.Read(world.PathOf(file));
  CHECK(text.find("some text") != std::string::npos);
  text.replace(text.find("some text"), 9, "same text");
  world.Write(world.PathOf(file), text);
  CHECK(world.store->Get(Chat1(), file.info.id).error().reason == "integrity_auth");
  CHECK(world.Problems().size() == 1);
  CHECK(VerifyFile(world.PathOf(file), nullptr, world.disk).value().problems.size() == 1);
}

TEST_CASE("SealedFileStore: whichever call fails, the file is there or it is not", "[files]") {
  for (std::size_t at = 1;; ++at) {
    CAPTURE(at);
    World world;
    const StoredFile before = world.Put("before"), file = File("new");
    FaultyFileSystem faulty(world.disk, {.at = at, .code = ErrorCode::kStorageFull, .short_write = true});
    SealedFileStore store({.root = kRoot, .keys = world.keys, .file_system = faulty});
    const auto put = store.Put(Chat1(), file);
    world.Reopen();
    const auto listing = world.store->List(Chat1()).value();
    CHECK(listing.damaged.empty());
    CHECK(listing.files.size() == (put ? 2 : 1));
    CHECK(world.store->Get(Chat1(), before.info.id).value() == before);
    // The next write removes the temporary files of an interrupted one.
    REQUIRE(world.store->Put(Chat1(), File("next")));
    const auto entries = world.disk.ListDirectory(FilesDirectory(kRoot, Chat1())).value();
    for (const DirectoryEntry& entry : entries) {
      CHECK(ParseFileName(entry.name));
    }
    if (!faulty.fired()) {
      CHECK(put);
      break;
    }
  }
}

TEST_CASE("SealedFileStore: a stored file survives a power loss, a deleted one is gone", "[files]") {
  World world;
  const StoredFile file = world.Put("text");
  const StoredFile deleted = world.Put("more text");
  REQUIRE(world.store->Delete(Chat1(), deleted.info.id));
  for (const auto kept : {MemoryFileSystem::Kept::kNothing, MemoryFileSystem::Kept::kNames}) {
    const auto disk = world.disk.AfterPowerLoss(kept);
    SealedFileStore store({.root = kRoot, .keys = world.keys, .file_system = *disk});
    CHECK(store.Get(Chat1(), file.info.id).value() == file);
    CHECK(store.List(Chat1()).value().files == std::vector<FileInfo>{file.info});
  }
}

}  // namespace reprise::sealed_file_store_test
