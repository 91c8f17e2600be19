#include "store/data_folder.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/sample.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::folder_keys_test {
namespace {

const std::string kRoot = "/data";

std::shared_ptr<const KeySet> NewKeys() { return std::make_shared<const KeySet>(KeySet::Generate()); }

struct Folder {
  MemoryFileSystem disk;

  void AddChat(const std::string& name, std::shared_ptr<const KeySet> keys) {
    auto store =
        FileInteractionStore::Open({.root = kRoot, .keys = std::move(keys), .file_system = disk, .lock = false});
    REQUIRE(store);
    const ChatId chat = *ChatId::Parse(name);
    REQUIRE((*store)->ReserveInteraction(chat));
    REQUIRE((*store)->SaveInteraction(Sample(chat, Id(1), std::nullopt, "one")));
  }
  FolderKeys Read(const KeySet* keys, FolderMode mode = FolderMode::kSealed) {
    auto found = ReadFolderKeys(kRoot, mode, keys, disk);
    REQUIRE(found);
    return *found;
  }
  std::string ReasonFor(const KeySet* keys, FolderMode mode = FolderMode::kSealed) {
    const auto checked = CheckFolderKeys(Read(keys, mode), mode, kRoot, "keys.jwks");
    return checked ? "" : checked.error().reason;
  }
  void Note(const KeySet* keys, FolderMode mode = FolderMode::kSealed) {
    REQUIRE(NoteFolderKeys(Read(keys, mode), kRoot, keys, disk));
  }
};

}  // namespace

TEST_CASE("FolderKeys: a new or empty folder accepts any key, and none", "[store]") {
  Folder folder;
  const auto keys = NewKeys();
  CHECK(folder.ReasonFor(keys.get()).empty());
  CHECK(folder.ReasonFor(nullptr).empty());
  CHECK(folder.ReasonFor(nullptr, FolderMode::kPlain).empty());
}

TEST_CASE("FolderKeys: chats with a missing key are named with it, noted or not", "[store]") {
  const bool noted = GENERATE(false, true);
  Folder folder;
  const auto old_keys = NewKeys(), other = NewKeys();
  folder.AddChat("a", old_keys);
  folder.AddChat("b", old_keys);
  if (noted) folder.Note(old_keys.get());
  CHECK(folder.ReasonFor(old_keys.get()).empty());
  CHECK(folder.ReasonFor(other.get()) == "missing_key");
  CHECK(folder.ReasonFor(nullptr) == "missing_key");
  const auto checked = CheckFolderKeys(folder.Read(other.get()), FolderMode::kSealed, kRoot, "keys.jwks");
  REQUIRE(!checked);
  CHECK(checked.error().message.starts_with("2 chats in /data are sealed with " + old_keys->current().kid +
                                            ", which is not in keys.jwks"));
}

TEST_CASE("FolderKeys: a key that was given up is not needed again, unless it comes back and goes", "[store]") {
  Folder folder;
  const auto old_keys = NewKeys(), other = NewKeys();
  folder.AddChat("a", old_keys);
  folder.Note(other.get());
  CHECK(folder.ReasonFor(other.get()).empty());
  folder.AddChat("b", other);
  CHECK(folder.ReasonFor(old_keys.get()) == "missing_key");
  folder.Note(old_keys.get());
  CHECK(folder.ReasonFor(other.get()) == "missing_key");
}

TEST_CASE("FolderKeys: if all noted keys are there, the chats are not read", "[store]") {
  Folder folder;
  const auto keys = NewKeys();
  folder.AddChat("a", keys);
  CHECK(folder.Read(keys.get()).looked);
  folder.Note(keys.get());
  CHECK_FALSE(folder.Read(keys.get()).looked);
  const KeySet rotated = keys->WithNewKey();
  CHECK_FALSE(folder.Read(&rotated).looked);
  folder.Note(&rotated);
  CHECK(folder.Read(&rotated).sealing.size() == 2);
  const KeySet newest = rotated.WithoutOldKeys();
  CHECK(folder.Read(&newest).looked);
  CHECK(folder.ReasonFor(&newest) == "missing_key");
}

TEST_CASE("FolderKeys: an unreadable note is rebuilt from the chats", "[store]") {
  const std::string text = GENERATE(as<std::string>{}, "", "{}", "[1]", R"({"schema":2,"plain":false,"keys":[]})",
                                    R"({"schema":1,"plain":false,"keys":[1],"given_up":[]})");
  Folder folder;
  const auto keys = NewKeys(), other = NewKeys();
  folder.AddChat("a", keys);
  REQUIRE(folder.disk.CreateFile(SealedByFile(kRoot)).and_then([&](auto file) { return file->Append(text); }));
  CHECK(folder.ReasonFor(other.get()) == "missing_key");
  CHECK(folder.ReasonFor(keys.get()).empty());
}

TEST_CASE("FolderKeys: a plain folder taken for a sealed one is refused, and the reverse", "[store]") {
  const bool noted = GENERATE(false, true);
  const auto keys = NewKeys();
  Folder plain, sealed;
  plain.AddChat("a", nullptr);
  sealed.AddChat("a", keys);
  if (noted) plain.Note(nullptr, FolderMode::kPlain);
  if (noted) sealed.Note(keys.get());
  CHECK(plain.ReasonFor(nullptr, FolderMode::kPlain).empty());
  CHECK(plain.ReasonFor(keys.get()) == "plain_folder");
  CHECK(plain.ReasonFor(nullptr) == "plain_folder");
  CHECK(sealed.ReasonFor(nullptr, FolderMode::kPlain) == "sealed_folder");
}

}  // namespace reprise::folder_keys_test
