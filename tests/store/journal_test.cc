#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/file_journal.h"
#include "store/running_list.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::journal_test {
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
  auto file = disk.CreateFile(kPath);
  REQUIRE(file);
  return std::make_unique<FileJournal>(*std::move(file), *JournalCipher::Create(kPlace, keys),
                                       [&] { return disk.SyncDirectory("/"); });
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

// Where each record begins, and the end of the last.
std::vector<std::size_t> RecordsBegin(const std::string& bytes) {
  std::vector<std::size_t> begins = {bytes.find('\n') + 1};
  while (begins.back() < bytes.size()) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(bytes.at(begins.back() + i));
    begins.push_back(begins.back() + 8 + (size & 0x7fffffff));
  }
  return begins;
}

bool IsPrefix(const std::vector<std::string>& records) {
  return records.size() <= kRecords.size() && std::equal(records.begin(), records.end(), kRecords.begin());
}

}  // namespace

TEST_CASE("Journal: appended records are read back, sealed and plain", "[store]") {
  for (const KeySet* keys : {&Keys(), static_cast<const KeySet*>(nullptr)}) {
    const std::string bytes = WriteRecords(keys);
    const auto content = ReadBytes(bytes, keys);
    REQUIRE(content);
    CHECK(content->records == kRecords);
    CHECK_FALSE(content->cut_off);
    CHECK((bytes.find("canary") == std::string::npos) == (keys != nullptr));
  }
}

TEST_CASE("Journal: if it is cut off anywhere, the records before that are read", "[store][fault]") {
  for (const KeySet* keys : {&Keys(), static_cast<const KeySet*>(nullptr)}) {
    const std::string bytes = WriteRecords(keys);
    const auto begins = RecordsBegin(bytes);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const auto content = ReadBytes(bytes.substr(0, size), keys);
      CAPTURE(size);
      REQUIRE(content);
      REQUIRE(IsPrefix(content->records));
      REQUIRE(content->cut_off == (std::find(begins.begin(), begins.end(), size) == begins.end()));
    }
  }
}

TEST_CASE("Journal: a part of the last record that did not reach the disk is not damage", "[store][fault]") {
  for (const KeySet* keys : {&Keys(), static_cast<const KeySet*>(nullptr)}) {
    const std::string bytes = WriteRecords(keys);
    const std::size_t last = RecordsBegin(bytes).at(2);
    for (std::size_t size = last; size < bytes.size(); ++size) {
      std::string zeros = bytes;
      if (bytes.size() - size < 16) break;  // so few zeros may be the record's own; see the next test
      std::fill(zeros.begin() + static_cast<std::ptrdiff_t>(size), zeros.end(), '\0');
      const auto content = ReadBytes(zeros, keys);
      CAPTURE(size, bytes.size());
      REQUIRE(content);
      REQUIRE(content->cut_off);
      REQUIRE(content->records == std::vector<std::string>{kRecords[0], kRecords[1]});
    }
  }
}

TEST_CASE("Journal: zeros at its end count as unwritten if they fill the last sector", "[store][fault]") {
  for (const std::size_t more : {1, 2, 15}) {
    for (const bool fill : {true, false}) {
      MemoryFileSystem disk;
      const auto journal = NewJournal(disk, &Keys());
      REQUIRE(journal->Append("first", Journal::Reach::kProcess));
      const std::size_t before = disk.ReadFile(kPath, 1 << 20)->size();
      const std::size_t overhead = RecordsBegin(*disk.ReadFile(kPath, 1 << 20)).at(1) -
                                   RecordsBegin(*disk.ReadFile(kPath, 1 << 20)).at(0) -
                                   std::string_view("first").size();
      const std::size_t end = (before + overhead) / 512 * 512 + 512 + more;
      REQUIRE(journal->Append(std::string(end - before - overhead, 'x'), Journal::Reach::kProcess));
      std::string bytes = *disk.ReadFile(kPath, 1 << 20);
      REQUIRE(bytes.size() == end);
      bytes[end - more - 1] = static_cast<char>(bytes[end - more - 1] ^ 1);  // damage, or a part of the loss
      for (std::size_t i = fill ? end - more : end - 1; i < end; ++i) bytes[i] = '\0';
      if (!fill && more > 1) bytes[end - more] = 'x';
      const auto content = ReadBytes(bytes, &Keys());
      CAPTURE(more, fill);
      if (fill || more == 1) {
        REQUIRE(content);
        CHECK(content->cut_off);
        CHECK(content->records.size() == 1);
      } else {
        REQUIRE_FALSE(content);
        CHECK(content.error().reason == "integrity_auth");
      }
    }
  }
}

TEST_CASE("Journal: a hole before a synced record is damage, before an unsynced one it is the end", "[store][fault]") {
  for (const auto reach : {Journal::Reach::kProcess, Journal::Reach::kPowerLoss}) {
    MemoryFileSystem disk;
    const auto journal = NewJournal(disk, &Keys());
    for (int i = 0; i < 2; ++i) REQUIRE(journal->Append(kRecords[0], Journal::Reach::kProcess));
    REQUIRE(journal->Append(kRecords[0], reach));
    std::string bytes = *disk.ReadFile(kPath, 1 << 20);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(RecordsBegin(bytes).at(1) + 8), 20, '\0');
    const auto content = ReadBytes(bytes, &Keys());
    if (reach == Journal::Reach::kPowerLoss) {
      CHECK(content.error().reason == "integrity_auth");
    } else {
      REQUIRE(content);
      CHECK(content->cut_off);
      CHECK(content->records.size() == 1);
    }
  }
}

TEST_CASE("Journal: zeros that no power loss leaves are damage, before a synced record", "[store][fault]") {
  using Reach = Journal::Reach;
  for (const KeySet* keys : {&Keys(), static_cast<const KeySet*>(nullptr)}) {
    for (const auto reach : {Reach::kProcess, Reach::kPowerLoss}) {
      MemoryFileSystem disk;
      const auto journal = NewJournal(disk, keys);
      const std::string record = R"({"frames":")" + std::string(600, 'x') + "\"}";
      for (const auto each : {Reach::kProcess, Reach::kProcess, reach, Reach::kProcess}) {
        REQUIRE(journal->Append(record, each));
      }
      const std::string whole = *disk.ReadFile(kPath, 1 << 20);
      const std::size_t second = RecordsBegin(whole).at(1);
      const auto read_with_hole = [&](std::size_t begin, std::size_t size) {
        std::string bytes = whole;
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), size, '\0');
        return ReadBytes(bytes, keys);
      };
      CAPTURE(keys != nullptr, reach == Reach::kPowerLoss);
      const auto in_header = read_with_hole(20, 30);  // no power loss leaves a part of a sector
      CHECK(!in_header);
      if (!in_header) CHECK(in_header.error().reason == "integrity_auth");
      // Whole sectors at the beginning, and the beginning of a record.
      for (const auto& read : {read_with_hole(0, 512), read_with_hole(0, 1024), read_with_hole(second - 4, 40)}) {
        if (reach == Reach::kProcess) {
          REQUIRE(read);
          CHECK(read->cut_off);
        } else {
          REQUIRE(!read);
          CHECK(read.error().reason == "integrity_auth");
          CHECK(read.error().detail == "chat1/interactions/int_002.journal");
        }
      }
    }
  }
}

TEST_CASE("Journal: a hole that begins with the last bytes of a record is the end", "[store][fault]") {
  MemoryFileSystem disk;
  const auto journal = NewJournal(disk, &Keys());
  for (int i = 0; i < 3; ++i) REQUIRE(journal->Append(kRecords[0], Journal::Reach::kProcess));
  std::string bytes = *disk.ReadFile(kPath, 1 << 20);
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(RecordsBegin(bytes).at(2) - 4), 30, '\0');
  const auto content = ReadBytes(bytes, &Keys());
  REQUIRE(content);
  CHECK(content->cut_off);
  CHECK(content->records.size() == 1);
}

TEST_CASE("Journal: no flipped bit goes unnoticed", "[store][fault]") {
  for (const KeySet* keys : {&Keys(), static_cast<const KeySet*>(nullptr)}) {
    const std::string bytes = WriteRecords(keys);
    // A plain header has no secret and proves nothing.
    const std::size_t from = keys != nullptr ? 0 : RecordsBegin(bytes).front();
    for (std::size_t bit = 8 * from; bit < 8 * bytes.size(); ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
      const auto content = ReadBytes(flipped, keys);
      CAPTURE(bit / 8, bytes.size());
      REQUIRE_FALSE(content);
      REQUIRE(content.error().code == ErrorCode::kCorruption);
    }
  }
}

TEST_CASE("Journal: records cannot be left out, moved or taken elsewhere", "[store][fault]") {
  const std::string bytes = WriteRecords(&Keys());
  const auto begins = RecordsBegin(bytes);
  const auto part = [&](std::size_t i) { return bytes.substr(begins.at(i), begins.at(i + 1) - begins.at(i)); };
  const std::string header = bytes.substr(0, begins.front());
  CHECK(ReadBytes(header + part(1) + part(2), &Keys()).error().reason == "integrity_auth");
  CHECK(ReadBytes(header + part(1) + part(0) + part(2), &Keys()).error().reason == "integrity_auth");
  CHECK(ReadBytes(bytes, &Keys(), kOther).error().reason == "integrity_swap");
  const KeySet others = KeySet::Generate();
  CHECK(ReadBytes(bytes, &others).error().reason == "integrity_auth");
  CHECK(ReadBytes(WriteRecords(nullptr), &Keys()).error().reason == "integrity_plain");
  CHECK(ReadBytes(bytes, nullptr).error().reason == "integrity_sealed");
}

TEST_CASE("Journal: a synced record survives a power loss with all records before it", "[store][fault]") {
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

TEST_CASE("Journal: it continues after it was cut off, under another key", "[store]") {
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

TEST_CASE("RunningList: it tells the next process which interactions are unfinished", "[store]") {
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
  // The file of this process begins with the unfinished ones of the last.
  REQUIRE(next.Begin(a, two));
  next.End(b, two);
  CHECK(RunningList(disk, "/.running").ReadLast() == std::set<RunningList::Entry>{{a, two}});
}

TEST_CASE("RunningList: an unreadable list counts as none", "[store]") {
  MemoryFileSystem disk;
  REQUIRE(disk.CreateFile("/.running"));
  for (const char* text : {"+a\n", "+a int_001 x\n", "garbage\n", "+../x int_001\n"}) {
    disk.Overwrite("/.running", text);
    CHECK_FALSE(RunningList(disk, "/.running").ReadLast());
  }
  disk.Overwrite("/.running", "+a int_001\n+a int_0");  // cut off: missing lines may be beginnings
  CHECK_FALSE(RunningList(disk, "/.running").ReadLast());
}

TEST_CASE("RunningList: its file does not grow with ended interactions", "[store]") {
  MemoryFileSystem disk;
  RunningList list(disk, "/.running");
  const ChatId chat = *ChatId::Parse("a");
  for (std::uint32_t n = 1; n <= 30'000; ++n) {
    REQUIRE(list.Begin(chat, InteractionId::FromNumber(n)));
    list.End(chat, InteractionId::FromNumber(n));
  }
  CHECK(disk.ReadFile("/.running", 1 << 20)->size() < 500'000);
}

}  // namespace reprise::journal_test
