#include "store/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "store/file_interaction_store.h"
#include "store/file_journal.h"
#include "store/file_names.h"
#include "store/sample.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::verify_test {
namespace {

const std::string kRoot = "/data";

// Two chats, each with a branch and a running interaction.
struct World {
  MemoryFileSystem disk;
  std::shared_ptr<const KeySet> keys;
  ChatId other = *ChatId::Parse("other");

  explicit World(bool sealed = true) {
    if (sealed) keys = std::make_shared<const KeySet>(KeySet::Generate());
    auto store = Open();
    for (const ChatId& chat : {Chat1(), other}) {
      const auto save = [&](std::uint32_t number, std::optional<std::uint32_t> parent) {
        const auto parent_id = parent ? std::optional(Id(*parent)) : std::nullopt;
        REQUIRE(store->SaveInteraction(Sample(chat, Id(number), parent_id, "turn " + std::to_string(number))));
      };
      save(1, std::nullopt);
      save(2, 1);
      save(3, 2);
      save(4, 2);
      auto journal = store->BeginJournal(chat, Id(5), {});
      REQUIRE(journal);
      for (const char* record : {R"({"begin":{}})", R"({"frames":"one"})", R"({"frames":"two"})"}) {
        REQUIRE((*journal)->Append(record, Journal::Reach::kPowerLoss));
      }
    }
  }
  std::unique_ptr<FileInteractionStore> Open(const std::string& root = kRoot) {
    return *FileInteractionStore::Open({.root = root, .keys = keys, .file_system = disk, .lock = false});
  }
  VerifyReport Verify() { return VerifyStore(kRoot, keys, disk).value(); }
  std::string Read(const std::string& path) { return disk.ReadFile(path, kMaxRecordBytes).value(); }
};

std::string PathOf(const std::string& name) { return kRoot + "/" + name; }

std::vector<std::string> FilesOf(const ChatId& chat) {
  std::vector<std::string> names = {RecordName(chat, std::nullopt)};
  for (std::uint32_t number = 1; number <= 4; ++number) names.push_back(RecordName(chat, Id(number)));
  names.push_back(JournalName(chat, Id(5)));
  return names;
}

std::set<std::string> Named(const VerifyReport& report) {
  std::set<std::string> names;
  for (const Problem& problem : report.problems) names.insert(problem.file);
  return names;
}
std::map<std::string, std::string> Kinds(const VerifyReport& report) {
  std::map<std::string, std::string> kinds;
  for (const Problem& problem : report.problems) kinds.emplace(problem.file, problem.kind);
  return kinds;
}
using Expected = std::map<std::string, std::string>;

}  // namespace

TEST_CASE("VerifyStore: a sound folder has no problems and every file counts", "[verify]") {
  const bool sealed = GENERATE(true, false);
  World world(sealed);
  const VerifyReport report = world.Verify();
  CHECK(report.problems.empty());
  CHECK(report.checked == 2 * FilesOf(Chat1()).size());
}

TEST_CASE("VerifyStore: one flipped bit in any byte of any file is found, and no other file is named",
          "[verify][long]") {
  World world;
  std::size_t flips = 0;
  for (const std::string& name : FilesOf(Chat1())) {
    const std::string whole = world.Read(PathOf(name));
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
      world.disk.Overwrite(PathOf(name), flipped);
      const VerifyReport report = VerifyChat(kRoot, Chat1(), world.keys, world.disk).value();
      INFO(name << " byte " << at);
      REQUIRE(Named(report) == std::set{name});
      ++flips;
    }
    world.disk.Overwrite(PathOf(name), whole);
  }
  CHECK(flips > 5000);
  CHECK(world.Verify().problems.empty());
}

TEST_CASE("VerifyStore: every truncation of a record is found", "[verify][long]") {
  World world;
  for (const std::string& name : {RecordName(Chat1(), std::nullopt), RecordName(Chat1(), Id(2))}) {
    const std::string whole = world.Read(PathOf(name));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      world.disk.Overwrite(PathOf(name), whole.substr(0, size));
      INFO(name << " cut to " << size);
      REQUIRE(Kinds(VerifyChat(kRoot, Chat1(), world.keys, world.disk).value()) == Expected{{name, "auth"}});
    }
    world.disk.Overwrite(PathOf(name), whole);
  }
}

TEST_CASE("VerifyStore: an index with a number that is too large is damaged", "[verify]") {
  World world(/*sealed=*/false);
  for (const char* text : {"1e999", R"({"schema":1e999)", "[-1e999]"}) {
    const std::string index = RecordName(Chat1(), std::nullopt);
    world.disk.Overwrite(PathOf(index), text);
    CHECK(Named(world.Verify()).contains(index));
    CHECK_FALSE(world.Open()->ListUnreadableChats()->empty());
  }
}

TEST_CASE("VerifyStore: every pair of files that changed places is found, and both are named", "[verify]") {
  World world;
  std::vector<std::string> all = FilesOf(Chat1());
  for (const std::string& name : FilesOf(world.other)) all.push_back(name);
  for (std::size_t a = 0; a < all.size(); ++a) {
    for (std::size_t b = a + 1; b < all.size(); ++b) {
      const std::string one = world.Read(PathOf(all[a])), two = world.Read(PathOf(all[b]));
      world.disk.Overwrite(PathOf(all[a]), two);
      world.disk.Overwrite(PathOf(all[b]), one);
      INFO(all[a] << " and " << all[b]);
      REQUIRE(Named(world.Verify()) == std::set{all[a], all[b]});
      world.disk.Overwrite(PathOf(all[a]), one);
      world.disk.Overwrite(PathOf(all[b]), two);
    }
  }
  CHECK(world.Verify().problems.empty());
}

TEST_CASE("VerifyStore: a swap between interactions or chats is reported as a swap", "[verify]") {
  World world;
  const std::string two = RecordName(Chat1(), Id(2));
  for (const std::string& from :
       {RecordName(Chat1(), Id(1)), RecordName(world.other, Id(2)), RecordName(Chat1(), std::nullopt)}) {
    world.disk.Overwrite(PathOf(two), world.Read(PathOf(from)));
    CHECK(Kinds(world.Verify()) == Expected{{two, "swap"}});
  }
}

TEST_CASE("VerifyStore: a deleted file is missed by a later interaction or by the index", "[verify]") {
  const bool sealed = GENERATE(true, false);
  World world(sealed);
  for (const std::string& name : FilesOf(Chat1())) {
    if (name.ends_with(".journal")) continue;  // looks like an interaction that has ended, or never begun
    const std::string content = world.Read(PathOf(name));
    REQUIRE(world.disk.RemoveFile(PathOf(name)));
    CHECK(Kinds(world.Verify()) == Expected{{name, "missing"}});
    REQUIRE(world.disk.CreateFile(PathOf(name)));
    world.disk.Overwrite(PathOf(name), content);
  }
  CHECK(world.Verify().problems.empty());
}

TEST_CASE("VerifyStore: another authentic version of a file is a rollback", "[verify]") {
  World world;
  // Another life of the same chat, under the same key.
  auto store = world.Open("/again");
  for (std::uint32_t number = 1; number <= 3; ++number) {
    const auto parent = number > 1 ? std::optional(Id(number - 1)) : std::nullopt;
    REQUIRE(store->SaveInteraction(Sample(Chat1(), Id(number), parent, "forged")));
  }
  for (const std::uint32_t number : {1u, 2u, 3u}) {
    const std::string name = RecordName(Chat1(), Id(number));
    const std::string own = world.Read(PathOf(name));
    world.disk.Overwrite(PathOf(name), world.Read("/again/" + name));
    CHECK(Kinds(world.Verify()) == Expected{{name, "rollback"}});
    world.disk.Overwrite(PathOf(name), own);
  }
}

TEST_CASE("VerifyStore: a plain file in a sealed folder is reported, and the reverse", "[verify]") {
  World sealed(true), plain(false);
  for (const std::string& name : FilesOf(Chat1())) {
    for (auto [into, from] : {std::pair(&sealed, &plain), std::pair(&plain, &sealed)}) {
      const std::string own = into->Read(PathOf(name));
      into->disk.Overwrite(PathOf(name), from->Read(PathOf(name)));
      INFO(name);
      CHECK(Kinds(into->Verify()) == Expected{{name, into == &sealed ? "plain" : "sealed"}});
      into->disk.Overwrite(PathOf(name), own);
    }
  }
  CHECK(VerifyStore(kRoot, nullptr, sealed.disk)->problems.size() == 2 * FilesOf(Chat1()).size());
}

TEST_CASE("VerifyStore: with another key everything is damaged", "[verify]") {
  World world;
  const auto others = std::make_shared<const KeySet>(KeySet::Generate());
  for (const auto& [file, kind] : Kinds(VerifyStore(kRoot, others, world.disk).value())) {
    INFO(file);
    CHECK(kind == "auth");
  }
}

TEST_CASE("VerifyStore: foreign files, temporary files and the trash are skipped", "[verify]") {
  World world;
  const std::string interactions = InteractionsDirectory(kRoot, Chat1());
  for (const std::string& path :
       {kRoot + "/notes.txt", interactions + "/int_002.json.bak", interactions + "/.int_009.json.00.tmp",
        ChatDirectory(kRoot, Chat1()) + "/chat.json.damaged.x"}) {
    REQUIRE(world.disk.CreateFile(path));
  }
  REQUIRE(world.Open()->DeleteChat(world.other));
  const VerifyReport report = world.Verify();
  CHECK(report.problems.empty());
  CHECK(report.checked == FilesOf(Chat1()).size());
}

TEST_CASE("VerifyStore: the momentary states of a running server are no problem", "[verify]") {
  World world;
  const std::string journal = PathOf(JournalName(Chat1(), Id(5)));
  const std::string whole = world.Read(journal);
  SECTION("a journal at any length") {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      world.disk.Overwrite(journal, whole.substr(0, size));
      INFO(size);
      REQUIRE(VerifyChat(kRoot, Chat1(), world.keys, world.disk)->problems.empty());
    }
  }
  SECTION("a checkpoint that the index does not know yet") {
    const std::string index = PathOf(RecordName(Chat1(), std::nullopt));
    const std::string old = world.Read(index);
    {
      auto store = world.Open();
      REQUIRE(store->SaveInteraction(Sample(5, 4, "newer")));
    }
    world.disk.Overwrite(index, old);
    CHECK(world.Verify().problems.empty());
  }
  SECTION("a new chat's first checkpoint without its index") {
    const ChatId fresh = *ChatId::Parse("fresh");
    REQUIRE(world.Open()->SaveInteraction(Sample(fresh, Id(1), std::nullopt, "first")));
    REQUIRE(world.disk.RemoveFile(ChatFile(kRoot, fresh)));
    CHECK(world.Verify().problems.empty());
  }
}

TEST_CASE("VerifyFile: a file in the folder is checked against its neighbours, elsewhere against itself", "[verify]") {
  World world;
  const std::string name = RecordName(Chat1(), Id(2));
  const auto verify = [&](const std::string& path) { return VerifyFile(path, world.keys, world.disk); };
  CHECK(verify(PathOf(name))->checked == 1);
  CHECK(verify(PathOf(name))->problems.empty());
  for (const std::string& file : FilesOf(Chat1())) {
    REQUIRE(world.disk.CreateFile("/copy"));
    world.disk.Overwrite("/copy", world.Read(PathOf(file)));
    INFO(file);
    CHECK(verify("/copy")->problems.empty());
    std::string damaged = world.Read(PathOf(file));
    damaged[damaged.size() / 2] ^= 1;
    world.disk.Overwrite("/copy", damaged);
    CHECK(verify("/copy")->problems.size() == 1);
    REQUIRE(world.disk.RemoveFile("/copy"));
  }
  REQUIRE(world.disk.RemoveFile(PathOf(name)));
  CHECK(Kinds(*verify(PathOf(name))) == Expected{{name, "missing"}});
  CHECK(verify(PathOf(RecordName(Chat1(), Id(9)))).error().code == ErrorCode::kNotFound);
  CHECK(verify("/nowhere").error().code == ErrorCode::kNotFound);
}

TEST_CASE("VerifyStore: every file is counted once, and the work can be stopped at each", "[verify]") {
  World world;
  WorkCounter all;
  const auto report = VerifyStore(kRoot, world.keys, world.disk, &all);
  REQUIRE(report);
  CHECK(all.done() == report->checked);

  // A chat that has to be checked twice.
  REQUIRE(world.disk.RemoveFile(PathOf(RecordName(world.other, Id(3)))));
  WorkCounter damaged;
  CHECK(!VerifyStore(kRoot, world.keys, world.disk, &damaged)->problems.empty());
  CHECK(damaged.done() == all.done() - 1);

  WorkCounter stopped;
  stopped.RequestStop();
  CHECK(VerifyStore(kRoot, world.keys, world.disk, &stopped).error().code == ErrorCode::kCancelled);
  CHECK(stopped.done() == 1);
}

}  // namespace reprise::verify_test
