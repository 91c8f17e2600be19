#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/file_journal.h"
#include "store/running_list.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise {
namespace {

using Kept = MemoryFileSystem::Kept;

const RecordPlace kPlace{.chat = *ChatId::Parse("chat1"), .interaction = InteractionId::FromNumber(2)};
const RecordPlace kOther{.chat = *ChatId::Parse("chat1"), .interaction = InteractionId::FromNumber(3)};
constexpr const char* kPath = "/int_002.journal";
const std::vector<std::string> kRecords = {R"({"begin":{"user_message":"canary"}})", R"({"frames":"id: 1\n"})",
                                           R"({"frames":"id: 2\n"})"};

const KeySet& Keys() {
  static const KeySet keys = KeySet::Generate();
  return keys;
}

std::unique_ptr<FileJournal> NewJournal(MemoryFileSystem& disk, const KeySet* keys) {
  auto journal =
      FileJournal::Create(disk, kPath, *JournalCipher::Create(kPlace, keys), [&] { return disk.SyncDirectory("/"); });
  REQUIRE(journal);
  return *std::move(journal);
}

// The bytes of a journal with kRecords.
std::string WriteRecords(const KeySet* keys) {
  MemoryFileSystem disk;
  const auto journal = NewJournal(disk, keys);
  for (const std::string& record : kRecords) REQUIRE(journal->Append(record, Journal::Reach::kProcess));
  return *disk.ReadFile(kPath, 1 << 20);
}

Result<JournalContent> ReadBytes(std::string bytes, const KeySet* keys, const RecordPlace& place = kPlace) {
  MemoryFileSystem disk;
  REQUIRE(disk.CreateFile(kPath));
  disk.Overwrite(kPath, std::move(bytes));
  return ReadJournalFile(disk, kPath, place, keys);
}

bool IsPrefix(const std::vector<std::string>& records) {
  return records.size() <= kRecords.size() && std::equal(records.begin(), records.end(), kRecords.begin());
}

}  // namespace

TEST_CASE("Journal: what was appended is read back, sealed and plain", "[store]") {
  for (const KeySet* keys : {&Keys(), static_cast<const KeySet*>(nullptr)}) {
    const std::string bytes = WriteRecords(keys);
    const auto content = ReadBytes(bytes, keys);
    REQUIRE(content);
    CHECK(content->records == kRecords);
    CHECK_FALSE(content->cut_off);
    CHECK((bytes.find("canary") == std::string::npos) == (keys != nullptr));
  }
}

TEST_CASE("Journal: cut off anywhere it reads as the records before", "[store][fault]") {
  for (const KeySet* keys : {&Keys(), static_cast<const KeySet*>(nullptr)}) {
    const std::string bytes = WriteRecords(keys);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const auto content = ReadBytes(bytes.substr(0, size), keys);
      CAPTURE(size);
      REQUIRE(content);
      REQUIRE(IsPrefix(content->records));
      REQUIRE(content->cut_off == (size == 0 || bytes[size - 1] != '\n'));
    }
  }
}

TEST_CASE("Journal: no flipped bit goes unnoticed", "[store][fault]") {
  const std::string bytes = WriteRecords(&Keys());
  const std::size_t last_line = bytes.rfind('\n', bytes.size() - 2) + 1;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    const auto content = ReadBytes(flipped, &Keys());
    CAPTURE(bit / 8, bytes.size());
    if (!content) {
      REQUIRE(content.error().code == ErrorCode::kCorruption);
    } else {  // the last record, which a power loss may have left like that
      REQUIRE(content->cut_off);
      REQUIRE(content->records.size() < kRecords.size());
      REQUIRE(IsPrefix(content->records));
      REQUIRE(bit / 8 >= last_line - 1);
    }
  }
}

TEST_CASE("Journal: records cannot be left out, moved or taken elsewhere", "[store][fault]") {
  const std::string bytes = WriteRecords(&Keys());
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < bytes.size(); at = bytes.find('\n', at) + 1) {
    lines.push_back(bytes.substr(at, bytes.find('\n', at) + 1 - at));
  }
  REQUIRE(lines.size() == 4);
  CHECK(ReadBytes(lines[0] + lines[2] + lines[3], &Keys()).error().reason == "integrity_auth");
  CHECK(ReadBytes(lines[0] + lines[2] + lines[1] + lines[3], &Keys()).error().reason == "integrity_auth");
  CHECK(ReadBytes(bytes, &Keys(), kOther).error().reason == "integrity_swap");
  const KeySet others = KeySet::Generate();
  CHECK(ReadBytes(bytes, &others).error().reason == "integrity_auth");
  CHECK(ReadBytes(WriteRecords(nullptr), &Keys()).error().reason == "integrity_auth");
  CHECK(ReadBytes(bytes, nullptr).error().reason == "integrity_plain");
}

TEST_CASE("Journal: what reaches the disk survives a power loss with all before it", "[store][fault]") {
  MemoryFileSystem disk;
  const auto journal = NewJournal(disk, &Keys());
  REQUIRE(journal->Append(kRecords[0], Journal::Reach::kProcess));
  REQUIRE(journal->Append(kRecords[1], Journal::Reach::kPowerLoss));
  REQUIRE(journal->Append(kRecords[2], Journal::Reach::kProcess));
  const auto after = disk.AfterPowerLoss(Kept::kNothing);
  const auto content = ReadJournalFile(*after, kPath, kPlace, &Keys());
  REQUIRE(content);
  CHECK(content->records == std::vector<std::string>{kRecords[0], kRecords[1]});
}

TEST_CASE("Journal: goes on after it was cut off, under another key", "[store]") {
  MemoryFileSystem disk;
  { NewJournal(disk, &Keys()); }
  const std::string bytes = WriteRecords(&Keys());
  disk.Overwrite(kPath, bytes.substr(0, bytes.size() - 5));
  const auto before = ReadJournalFile(disk, kPath, kPlace, &Keys());
  REQUIRE(before);
  CHECK(before->cut_off);
  const auto journal = FileJournal::Replace(disk, kPath, *JournalCipher::Create(kPlace, &Keys()), before->records, {});
  REQUIRE(journal);
  REQUIRE((*journal)->Append(kRecords[2], Journal::Reach::kProcess));
  const auto content = ReadJournalFile(disk, kPath, kPlace, &Keys());
  REQUIRE(content);
  CHECK(content->records == kRecords);
}

TEST_CASE("RunningList: tells the next process what has begun and not ended", "[store]") {
  MemoryFileSystem disk;
  const ChatId a = *ChatId::Parse("a"), b = *ChatId::Parse("b");
  const auto one = InteractionId::FromNumber(1), two = InteractionId::FromNumber(2);
  CHECK_FALSE(RunningList(disk, "/.running").ReadLast());
  {
    RunningList list(disk, "/.running");
    REQUIRE(list.Begin(a, one));
    REQUIRE(list.Begin(b, two));
    REQUIRE(list.Sync());
    list.End(a, one);
    list.End(a, two);  // never began
  }
  RunningList next(disk, "/.running");
  CHECK(next.ReadLast() == std::set<RunningList::Entry>{{b, two}});
  const auto after = disk.AfterPowerLoss(Kept::kNothing);
  CHECK(RunningList(*after, "/.running").ReadLast() == std::set<RunningList::Entry>{{a, one}, {b, two}});
  // The file of this process begins with what is left of the last.
  REQUIRE(next.Begin(a, two));
  next.End(b, two);
  CHECK(RunningList(disk, "/.running").ReadLast() == std::set<RunningList::Entry>{{a, two}});
}

TEST_CASE("RunningList: a list that cannot be read is none", "[store]") {
  MemoryFileSystem disk;
  REQUIRE(disk.CreateFile("/.running"));
  for (const char* text : {"+a\n", "+a int_001 x\n", "garbage\n", "+../x int_001\n"}) {
    disk.Overwrite("/.running", text);
    CHECK_FALSE(RunningList(disk, "/.running").ReadLast());
  }
  disk.Overwrite("/.running", "+a int_001\n+a int_0");  // cut off by a kill
  CHECK(RunningList(disk, "/.running").ReadLast()->size() == 1);
}

TEST_CASE("RunningList: its file does not grow with what has ended", "[store]") {
  MemoryFileSystem disk;
  RunningList list(disk, "/.running");
  const ChatId chat = *ChatId::Parse("a");
  for (std::uint32_t n = 1; n <= 30'000; ++n) {
    REQUIRE(list.Begin(chat, InteractionId::FromNumber(n)));
    list.End(chat, InteractionId::FromNumber(n));
  }
  CHECK(disk.ReadFile("/.running", 1 << 20)->size() < 500'000);
}

}  // namespace reprise
