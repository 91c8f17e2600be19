#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/json.h"
#include "crypto/jwe.h"
#include "store/file_interaction_store.h"
#include "store/file_journal.h"
#include "store/file_names.h"
#include "store/sample.h"
#include "store/upkeep.h"
#include "support/faulty_file_system.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::rewrap_test {
namespace {

using Kept = MemoryFileSystem::Kept;

const std::string kRoot = "/data";
const RecordPlace kRunning{.chat = Chat1(), .interaction = InteractionId::FromNumber(4)};

std::shared_ptr<const KeySet> Shared(const KeySet& keys) {
  return std::make_shared<const KeySet>(*KeySet::Parse(View(keys.ToJwkSet())));
}

std::unique_ptr<FileInteractionStore> OpenStore(FileSystem& disk, const KeySet* keys) {
  auto store = FileInteractionStore::Open(
      {.root = kRoot, .keys = keys == nullptr ? nullptr : Shared(*keys), .file_system = disk, .lock = false});
  REQUIRE(store);
  return *std::move(store);
}

// Two chats, one of them in the trash, and a journal.
void Fill(MemoryFileSystem& disk, const KeySet* keys) {
  const ChatId other = *ChatId::Parse("other");
  {
    const auto store = OpenStore(disk, keys);
    REQUIRE(store->CreateChat(Chat1(), {.title = "one"}));  // with its index at once
    REQUIRE(store->CreateChat(other, {.title = "thrown away"}));
    REQUIRE(store->SaveInteraction(Sample(1, {}, "one")));
    REQUIRE(store->SaveInteraction(Sample(2, 1, "two")));
    REQUIRE(store->SaveInteraction(Sample(3, 2, "three")));
    REQUIRE(store->SaveInteraction(Sample(other, Id(1), {}, "thrown away")));
    REQUIRE(store->DeleteChat(other));
  }
  auto file = disk.CreateFile(JournalPath(kRoot, Chat1(), *kRunning.interaction));
  REQUIRE(file);
  FileJournal journal(*std::move(file), *JournalCipher::Create(kRunning, keys), {});
  REQUIRE(journal.Append("first record", Journal::Reach::kPowerLoss));
  REQUIRE(journal.Append("second record", Journal::Reach::kPowerLoss));
  REQUIRE(disk.SyncDirectory(InteractionsDirectory(kRoot, Chat1())));
}

using Files = std::map<std::string, std::string>;
void Collect(FileSystem& disk, const std::string& folder, Files& files) {
  const auto entries = disk.ListDirectory(folder);
  REQUIRE(entries);
  for (const DirectoryEntry& entry : *entries) {
    const std::string path = folder + "/" + entry.name;
    if (entry.is_directory) {
      Collect(disk, path, files);
    } else {
      files[path] = *disk.ReadFile(path, 1 << 20);
    }
  }
}
Files FilesOf(FileSystem& disk) {
  Files files;
  Collect(disk, kRoot, files);
  return files;
}

// Whether all that Fill wrote can be read with these keys.
void CheckReadable(FileSystem& disk, const KeySet& keys) {
  const auto store = OpenStore(disk, &keys);
  const auto chat = store->LoadChat(Chat1());
  REQUIRE(chat);
  REQUIRE(chat->damaged.empty());
  REQUIRE(chat->interactions == std::vector{Sample(1, {}, "one"), Sample(2, 1, "two"), Sample(3, 2, "three")});
  const auto journal = ReadJournalFile(disk, JournalPath(kRoot, Chat1(), *kRunning.interaction), kRunning, &keys);
  REQUIRE(journal);
  REQUIRE(journal->records == std::vector<std::string>{"first record", "second record"});
  for (const auto& [path, text] : FilesOf(disk)) {
    if (LooksLikeJwe(text)) REQUIRE(OpenJwe(text, keys));
  }
}

}  // namespace

TEST_CASE("RewrapStore: everything is under the new key afterwards, with the same content", "[store]") {
  MemoryFileSystem disk;
  const KeySet old = KeySet::Generate();
  Fill(disk, &old);
  const Files before = FilesOf(disk);
  const KeySet keys = old.WithNewKey(), fresh = keys.WithoutOldKeys();
  const auto done = RewrapStore(kRoot, keys, disk);
  REQUIRE(done);
  CHECK(done->left.empty());
  CHECK(done->files == 7);  // 3 + 1 interactions, 2 indexes, 1 journal
  CHECK(done->current == 0);

  const Files after = FilesOf(disk);
  REQUIRE(after.size() == before.size());
  for (const auto& [path, text] : before) {
    CAPTURE(path);
    REQUIRE(after.contains(path));
    if (!LooksLikeJwe(text)) continue;
    CHECK(after.at(path) != text);
    CHECK(*RecordDigest(after.at(path)) == *RecordDigest(text));
  }
  CheckReadable(disk, fresh);
  CheckReadable(*disk.AfterPowerLoss(Kept::kNothing), fresh);

  const auto again = RewrapStore(kRoot, keys, disk);
  REQUIRE(again);
  CHECK(again->files == 0);
  CHECK(again->current == 7);
  CHECK(FilesOf(disk) == after);
}

TEST_CASE("RewrapStore: damaged and foreign files are left as they are and named", "[store]") {
  MemoryFileSystem disk;
  const KeySet old = KeySet::Generate();
  Fill(disk, &old);
  const std::string flipped = InteractionFile(kRoot, Chat1(), Id(1)), cut = InteractionFile(kRoot, Chat1(), Id(2)),
                    foreign = InteractionFile(kRoot, Chat1(), Id(3));
  std::string text = *disk.ReadFile(flipped, 1 << 20);
  char& c = text[text.find("\"ciphertext\":\"") + 20];
  c = c == 'A' ? 'B' : 'A';
  disk.Overwrite(flipped, text);
  text = *disk.ReadFile(cut, 1 << 20);
  disk.Overwrite(cut, text.substr(0, text.size() - 30));
  disk.Overwrite(foreign, *SealJwe(*ParseJson("{}"), "x", KeySet::Generate()));
  const Files before = FilesOf(disk);

  const auto done = RewrapStore(kRoot, old.WithNewKey(), disk);
  REQUIRE(done);
  CHECK(done->files == 4);
  std::set<std::string> left;
  for (const Error& error : done->left) left.insert(error.detail);
  CHECK(left == std::set{flipped, cut, foreign});
  const Files after = FilesOf(disk);
  for (const std::string& path : left) CHECK(after.at(path) == before.at(path));
}

TEST_CASE("RewrapStore: a plain folder is not written", "[store]") {
  MemoryFileSystem disk;
  Fill(disk, nullptr);
  const Files before = FilesOf(disk);
  const std::size_t operations = disk.operations().size();
  const auto done = RewrapStore(kRoot, KeySet::Generate().WithNewKey(), disk);
  REQUIRE(done);
  CHECK(done->files + done->current + done->left.size() == 0);
  CHECK(FilesOf(disk) == before);
  CHECK(disk.operations().size() == operations);
}

TEST_CASE("RewrapStore: a missing folder is kNotFound", "[store]") {
  MemoryFileSystem disk;
  CHECK(RewrapStore("/nowhere", KeySet::Generate(), disk).error().code == ErrorCode::kNotFound);
}

TEST_CASE("RewrapStore: whichever call fails, all stays readable, and a second run finishes", "[store][fault]") {
  const KeySet old = KeySet::Generate();
  const KeySet keys = old.WithNewKey(), fresh = keys.WithoutOldKeys();
  for (const bool from_then_on : {true, false}) {
    for (std::size_t n = 1;; ++n) {
      CAPTURE(n, from_then_on);
      MemoryFileSystem disk;
      Fill(disk, &old);
      FaultyFileSystem faulty(disk, {.at = n, .from_then_on = from_then_on, .short_write = true});
      const auto done = RewrapStore(kRoot, keys, faulty);
      if (!faulty.fired()) {
        REQUIRE(done);
        break;
      }
      // The only harmless failure is a leftover that cannot be removed.
      if (done) CHECK(done->left.empty());
      for (const auto kept : {Kept::kNothing, Kept::kNames, Kept::kEverything}) {
        const auto after = disk.AfterPowerLoss(kept);
        CheckReadable(*after, keys);
        const auto finished = RewrapStore(kRoot, keys, *after);
        REQUIRE(finished);
        REQUIRE(finished->left.empty());
        // The old key is not needed now, even after a power loss.
        CheckReadable(*after->AfterPowerLoss(Kept::kNothing), fresh);
      }
    }
  }
}

TEST_CASE("RewrapStore: a stop at a file leaves all readable, and a later run finishes", "[store]") {
  const KeySet old = KeySet::Generate();
  const KeySet keys = old.WithNewKey(), fresh = keys.WithoutOldKeys();
  MemoryFileSystem disk;
  Fill(disk, &old);
  for (int run = 1; run <= 2; ++run) {
    WorkCounter stopped;
    stopped.RequestStop();
    const auto done = RewrapStore(kRoot, keys, disk, &stopped);
    REQUIRE_FALSE(done);
    CHECK(done.error().code == ErrorCode::kCancelled);
    CHECK(stopped.done() == 1);
    CheckReadable(disk, keys);
  }
  WorkCounter all;
  const auto done = RewrapStore(kRoot, keys, disk, &all);
  REQUIRE(done);
  CHECK(done->files + done->current == 7);
  CHECK(all.done() == FilesOf(disk).size());
  CheckReadable(disk, fresh);
}

}  // namespace reprise::rewrap_test
