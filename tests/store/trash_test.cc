// The trash: its list, and restoring from it.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/posix_file_system.h"
#include "domain/codec.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/sample.h"
#include "support/faulty_file_system.h"
#include "support/memory_file_system.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::trash_test {
namespace {

namespace fs = std::filesystem;

struct World {
  explicit World(bool sealed = true)
      : keys(sealed ? std::make_shared<const KeySet>(KeySet::Generate()) : nullptr), store(Open(keys)) {}

  std::unique_ptr<FileInteractionStore> Open(std::shared_ptr<const KeySet> with) {
    auto opened = FileInteractionStore::Open({.root = root(),
                                              .keys = std::move(with),
                                              .file_system = disk,
                                              .lock = false,
                                              .index_delay = std::chrono::hours(1)});
    REQUIRE(opened);
    return *std::move(opened);
  }
  void Fill(const std::string& text = "one") const {
    REQUIRE(store->SaveInteraction(Sample(1, {}, text)));
    REQUIRE(store->SaveInteraction(Sample(2, 1, text)));
    REQUIRE(store->ChangeChat(Chat1(), {.title = "The " + text}));
  }
  // The id of the new entry.
  std::string Delete() const {
    REQUIRE(store->DeleteChat(Chat1()));
    const auto trash = store->ListTrash();
    REQUIRE(trash);
    REQUIRE_FALSE(trash->empty());
    return trash->front().id;
  }
  std::string root() const { return folder.File("chats"); }
  std::string Entry(const std::string& id, const std::string& below = {}) const {
    return TrashDirectory(root()) + "/" + id + (below.empty() ? "" : "/" + below);
  }

  TempDirectory folder;
  PosixFileSystem disk;
  std::shared_ptr<const KeySet> keys;
  std::unique_ptr<FileInteractionStore> store;
};

std::string ReasonOf(const auto& result) { return result ? "ok" : result.error().reason; }

bool IsThere(const std::string& path) { return fs::exists(fs::symlink_status(path)); }

}  // namespace

TEST_CASE("Trash: a deleted chat is listed and can be restored unchanged", "[store][trash]") {
  World world(GENERATE(true, false));
  world.Fill();
  const auto before = world.store->LoadChat(Chat1());
  REQUIRE(before);
  const std::string id = world.Delete();
  CHECK_FALSE(world.store->LoadSummary(Chat1()));

  const auto trash = world.store->ListTrash();
  REQUIRE(trash);
  REQUIRE(trash->size() == 1);
  const TrashEntry& entry = trash->front();
  CHECK(entry.chat_id == Chat1());
  CHECK(entry.title == "The one");
  CHECK(entry.bytes > 100);
  CHECK(Now() - entry.deleted_at < std::chrono::minutes(5));

  const auto restored = world.store->RestoreChat(Chat1(), id);
  REQUIRE(restored);
  CHECK(restored->title == "The one");
  CHECK(restored->head == Id(2));
  const auto after = world.store->LoadChat(Chat1());
  REQUIRE(after);
  CHECK(after->damaged.empty());
  REQUIRE(after->interactions.size() == before->interactions.size());
  for (std::size_t i = 0; i < after->interactions.size(); ++i) {
    CHECK(DumpJson(ToJson(after->interactions[i])) == DumpJson(ToJson(before->interactions[i])));
  }
  CHECK(world.store->ListTrash()->empty());
  CHECK(world.store->RestoreChat(Chat1(), id).error().code == ErrorCode::kNotFound);  // it is not there any more
  CHECK(world.store->ReserveInteraction(Chat1()) == Id(3));                           // the chat continues
}

TEST_CASE("Trash: a chat has its title there even if it is deleted at once", "[store][trash]") {
  World world;
  REQUIRE(world.store->SaveInteraction(Sample(1, {}, "the first words")));  // chat.json would follow later
  world.Delete();
  CHECK(world.store->ListTrash()->front().title == "the first words");
}

TEST_CASE("Trash: the chat that was deleted last comes first", "[store][trash]") {
  World world;
  world.Fill("first");
  const std::string first = world.Delete();
  world.Fill("second");
  const std::string second = world.Delete();
  const auto trash = world.store->ListTrash();
  REQUIRE(trash);
  REQUIRE(trash->size() == 2);
  CHECK(trash->at(0).deleted_at >= trash->at(1).deleted_at);
  REQUIRE(world.store->RestoreChat(Chat1(), first));
  CHECK(world.store->LoadSummary(Chat1())->title == "The first");
  CHECK(world.store->LoadFinalState(Chat1(), Id(2)).value()->messages.front().content == "first");
}

TEST_CASE("Trash: a restore replaces nothing, whatever has the name", "[store][trash]") {
  World world;
  world.Fill();
  const std::string id = world.Delete();
  const std::string place = world.root() + "/chat1";
  SECTION("a chat in memory") { REQUIRE(world.store->ReserveInteraction(Chat1())); }
  SECTION("a chat on disk") {
    world.Fill("other");
    world.store.reset();
    world.store = world.Open(world.keys);
  }
  SECTION("a damaged chat") {
    fs::create_directories(place);
    std::ofstream(place + "/chat.json") << "{\"nothing\": 1}";
  }
  SECTION("an empty folder") { fs::create_directories(place); }
  SECTION("a file") { std::ofstream(world.root() + "/chat1") << "mine"; }
  SECTION("a link") { fs::create_symlink("/nowhere", world.root() + "/chat1"); }
  const auto restored = world.store->RestoreChat(Chat1(), id);
  REQUIRE_FALSE(restored);
  CHECK(restored.error().reason == "chat_exists");
  CHECK(IsThere(world.Entry(id, "chat.json")));
}

TEST_CASE("Trash: only entries are listed and restored", "[store][trash]") {
  World world;
  CHECK(world.store->ListTrash()->empty());  // nothing was ever deleted
  CHECK(world.store->RestoreChat(Chat1(), "chat1.20250115T100000.000Z.01234567").error().code == ErrorCode::kNotFound);
  world.Fill();
  const std::string id = world.Delete();
  fs::create_directories(world.Entry("notes"));
  fs::create_symlink(world.Entry(id), world.Entry("chat1.20250115T100000.000Z.01234567"));
  std::ofstream(world.Entry("chat1.20250115T100000.000Z.89abcdef")) << "a file";
  REQUIRE(world.store->ListTrash()->size() == 1);
  for (const std::string& name :
       {std::string("notes"), std::string(".."), "../" + id, "x/" + id, std::string("chat1"), std::string(),
        std::string("chat1.20250115T100000.000Z.89abcdef"), std::string("other.20250115T100000.000Z.89abcdef")}) {
    CAPTURE(name);
    const auto restored = world.store->RestoreChat(Chat1(), name);
    REQUIRE_FALSE(restored);
    CHECK(restored.error().code == ErrorCode::kNotFound);
  }
  CHECK(world.store->RestoreChat(*ChatId::Parse("chat2"), id).error().code == ErrorCode::kNotFound);
  const auto linked = world.store->RestoreChat(Chat1(), "chat1.20250115T100000.000Z.01234567");
  CHECK(ReasonOf(linked) == "integrity_missing");
  CHECK(world.store->RestoreChat(Chat1(), id));
}

TEST_CASE("Trash: a chat whose summary cannot be read stays there", "[store][trash]") {
  World world;
  world.Fill();
  const std::string id = world.Delete();
  const std::string index = world.Entry(id, "chat.json");
  std::string expected = "integrity_auth";
  SECTION("it was changed") {
    std::ifstream file(index);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t tag = text.find("\"tag\":\"") + 7;
    text[tag] = text[tag] == 'A' ? 'B' : 'A';
    std::ofstream(index) << text;
  }
  SECTION("it is a link") {
    fs::rename(index, world.folder.File("elsewhere"));
    fs::create_symlink(world.folder.File("elsewhere"), index);
    expected = "integrity_missing";
  }
  SECTION("its interactions are a link") {
    fs::rename(world.Entry(id, "interactions"), world.folder.File("elsewhere"));
    fs::create_symlink(world.folder.File("elsewhere"), world.Entry(id, "interactions"));
    expected = "integrity_missing";
  }
  SECTION("it is of another chat") {
    const std::string other = "chat2" + id.substr(id.find('.'));
    fs::rename(world.Entry(id), world.Entry(other));
    const auto restored = world.store->RestoreChat(*ChatId::Parse("chat2"), other);
    REQUIRE_FALSE(restored);
    CHECK(restored.error().code == ErrorCode::kCorruption);
    CHECK(IsThere(world.Entry(other, "chat.json")));
    CHECK_FALSE(IsThere(world.root() + "/chat2"));
    CHECK_FALSE(world.store->ListTrash()->front().title);
    return;
  }
  SECTION("the key is gone") {
    world.store.reset();
    world.store = world.Open(std::make_shared<const KeySet>(KeySet::Generate()));
  }
  const auto restored = world.store->RestoreChat(Chat1(), id);
  CHECK(ReasonOf(restored) == expected);
  CHECK(IsThere(world.Entry(id, "chat.json")));
  CHECK_FALSE(IsThere(world.root() + "/chat1"));
  CHECK(world.store->ListTrash()->size() == 1);
}

TEST_CASE("Trash: an unfinished interaction of a restored chat is found at the next start", "[store][trash]") {
  World world;
  world.Fill();
  {
    auto earlier = world.Open(world.keys);
    REQUIRE(earlier->BeginJournal(Chat1(), Id(3), {"a record"}));
  }
  world.store = world.Open(world.keys);
  const std::string id = world.Delete();
  world.store = world.Open(world.keys);
  CHECK(world.store->ListUnfinished()->empty());
  REQUIRE(world.store->RestoreChat(Chat1(), id));
  world.store = world.Open(world.keys);
  const auto unfinished = world.store->ListUnfinished();
  REQUIRE(unfinished);
  REQUIRE(unfinished->size() == 1);
  CHECK(unfinished->front().interaction_id == Id(3));
}

TEST_CASE("Trash: a read-only store restores nothing", "[store][trash]") {
  World world;
  world.Fill();
  const std::string id = world.Delete();
  auto reader = FileInteractionStore::Open({.root = world.root(),
                                            .keys = world.keys,
                                            .file_system = world.disk,
                                            .access = FileInteractionStore::Access::kReadOnly});
  REQUIRE(reader);
  CHECK((*reader)->ListTrash()->size() == 1);
  CHECK((*reader)->RestoreChat(Chat1(), id).error().code == ErrorCode::kForbidden);
}

// The disk fails at each call in turn, followed by a power loss: the chat is whole, in the trash or in its place.
TEST_CASE("Trash: wherever a restore ends, the chat is there", "[store][trash]") {
  const auto keys = std::make_shared<const KeySet>(KeySet::Generate());
  using Kept = MemoryFileSystem::Kept;
  const auto kept = GENERATE(Kept::kNothing, Kept::kNames, Kept::kEverything);
  const bool from_then_on = GENERATE(false, true);
  for (std::size_t at = 1;; ++at) {
    CAPTURE(at, from_then_on);
    MemoryFileSystem disk;
    const auto open = [&](FileSystem& on) {
      auto opened = FileInteractionStore::Open({.root = "/chats", .keys = keys, .file_system = on, .lock = false});
      REQUIRE(opened);
      return *std::move(opened);
    };
    std::string id;
    {
      auto store = open(disk);
      REQUIRE(store->SaveInteraction(Sample(1, {}, "one")));
      REQUIRE(store->SaveInteraction(Sample(2, 1, "two")));
      REQUIRE(store->DeleteChat(Chat1()));
      id = store->ListTrash()->front().id;
    }
    bool told = false, fired = false;
    {
      FaultyFileSystem faulty(disk, {.at = at, .from_then_on = from_then_on});
      auto restoring =
          FileInteractionStore::Open({.root = "/chats", .keys = keys, .file_system = faulty, .lock = false});
      if (restoring) told = (*restoring)->RestoreChat(Chat1(), id).has_value();
      fired = faulty.fired();
    }
    const auto found = disk.AfterPowerLoss(kept);
    auto after = open(*found);
    const auto chat = after->LoadChat(Chat1());
    const auto trash = after->ListTrash();
    REQUIRE(trash);
    if (told) REQUIRE(chat);
    CHECK((chat || !trash->empty()));
    if (!chat) REQUIRE(after->RestoreChat(Chat1(), trash->front().id));
    const auto whole = after->LoadChat(Chat1());
    REQUIRE(whole);
    CHECK(whole->damaged.empty());
    CHECK(whole->interactions.size() == 2);
    if (!fired) break;
  }
}

}  // namespace reprise::trash_test
