// Every bit of a small sealed store is flipped and every two of its files are swapped. Each time readers must get an
// error that names the damage, and everything else must work.
#include <algorithm>
#include <utility>
#include <vector>

#include "fault/scenario.h"
#include "fault/torture.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::tamper_test {
namespace {

const std::string kRoot = "/chats";
const ChatId kSecond = *ChatId::Parse("second");

std::unique_ptr<FileInteractionStore> OpenStore(FileSystem& disk) {
  auto store = FileInteractionStore::Open({.root = kRoot, .keys = Keys(), .file_system = disk, .lock = false});
  REQUIRE(store);
  return *std::move(store);
}

const std::vector<std::string> kRecords = {R"({"begin":{}})", R"({"frames":"id: 1\n"})", R"({"frames":"id: 2\n"})"};

// Makes two chats with two checkpoints, an index and a journal each.
void Fill(FileSystem& disk) {
  const auto store = OpenStore(disk);
  for (const ChatId& chat : {Chat1(), kSecond}) {
    REQUIRE(store->CreateChat(chat, {.title = "title of " + chat.str()}));
    REQUIRE(store->SaveInteraction(Sample(chat, Id(1), {}, "one")));
    REQUIRE(store->SaveInteraction(Sample(chat, Id(2), Id(1), "two")));
    const auto journal = store->BeginJournal(chat, Id(3), {});
    REQUIRE(journal);
    for (const std::string& record : kRecords) REQUIRE((*journal)->Append(record, Journal::Reach::kPowerLoss));
  }
}

struct File {
  ChatId chat;
  enum class Kind { kIndex, kCheckpoint, kJournal } kind;
  std::uint32_t number;  // 0 for the index

  std::string path() const {
    if (kind == Kind::kIndex) return ChatFile(kRoot, chat);
    return kind == Kind::kJournal ? JournalPath(kRoot, chat, Id(number)) : InteractionFile(kRoot, chat, Id(number));
  }
};

std::vector<File> Files() {
  std::vector<File> files;
  for (const ChatId& chat : {Chat1(), kSecond}) {
    files.push_back({chat, File::Kind::kIndex, 0});
    files.push_back({chat, File::Kind::kCheckpoint, 1});
    files.push_back({chat, File::Kind::kCheckpoint, 2});
    files.push_back({chat, File::Kind::kJournal, 3});
  }
  return files;
}

// The reason of the error that a reader of this file gets; empty if there is none. "torn": its last record is left out,
// as after a power loss.
std::string ToldOf(FileInteractionStore& store, const File& file) {
  switch (file.kind) {
    case File::Kind::kIndex: {
      const auto chat = store.LoadChat(file.chat);
      const auto summary = store.LoadSummary(file.chat);
      if (chat && summary) return summary->title == "title of " + file.chat.str() ? "" : "unnoticed";
      return chat.has_value() == summary.has_value() ? chat.error().reason : "not by all";
    }
    case File::Kind::kCheckpoint: {
      const auto read = store.LoadInteraction(file.chat, Id(file.number));
      const auto expected = Sample(file.chat, Id(file.number), file.number == 1 ? std::nullopt : std::optional(Id(1)),
                                   file.number == 1 ? "one" : "two");
      if (read) return *read == expected ? "" : "unnoticed";
      const auto chat = store.LoadChat(file.chat);
      const bool named = !chat || std::any_of(chat->damaged.begin(), chat->damaged.end(),
                                              [&](const auto& each) { return each.id == Id(file.number); });
      return named ? read.error().reason : "not by all";
    }
    case File::Kind::kJournal: {
      const auto read = store.ReadJournal(file.chat, Id(file.number));
      if (!read) return read.error().reason;
      if (read->records == kRecords && !read->cut_off) return "";
      const bool begins = read->records.size() < kRecords.size() &&
                          std::equal(read->records.begin(), read->records.end(), kRecords.begin());
      return read->cut_off && begins ? "torn" : "unnoticed";
    }
  }
  return "";
}

bool IsNamed(const std::string& told) { return told.starts_with("integrity_") || told == "torn"; }

}  // namespace

TEST_CASE("Tampering: every flipped bit is noticed, and other files stay readable", "[fault]") {
  const Silence silence;
  MemoryFileSystem disk;
  Fill(disk);
  const std::vector<File> files = Files();
  const std::size_t step = Torture::Get().fraction > 1 ? 5 : 1;
  std::size_t flips = 0, next_look = 0;
  for (const File& file : files) {
    if (file.chat == kSecond) continue;  // has the same files
    const std::string bytes = *disk.ReadFile(file.path(), 1 << 20);
    for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += step, ++flips) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
      disk.Overwrite(file.path(), std::move(flipped));
      const auto store = OpenStore(disk);
      CAPTURE(file.path(), bit / 8, bit % 8, bytes.size());
      const std::string told = ToldOf(*store, file);
      REQUIRE(IsNamed(told));
      if (flips < next_look) continue;
      next_look += 97;
      for (const File& neighbour : files) {
        if (neighbour.path() == file.path()) continue;
        CAPTURE(neighbour.path());
        REQUIRE(ToldOf(*store, neighbour) == "");
      }
    }
    disk.Overwrite(file.path(), bytes);
  }
  Report("tampering: " + std::to_string(flips) + " bits flipped, all noticed");
  CHECK(flips >= 5'000);
}

TEST_CASE("Tampering: any two swapped files are noticed", "[fault]") {
  const Silence silence;
  const std::vector<File> files = Files();
  std::size_t swaps = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = i + 1; j < files.size(); ++j, ++swaps) {
      MemoryFileSystem disk;
      Fill(disk);
      const std::string first = *disk.ReadFile(files[i].path(), 1 << 20);
      disk.Overwrite(files[i].path(), *disk.ReadFile(files[j].path(), 1 << 20));
      disk.Overwrite(files[j].path(), first);
      const auto store = OpenStore(disk);
      CAPTURE(files[i].path(), files[j].path());
      for (const File& moved : {files[i], files[j]}) {
        const std::string told = ToldOf(*store, moved);
        CAPTURE(moved.path(), told);
        // A file of the same kind is authentic but in the wrong place; one of another kind has some named damage.
        CHECK((files[i].kind == files[j].kind ? told == "integrity_swap" : IsNamed(told)));
      }
      for (std::size_t k = 0; k < files.size(); ++k) {
        if (k != i && k != j) CHECK(ToldOf(*store, files[k]) == "");
      }
    }
  }
  Report("tampering: " + std::to_string(swaps) + " pairs of files swapped, all noticed");
}

}  // namespace reprise::tamper_test
