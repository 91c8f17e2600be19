#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "base/posix_file_system.h"
#include "domain/codec.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/incoming_chats.h"
#include "store/linked_state.h"
#include "store/memory_interaction_store.h"
#include "store/sample.h"
#include "store/sealed_file_store.h"
#include "store/verify.h"
#include "support/faulty_file_system.h"
#include "support/forwarding_file_system.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::fork_chat_test {
namespace {

const ChatId kCopy = *ChatId::Parse("copy");

struct World {
  TempDirectory directory;
  PosixFileSystem disk;
  std::string root = directory.File("data");
  std::shared_ptr<const KeySet> keys = std::make_shared<const KeySet>(KeySet::Generate());

  std::unique_ptr<FileInteractionStore> Open(FileSystem& file_system) {
    return FileInteractionStore::Open({.root = root, .keys = keys, .file_system = file_system}).value();
  }
  std::vector<Problem> Problems() { return VerifyStore(root, keys, disk)->problems; }
  // The files of the chat by name.
  std::map<std::string, std::string> Files(const ChatId& chat) const {
    std::map<std::string, std::string> files;
    const std::filesystem::recursive_directory_iterator all(ChatDirectory(root, chat));
    for (const auto& entry : all) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      files[entry.path().string()] = std::string(std::istreambuf_iterator<char>(file), {});
    }
    return files;
  }
  std::size_t Leftovers() const {
    const std::filesystem::directory_iterator all(root);
    return static_cast<std::size_t>(std::count_if(
        begin(all), end(all), [](const auto& entry) { return IsIncomingDirectory(entry.path().filename().string()); }));
  }
};

// int_001 - int_002 - int_004, and int_003 beside int_002.
void Fill(InteractionStore& store) {
  REQUIRE(store.SaveInteraction(Sample(1, std::nullopt, "one")));
  REQUIRE(store.SaveInteraction(Sample(2, 1, "two")));
  REQUIRE(store.SaveInteraction(Sample(3, 1, "other two")));
  REQUIRE(store.SaveInteraction(Sample(4, 2, "four")));
}

void CheckCopy(InteractionStore& store) {
  const auto copy = store.LoadChat(kCopy);
  REQUIRE(copy);
  CHECK(copy->damaged.empty());
  REQUIRE(copy->interactions.size() == 3);
  for (const Interaction& interaction : copy->interactions) {
    auto original = store.LoadInteraction(Chat1(), interaction.id).value();
    original.chat_id = kCopy;
    CHECK(interaction == original);
  }
  CHECK(copy->summary.title == "one");
  CHECK(copy->summary.head == Id(4));
  CHECK(copy->summary.forked_from == InteractionRef{Chat1(), Id(4)});
}

}  // namespace

TEST_CASE("ForkChat: the branch is copied and continues independently, in every store", "[fork]") {
  World world;
  MemoryInteractionStore memory;
  const auto files = world.Open(world.disk);
  InteractionStore& store = GENERATE(true, false) ? static_cast<InteractionStore&>(memory) : *files;
  Fill(store);
  const auto fork = store.ForkChat(Chat1(), Id(4), kCopy, std::nullopt);
  REQUIRE(fork);
  CheckCopy(store);
  CHECK(*store.LoadSummary(kCopy) == *fork);
  CHECK(store.ReserveInteraction(kCopy)->number() == 5);
  REQUIRE(store.SaveInteraction(Sample(kCopy, Id(5), Id(4), "five")));
  CHECK(store.LoadSummary(Chat1())->head == Id(4));

  CHECK(store.ForkChat(Chat1(), Id(1), kCopy, std::nullopt).error().reason == "chat_exists");
  CHECK(store.ForkChat(Chat1(), Id(1), Chat1(), std::nullopt).error().reason == "chat_exists");
  CHECK(store.ForkChat(Chat1(), Id(9), *ChatId::Parse("x"), std::nullopt).error().code == ErrorCode::kNotFound);
  CHECK(store.ForkChat(*ChatId::Parse("no"), Id(1), *ChatId::Parse("x"), {}).error().code == ErrorCode::kNotFound);
  CHECK(store.LoadSummary(*ChatId::Parse("x")).error().code == ErrorCode::kNotFound);
  CHECK(store.ForkChat(kCopy, Id(1), *ChatId::Parse("again"), "named")->title == "named");
}

TEST_CASE("ForkChat: the source is known after a restart, and is unchanged", "[fork]") {
  World world;
  {
    const auto store = world.Open(world.disk);
    Fill(*store);
  }
  const auto before = world.Files(Chat1());
  {
    const auto store = world.Open(world.disk);
    REQUIRE(store->ForkChat(Chat1(), Id(4), kCopy, std::nullopt));
  }
  CHECK(world.Files(Chat1()) == before);
  CHECK(world.Problems().empty());
  CheckCopy(*world.Open(world.disk));
}

TEST_CASE("ForkChat: long states are complete in the copy, and linked there", "[fork]") {
  World world;
  auto store = world.Open(world.disk);
  AgentState state;
  for (std::uint32_t number = 1; number <= 6; ++number) {
    Interaction turn = Sample(number, number == 1 ? std::nullopt : std::optional(number - 1), "turn");
    const Message message = {.role = Role::kUser, .content = std::string(kFullStateBytes / 2, 'a' + char(number))};
    state.messages.push_back(message);
    turn.final_agent_state = state;
    REQUIRE(store->SaveInteraction(turn));
  }
  REQUIRE(store->ForkChat(Chat1(), Id(5), kCopy, std::nullopt));
  for (std::uint32_t number = 1; number <= 5; ++number) {
    CHECK(store->LoadInteraction(kCopy, Id(number))->final_agent_state ==
          store->LoadInteraction(Chat1(), Id(number))->final_agent_state);
  }
  std::size_t original = 0, copy = 0;
  for (const auto& [name, text] : world.Files(Chat1())) original += text.size();
  for (const auto& [name, text] : world.Files(kCopy)) copy += text.size();
  CHECK(copy < original);
  store.reset();  // which writes chat.json
  CHECK(world.Problems().empty());
}

namespace {

// A long chat on two branches that grow by turns of 3 KB each, with everything that a state has beside its messages.
std::map<InteractionId, Interaction> LongTurns(std::uint32_t count) {
  constexpr std::uint32_t kFork = 10;
  std::map<InteractionId, Interaction> turns;
  for (std::uint32_t number = 1; number <= count; ++number) {
    const auto parent = number == 1 ? std::nullopt : std::optional(number > kFork ? number - 2 : number - 1);
    const std::string text = std::to_string(number) + std::string(1500, 'q');
    Interaction turn = Sample(number, parent, text);
    Messages own = turn.final_agent_state->messages;
    AgentState& state = *turn.final_agent_state;
    if (parent) {
      state = *turns.at(Id(*parent)).final_agent_state;
      state.messages.Append(own, 0, own.size());
    }
    if (number % 30 == 0) state.compaction = Compaction{.first = 1, .end = number, .summary = text};
    if (number % 7 == 0) state.memory.push_back({"page", "page-" + text.substr(0, 9)});
    turns.emplace(turn.id, std::move(turn));
  }
  return turns;
}

IncomingChat Renamed(IncomingChat chat, const ChatId& name) {
  chat.summary.id = name;
  chat.load = [load = chat.load, name](InteractionId id) {
    return load(id).map([&](Interaction interaction) {
      interaction.chat_id = name;
      return interaction;
    });
  };
  return chat;
}

}  // namespace

TEST_CASE("Long chats: every state stays the same when they are copied, imported and read as additions",
          "[fork][long]") {
  World world;
  if (GENERATE(true, false)) world.keys = nullptr;
  const auto turns = LongTurns(160);
  {
    const auto store = world.Open(world.disk);
    for (const auto& [id, turn] : turns) REQUIRE(store->SaveInteraction(turn));
  }
  auto store = world.Open(world.disk);
  REQUIRE(store->ForkChat(Chat1(), Id(159), kCopy, std::nullopt));
  auto whole = WholeChat(*store, Chat1());
  REQUIRE(whole);
  const ChatId brought_in = *ChatId::Parse("brought-in");
  REQUIRE(store->ImportChat(Renamed(*whole, brought_in)));
  store.reset();
  store = world.Open(world.disk);
  std::size_t copied = 0;
  for (auto [id, turn] : turns) {
    CAPTURE(id.str());
    const auto added = store->LoadAdded(Chat1(), id);
    REQUIRE(added);
    CHECK(added->interaction.final_agent_state->messages.size() == 2);
    CHECK(added->kept_messages + 2 == turn.final_agent_state->messages.size());
    turn.chat_id = brought_in;
    CHECK(store->LoadInteraction(brought_in, id) == turn);
    turn.chat_id = kCopy;
    const auto copy = store->LoadInteraction(kCopy, id);
    if (copy) CHECK(*copy == turn);
    copied += copy.has_value();
  }
  CHECK(copied == 5 + 159 / 2);
  store.reset();
  CHECK(world.Problems().empty());
}

TEST_CASE("Long chats: copying, importing and reading them costs a few reads of each of their files", "[fork][long]") {
  const auto reads_of = [](std::uint32_t count) {
    World world;
    {
      const auto store = world.Open(world.disk);
      for (const auto& [id, turn] : LongTurns(count)) REQUIRE(store->SaveInteraction(turn));
    }
    CountedReads disk(world.disk);
    const auto store = world.Open(disk);
    REQUIRE(store->ForkChat(Chat1(), Id(count), kCopy, std::nullopt));
    const auto whole = WholeChat(*store, kCopy);
    REQUIRE(whole);
    REQUIRE(store->ImportChat(Renamed(*whole, *ChatId::Parse("brought-in"))));
    for (const InteractionId id : whole->interactions) REQUIRE(store->LoadAdded(kCopy, id));
    return disk.reads;
  };
  const int few = reads_of(100), many = reads_of(400);
  CAPTURE(few, many);
  CHECK(many < 5 * few);
}

TEST_CASE("ForkChat: a damaged branch is not copied", "[fork]") {
  World world;
  {
    const auto store = world.Open(world.disk);
    Fill(*store);
  }
  std::string name;
  SECTION("a flipped byte") {
    name = InteractionFile(world.root, Chat1(), Id(1));
    std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-40, std::ios::end).put('!');
  }
  SECTION("a file that is gone") {
    name = InteractionFile(world.root, Chat1(), Id(2));
    std::filesystem::remove(name);
  }
  const auto store = world.Open(world.disk);
  const auto fork = store->ForkChat(Chat1(), Id(4), kCopy, std::nullopt);
  REQUIRE_FALSE(fork);
  CHECK(fork.error().code == ErrorCode::kCorruption);
  CHECK(store->LoadSummary(kCopy).error().code == ErrorCode::kNotFound);
  CHECK(world.Leftovers() == 0);
}

TEST_CASE("ForkChat: whichever call to the disk fails, the copy is there as a whole or not at all", "[fork]") {
  for (std::size_t number = 1;; ++number) {
    World world;
    {
      const auto store = world.Open(world.disk);
      Fill(*store);
    }
    const auto before = world.Files(Chat1());
    bool forked = false, fired = false;
    {
      FaultyFileSystem faulty(world.disk, {.at = number});
      auto store = FileInteractionStore::Open({.root = world.root, .keys = world.keys, .file_system = faulty});
      forked = store && (*store)->ForkChat(Chat1(), Id(4), kCopy, std::nullopt);
      fired = faulty.fired();
    }
    INFO("call " << number);
    CHECK(world.Files(Chat1()) == before);
    CHECK(world.Leftovers() == 0);
    CHECK(world.Problems().empty());
    const auto store = world.Open(world.disk);
    const bool there = store->LoadSummary(kCopy).has_value();
    if (there) CheckCopy(*store);
    if (forked) CHECK(there);
    if (!fired) break;
    REQUIRE(number < 500);
  }
}

TEST_CASE("ForkChat: whichever call to the disk fails, the copy is whole with its files, or not there",
          "[fork][fault]") {
  const bool from_then_on = GENERATE(false, true);
  const ErrorCode code = from_then_on ? ErrorCode::kStorageFull : ErrorCode::kIo;
  std::size_t failures = 0;
  for (std::size_t n = 1;; ++n) {
    CAPTURE(n, from_then_on);
    World world;
    SealedFileStore files({.root = world.root, .keys = world.keys, .file_system = world.disk});
    Fill(*world.Open(world.disk));
    for (const char* text : {"one", "two", "three"}) {
      REQUIRE(files.Put(Chat1(), *MakeFile(text, "text/plain", text)));
    }
    FaultyFileSystem opened(world.disk);
    static_cast<void>(world.Open(opened));
    FaultyFileSystem faulty(world.disk, {.at = opened.calls() + n, .code = code, .from_then_on = from_then_on});
    const auto forked = world.Open(faulty)->ForkChat(Chat1(), Id(4), kCopy, std::nullopt);
    const auto store = world.Open(world.disk);
    CHECK(world.Leftovers() == 0);
    CHECK(world.Problems().empty());
    if (!forked) {
      ++failures;
      CHECK(forked.error().code == code);
      // If the last sync failed on a disk that fails for good, the copy cannot be taken back; it is whole then.
      const auto there = store->LoadSummary(kCopy);
      CHECK((from_then_on || !there));
      if (!there) {
        CHECK(there.error().code == ErrorCode::kNotFound);
        CHECK(store->ForkChat(Chat1(), Id(4), kCopy, std::nullopt));
      }
    }
    CheckCopy(*store);
    CHECK(files.List(kCopy)->files.size() == 3);
    if (!faulty.fired()) break;
  }
  CHECK(failures > 20);
}

TEST_CASE("ForkChat: the remains of a killed process are removed at the next start, and nothing else", "[fork]") {
  World world;
  {
    const auto store = world.Open(world.disk);
    Fill(*store);
    REQUIRE(store->ForkChat(Chat1(), Id(4), kCopy, std::nullopt));
  }
  namespace fs = std::filesystem;
  const auto plant = [&](const std::string& name) {
    fs::create_directory(world.root + "/" + name);
    fs::copy(ChatDirectory(world.root, kCopy), ChatDirectory(world.root + "/" + name, kCopy),
             fs::copy_options::recursive);
  };
  const std::string ours = ".incoming.0123456789abcdef", not_ours = ".incoming.0123456789abcde0";
  plant(ours);
  plant(not_ours);
  std::ofstream(world.root + "/" + not_ours + "/copy/thesis.txt") << "mine";
  plant(".incoming.mine");
  fs::remove_all(ChatDirectory(world.root, kCopy));
  const auto store = world.Open(world.disk);
  CHECK_FALSE(fs::exists(world.root + "/" + ours));
  CHECK(fs::exists(world.root + "/" + not_ours + "/copy/thesis.txt"));
  CHECK(fs::exists(world.root + "/.incoming.mine/copy/chat.json"));
  CHECK(store->ForkChat(Chat1(), Id(4), kCopy, std::nullopt));
}

// --- ImportChat ------------------------------------------------------------------------------------------------------

namespace {

// int_001 - int_002 and int_004, under a name that no chat of the store has.
IncomingChat Coming() {
  return {.summary = {.id = kCopy,
                      .title = "its own title",
                      .created_at = At(1),
                      .updated_at = At(2),
                      .head = Id(2),
                      .head_status = InteractionStatus::kCompleted},
          .interactions = {Id(1), Id(2), Id(4)},
          .load = [](InteractionId id) -> Result<Interaction> {
            return Sample(kCopy, id, id == Id(1) ? std::nullopt : std::optional(Id(1)), "turn " + id.str());
          }};
}

}  // namespace

TEST_CASE("ImportChat: a whole chat is imported and can be continued, in every store", "[import]") {
  World world;
  MemoryInteractionStore memory;
  const auto files = world.Open(world.disk);
  InteractionStore& store = GENERATE(true, false) ? static_cast<InteractionStore&>(memory) : *files;
  Fill(store);
  const IncomingChat coming = Coming();
  const auto imported = store.ImportChat(coming);
  REQUIRE(imported);
  ChatSummary expected = coming.summary;
  expected.tokens = 0;
  for (const InteractionId id : coming.interactions) AddUsage(expected, *coming.load(id));
  CHECK(*imported == expected);
  const auto chat = store.LoadChat(kCopy);
  REQUIRE(chat);
  CHECK(chat->summary == expected);
  REQUIRE(chat->interactions.size() == 3);
  for (const Interaction& interaction : chat->interactions) CHECK(interaction == *coming.load(interaction.id));
  CHECK(store.ReserveInteraction(kCopy)->number() == 5);
  REQUIRE(store.SaveInteraction(Sample(kCopy, Id(5), Id(2), "five")));
  CHECK(store.ImportChat(coming).error().reason == "chat_exists");
}

TEST_CASE("ImportChat: the name of a damaged chat is taken, too", "[import]") {
  World world;
  Fill(*world.Open(world.disk));
  std::ofstream(ChatFile(world.root, Chat1())) << "{}";
  std::filesystem::remove_all(InteractionsDirectory(world.root, Chat1()));
  IncomingChat coming = Coming();
  coming.summary.id = Chat1();
  const auto before = world.Files(Chat1());
  CHECK(world.Open(world.disk)->ImportChat(coming).error().reason == "chat_exists");
  CHECK(world.Files(Chat1()) == before);
}

TEST_CASE("ImportChat: whichever call to the disk fails, the chat is whole with its files, or not there",
          "[import][fault]") {
  const StoredFile file = MakeFile("a.txt", "text/plain", "text").value();
  IncomingChat coming = Coming();
  coming.files = {file.info.id};
  coming.load_file = [&](const FileId&) -> Result<StoredFile> { return file; };
  for (std::size_t number = 1;; ++number) {
    World world;
    Fill(*world.Open(world.disk));
    FaultyFileSystem faulty(world.disk, {.at = number});
    bool imported = false;
    {
      const auto store = FileInteractionStore::Open({.root = world.root, .keys = world.keys, .file_system = faulty});
      imported = store && (*store)->ImportChat(coming);
    }
    INFO("call " << number);
    CHECK(world.Problems().empty());
    const auto store = world.Open(world.disk);
    const bool there = store->LoadSummary(kCopy).has_value();
    if (imported) CHECK(there);
    if (there) CHECK(store->LoadChat(kCopy)->interactions.size() == 3);
    CHECK(store->ImportChat(coming).has_value() == !there);
    CHECK(world.Leftovers() == 0);
    if (!faulty.fired()) break;
    REQUIRE(number < 500);
  }
}

}  // namespace reprise::fork_chat_test
