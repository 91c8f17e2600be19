#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "base/posix_file_system.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/incoming_chats.h"
#include "store/sample.h"
#include "store/sealed_file_store.h"
#include "store/unsaved.h"
#include "store/verify.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::links_test {
namespace {

namespace fs = std::filesystem;

// A data folder with a chat, and a user's own folder beside it.
struct World {
  TempDirectory directory;
  PosixFileSystem disk;
  std::string root = directory.File("data"), own = directory.File("own");
  std::map<std::string, std::string> before;

  World() {
    fs::create_directories(own + "/interactions");
    fs::create_directories(own + "/files");
    for (const char* name : {"thesis.txt", "0", "1", "chat.json", ".running", "interactions/int_001.json",
                             "interactions/.int_002.json.0123456789abcdef.tmp", "files/file.json"}) {
      Write(own + "/" + name, std::string("mine: ") + name);
    }
    Write(own + "/empty", "");
    before = Own();
    auto store = Open();
    for (std::uint32_t number : {1u, 2u}) {
      REQUIRE(store->SaveInteraction(
          Sample(number, number > 1 ? std::optional(number - 1) : std::nullopt, "turn " + std::to_string(number))));
    }
  }
  static void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  std::map<std::string, std::string> Own() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(own)) {
      std::ifstream file(entry.path());
      files[entry.path()] = entry.is_directory() ? "a folder" : std::string(std::istreambuf_iterator<char>(file), {});
    }
    return files;
  }
  std::unique_ptr<FileInteractionStore> Open() {
    return *FileInteractionStore::Open({.root = root, .keys = nullptr, .file_system = disk});
  }
  std::string Path(const std::string& name) const { return root + "/" + name; }
  // Makes `name` in the data folder a link to the user's own folder or file.
  void Plant(const std::string& name, const std::string& target) {
    fs::remove_all(Path(name));
    fs::create_symlink(target, Path(name));
  }
  std::vector<Problem> Problems() { return VerifyStore(root, nullptr, disk)->problems; }
};

// The calls of a server's life; whether they succeed does not matter.
void LiveIn(World& world) {
  for (int start = 0; start < 2; ++start) {
    auto opened = FileInteractionStore::Open({.root = world.root, .keys = nullptr, .file_system = world.disk});
    if (!opened) return;
    FileInteractionStore& store = **opened;
    static_cast<void>(store.ListUnfinished());
    static_cast<void>(store.ListChats());
    static_cast<void>(store.queues().ListQueues());
    for (const char* name : {"chat1", "new", "planted"}) {
      const ChatId chat = *ChatId::Parse(name);
      if (const auto id = store.ReserveInteraction(chat)) {
        auto journal = store.BeginJournal(chat, *id, {});
        if (journal) static_cast<void>((*journal)->Append("record", Journal::Reach::kPowerLoss));
        static_cast<void>(store.SaveInteraction(Sample(chat, *id, std::nullopt, "more")));
      }
      static_cast<void>(store.queues().AddQueued(chat, {.id = "queued_0", .user_message = "later"}));
      static_cast<void>(store.queues().RemoveQueued(chat, "queued_0"));
      static_cast<void>(store.ChangeChat(chat, {.title = "renamed"}));
      static_cast<void>(store.LoadChat(chat));
      SealedFileStore files({.root = world.root, .keys = nullptr, .file_system = world.disk});
      static_cast<void>(files.Put(chat, *MakeFile("notes.txt", "text/plain", "text")));
      static_cast<void>(files.List(chat));
      static_cast<void>(store.ForkChat(chat, Id(1), *ChatId::Parse(std::string("fork-") + name), std::nullopt));
      static_cast<void>(store.DeleteChat(chat));
    }
  }
}

}  // namespace

TEST_CASE("Data folder: nothing is written, moved or removed through a symbolic link in it", "[store][links]") {
  const std::vector<std::string> places = {".trash",
                                           ".running",
                                           ".lock",
                                           ".grants",
                                           ".incoming.0123456789abcdef",
                                           ".incoming.x",
                                           "planted",
                                           "chat1",
                                           "chat1/interactions",
                                           "chat1/files",
                                           "chat1/chat.json",
                                           "chat1/queue.json",
                                           "chat1/interactions/int_002.json",
                                           "chat1/interactions/int_003.journal"};
  for (const std::string& place : places) {
    for (const char* target : {"", "/thesis.txt", "/empty", "/interactions", "/nothing"}) {
      World world;
      INFO(place + " -> own" + target);
      world.Plant(place, world.own + target);
      LiveIn(world);
      CHECK(world.Own() == world.before);
    }
  }
}

TEST_CASE("Data folder: a symbolic link in a chat's place is not read, and verify names it", "[store][links][verify]") {
  for (const std::string place : {"planted", "chat1", "chat1/interactions", "chat1/chat.json",
                                  "chat1/interactions/int_002.json", "chat1/interactions/int_001.json", ".trash"}) {
    INFO(place);
    World world;
    const std::string away = world.directory.File("away");
    if (fs::exists(world.Path(place))) {
      fs::rename(world.Path(place), away);
    } else {
      fs::create_directory(away);
    }
    fs::create_symlink(away, world.Path(place));
    const auto problems = world.Problems();
    REQUIRE(!problems.empty());
    CHECK(std::any_of(problems.begin(), problems.end(), [&](const Problem& problem) { return problem.file == place; }));
    for (const Problem& problem : problems) CHECK(problem.kind == "missing");
    if (!place.starts_with("chat1")) continue;
    auto store = world.Open();
    const auto loaded = store->LoadInteraction(Chat1(), Id(place.ends_with("int_001.json") ? 1 : 2));
    const auto reserved = store->ReserveInteraction(Chat1());
    const bool is_file = place.find("/int_") != std::string::npos;
    CHECK(reserved.has_value() == is_file);
    if (!reserved) CHECK(reserved.error().code == ErrorCode::kCorruption);
    if (place == "chat1/chat.json") continue;
    REQUIRE(!loaded);
    CHECK(loaded.error().reason == "integrity_missing");
  }
}

TEST_CASE("Data folder: it may be a symbolic link itself, or lie behind one", "[store][links]") {
  World world;
  const std::string link = world.directory.File("link");
  fs::create_symlink(world.directory.path(), link);
  fs::create_symlink(world.root, link + "/folder");
  for (const std::string& root : {link + "/data", link + "/folder", link + "/folder/"}) {
    INFO(root);
    auto store = *FileInteractionStore::Open({.root = root, .keys = nullptr, .file_system = world.disk});
    const auto id = store->ReserveInteraction(Chat1());
    REQUIRE(id);
    REQUIRE(store->BeginJournal(Chat1(), *id, {}));
    CHECK(store->SaveInteraction(Sample(id->number(), id->number() - 1, "turn " + id->str())));
    CHECK(store->LoadInteraction(Chat1(), *id));
    store.reset();
    CHECK(VerifyStore(root, nullptr, world.disk)->problems.empty());
  }
}

TEST_CASE("Data folder: only files that were made here are tidied away", "[store][links]") {
  World world;
  fs::create_directories(world.Path(".spare"));  // an earlier version kept empty files there
  for (const char* name : {"0", "notes"}) world.Write(world.Path(".spare/") + name, "");
  world.Write(world.Path("chat1/.notes.tmp"), "mine");
  world.Write(world.Path("chat1/interactions/.int_002.json.0123456789abcdef.tmp"), "left behind");
  fs::create_directories(world.Path(".incoming.mine"));
  LiveIn(world);
  for (const char* name : {".spare/0", ".spare/notes", ".incoming.mine"}) {
    INFO(name);
    CHECK(fs::exists(world.Path(name)));
  }
  const auto trashed = fs::directory_iterator(world.Path(".trash"));
  std::size_t kept = 0;
  for (const auto& chat : trashed) {
    kept += fs::exists(chat.path() / ".notes.tmp");
    CHECK(!fs::exists(chat.path() / "interactions/.int_002.json.0123456789abcdef.tmp"));
  }
  CHECK(kept == 1);
}

TEST_CASE("Data folder: a lock file that is also another file keeps its content", "[store][links]") {
  World world;
  fs::remove(world.Path(".lock"));
  fs::create_hard_link(world.own + "/thesis.txt", world.Path(".lock"));
  LiveIn(world);
  CHECK(world.Own() == world.before);
  CHECK((fs::status(world.own + "/thesis.txt").permissions() & fs::perms::others_read) != fs::perms::none);
}

TEST_CASE("Unsaved: nothing is made behind a link that another user has put there", "[store][links]") {
  if (::geteuid() != 0) return;  // giving a link to another user takes root
  World world;
  const std::string link = world.directory.File("link");
  fs::create_symlink(world.own, link);
  REQUIRE(::lchown(link.c_str(), 12345, 12345) == 0);
  auto store = OpenUnsavedStore(link + "/unsaved/tag", nullptr, world.disk);
  const auto saved = store->SaveInteraction(Sample(1, std::nullopt, "turn"));
  REQUIRE(!saved);
  CHECK(saved.error().reason == "folder_not_private");
  CHECK(world.Own() == world.before);
}

}  // namespace reprise::links_test
