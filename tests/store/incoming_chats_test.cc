#include "store/incoming_chats.h"

#include <filesystem>

#include "base/atomic_write.h"
#include "base/posix_file_system.h"
#include "domain/codec.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/sample.h"
#include "store/sealed_file_store.h"
#include "store/verify.h"
#include "support/faulty_file_system.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::incoming_chats_test {
namespace {

const ChatSummary kSummary{.id = Chat1(),
                           .title = "its own title",
                           .created_at = At(1),
                           .updated_at = At(2),
                           .head = Id(2),
                           .head_status = InteractionStatus::kCompleted};

// Two branches; the older one is the head.
IncomingChat Branched() {
  return {
      .summary = kSummary, .interactions = {Id(1), Id(2), Id(4)}, .load = [](InteractionId id) -> Result<Interaction> {
        return Sample(id.number(), id == Id(1) ? std::nullopt : std::optional(1u), "turn " + id.str());
      }};
}

struct World {
  TempDirectory directory;
  PosixFileSystem disk;
  std::string root = directory.File("data");
  std::shared_ptr<const KeySet> keys = std::make_shared<const KeySet>(KeySet::Generate());

  IncomingChats Open(FileSystem& file_system) {
    return IncomingChats::Open({.root = root, .keys = keys, .file_system = file_system}).value();
  }
  std::unique_ptr<FileInteractionStore> Store(FileInteractionStore::Access access) {
    return FileInteractionStore::Open({.root = root, .keys = keys, .file_system = disk, .access = access}).value();
  }
  std::size_t Entries() const {
    const std::filesystem::directory_iterator all(root);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
};

}  // namespace

TEST_CASE("IncomingChats: a chat is added with its branches, title, head and times", "[incoming]") {
  World world;
  REQUIRE(world.Open(world.disk).Add(Branched()));
  CHECK(world.Entries() == 2);  // the chat and the lock
  CHECK(VerifyStore(world.root, world.keys, world.disk)->problems.empty());
  const auto chat = world.Store(FileInteractionStore::Access::kServer)->LoadChat(Chat1());
  REQUIRE(chat);
  REQUIRE(chat->interactions.size() == 3);
  ChatSummary expected = kSummary;
  expected.tokens = 0;
  for (const Interaction& interaction : chat->interactions) AddUsage(expected, interaction);
  CHECK(chat->summary == expected);
  CHECK(chat->interactions[2] == *Branched().load(Id(4)));
}

TEST_CASE("IncomingChats: nothing is ever overwritten", "[incoming]") {
  World world;
  IncomingChats incoming = world.Open(world.disk);
  REQUIRE(incoming.Add(Branched()));
  CHECK(incoming.Has(Chat1()));
  CHECK(incoming.Add(Branched()).error().reason == "chat_exists");
}

TEST_CASE("IncomingChats: a folder that a server uses is refused", "[incoming]") {
  World world;
  const auto server = world.Store(FileInteractionStore::Access::kServer);
  const auto incoming = IncomingChats::Open({.root = world.root, .keys = world.keys, .file_system = world.disk});
  REQUIRE(!incoming);
  CHECK(incoming.error().reason == "store_locked");
}

TEST_CASE("IncomingChats: a chat whose parts cannot be loaded leaves nothing behind", "[incoming]") {
  World world;
  IncomingChat chat = Branched();
  SECTION("one cannot be loaded") {
    chat.load = [](InteractionId id) -> Result<Interaction> {
      if (id == Id(4)) return Fail(ErrorCode::kIo, "gone");
      return Branched().load(id);
    };
  }
  SECTION("one continues what is not there") {
    chat.interactions = {Id(1), Id(4)}, chat.load = [](InteractionId id) -> Result<Interaction> {
      return Sample(id.number(), id == Id(1) ? std::nullopt : std::optional(3u), "x");
    };
  }
  CHECK(!world.Open(world.disk).Add(chat));
  CHECK(world.Entries() == 1);
}

TEST_CASE("IncomingChats: a journal is added, too, and found at the next start", "[incoming]") {
  World world;
  REQUIRE(world.Store(FileInteractionStore::Access::kServer)
              ->SaveInteraction(Sample(*ChatId::Parse("x"), Id(1), std::nullopt, "x")));
  IncomingChat chat = Branched();
  chat.journals[Id(5)] = {R"({"begin":{}})", R"({"frames":"f"})"};
  REQUIRE(world.Open(world.disk).Add(chat));
  const auto store = world.Store(FileInteractionStore::Access::kServer);
  const auto unfinished = store->ListUnfinished();
  REQUIRE(unfinished);
  REQUIRE(unfinished->size() == 1);
  CHECK(unfinished->front().interaction_id == Id(5));
  CHECK(store->ReadJournal(Chat1(), Id(5))->records == chat.journals[Id(5)]);
  CHECK(VerifyStore(world.root, world.keys, world.disk)->problems.empty());
}

TEST_CASE("IncomingChats: whichever call to the disk fails, the chat is there as a whole or not at all", "[incoming]") {
  for (std::size_t number = 1;; ++number) {
    World world;
    world.Open(world.disk);
    FaultyFileSystem faulty(world.disk, {.at = number});
    auto incoming = IncomingChats::Open({.root = world.root, .keys = world.keys, .file_system = faulty});
    const auto added = incoming ? incoming->Add(Branched()) : Result<void>(Fail(incoming.error()));
    INFO("call " << number);
    const auto report = VerifyStore(world.root, world.keys, world.disk);
    REQUIRE(report);
    CHECK(report->problems.empty());
    const bool there = report->checked == 4;
    CHECK((there || report->checked == 0));
    if (added) CHECK(there);
    CHECK(world.Entries() == (there ? 2u : 1u));
    if (!faulty.fired()) break;
    REQUIRE(number < 500);
  }
}

TEST_CASE("IncomingChats: the remains of an interrupted call are removed", "[incoming]") {
  World world;
  world.Open(world.disk);
  std::filesystem::create_directories(IncomingDirectory(world.root) + "/chat1/interactions");
  world.Open(world.disk);
  CHECK(world.Entries() == 1);
}

TEST_CASE("IncomingChats: a chat is added with its files, and with none of them if one is damaged", "[incoming]") {
  World from, to;
  REQUIRE(from.Open(from.disk).Add(Branched()));
  SealedFileStore files({.root = from.root, .keys = from.keys, .file_system = from.disk});
  const StoredFile text = MakeFile("a.txt", "text/plain", "text").value();
  const StoredFile bytes = MakeFile("b", "", std::string("\0\xff", 2)).value();
  for (const StoredFile& file : {text, bytes}) REQUIRE(files.Put(Chat1(), file));
  const auto store = from.Store(FileInteractionStore::Access::kReadOnly);
  {
    auto chat = WholeChat(*store, Chat1()).value();
    REQUIRE(AddFiles(files, chat));
    REQUIRE(to.Open(to.disk).Add(chat));
  }
  CHECK(VerifyStore(to.root, to.keys, to.disk)->problems.empty());
  SealedFileStore copies({.root = to.root, .keys = to.keys, .file_system = to.disk});
  for (const StoredFile& file : {text, bytes}) CHECK(copies.Get(Chat1(), file.info.id).value() == file);

  REQUIRE(ReplaceFile(from.disk, FilePath(from.root, Chat1(), bytes.info.id), "{}"));
  SealedFileStore again({.root = from.root, .keys = from.keys, .file_system = from.disk});
  auto chat = WholeChat(*store, Chat1()).value();
  const auto added = AddFiles(again, chat);
  REQUIRE_FALSE(added);
  CHECK(added.error().code == ErrorCode::kCorruption);
}

TEST_CASE("IncomingChats: a stop at any step leaves nothing behind", "[incoming]") {
  World world;
  IncomingChat chat = Branched();
  const StoredFile file = MakeFile("a.txt", "text/plain", "text").value();
  chat.files = {file.info.id};
  chat.load_file = [&](const FileId&) -> Result<StoredFile> { return file; };
  WorkCounter counter;
  // Each interaction and each file is counted twice.
  const auto load = chat.load;
  for (std::size_t at = 0; at < 6; ++at) {
    WorkCounter stopped;
    std::size_t loaded = 0;
    chat.load = [&](InteractionId id) {
      if (loaded++ == at) stopped.RequestStop();
      return load(id);
    };
    const auto incoming =
        IncomingChats::Open({.root = world.root, .keys = world.keys, .file_system = world.disk, .counter = &stopped});
    REQUIRE(incoming);
    INFO(at);
    CHECK(incoming->Add(chat).error().code == ErrorCode::kCancelled);
    CHECK(!incoming->Has(Chat1()));
    CHECK(world.Entries() == 1);
  }
  chat.load = load;
  const auto incoming =
      IncomingChats::Open({.root = world.root, .keys = world.keys, .file_system = world.disk, .counter = &counter});
  REQUIRE(incoming->Add(chat));
  CHECK(counter.done() == 8);
}

}  // namespace reprise::incoming_chats_test
