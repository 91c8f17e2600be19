#include "store/running_list.h"

#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/sample.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::running_list_test {
namespace {

const std::string kRoot = "/data";

// The files of a process that was killed while an interaction ran in one chat, after one in another chat had ended.
struct World {
  MemoryFileSystem disk;
  ChatId busy = *ChatId::Parse("b"), idle = *ChatId::Parse("idle");
  std::string list;

  World() {
    auto store = Open();
    Begin(*store, busy);
    Begin(*store, idle);
    REQUIRE(store->SaveInteraction(Sample(idle, Id(1), std::nullopt, "done")));
    list = disk.ReadFile(RunningFile(kRoot), 1 << 20).value();
  }
  std::unique_ptr<FileInteractionStore> Open() {
    return *FileInteractionStore::Open({.root = kRoot, .keys = nullptr, .file_system = disk, .lock = false});
  }
  static void Begin(FileInteractionStore& store, const ChatId& chat) {
    const auto id = store.ReserveInteraction(chat);
    REQUIRE(id);
    auto journal = store.BeginJournal(chat, *id, {});
    REQUIRE(journal);
    REQUIRE((*journal)->Append("record", Journal::Reach::kPowerLoss));
  }
  bool IsFound() {
    const auto unfinished = Open()->ListUnfinished();
    return unfinished && *unfinished == std::vector<InteractionRef>{{busy, Id(1)}};
  }
};

}  // namespace

TEST_CASE("RunningList: one flipped bit hides nothing", "[store][journal]") {
  World world;
  REQUIRE(world.list == "+b int_001\n+idle int_001\n-idle int_001\n");
  REQUIRE(world.IsFound());
  for (const std::string& list : {world.list, std::string("+b int_001\n")}) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string flipped = list;
        flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
        world.disk.Overwrite(RunningFile(kRoot), flipped);
        CAPTURE(flipped);
        CHECK(world.IsFound());
      }
    }
  }
}

TEST_CASE("RunningList: a list that is cut off or empty hides nothing", "[store][journal]") {
  World world;
  const std::string list = "+b int_001\n";
  for (std::size_t size = 0; size < list.size(); ++size) {
    world.disk.Overwrite(RunningFile(kRoot), list.substr(0, size));
    CAPTURE(size);
    CHECK(world.IsFound());
  }
}

TEST_CASE("RunningList: interactions that were found without it are in the next one", "[store][journal]") {
  World world;
  world.disk.Overwrite(RunningFile(kRoot), "+c int_001\n");
  {
    auto store = world.Open();
    REQUIRE(store->ListUnfinished());
    World::Begin(*store, world.idle);
  }
  const auto unfinished = world.Open()->ListUnfinished();
  REQUIRE(unfinished);
  CHECK(*unfinished == std::vector<InteractionRef>{{world.busy, Id(1)}, {world.idle, Id(2)}});
}

TEST_CASE("RunningList: a bit that turns a line into that of another running interaction hides nothing",
          "[store][journal]") {
  World world;
  auto store = world.Open();
  World::Begin(*store, *ChatId::Parse("c"));
  store.reset();
  const std::vector<InteractionRef> both{{world.busy, Id(1)}, {*ChatId::Parse("c"), Id(1)}};
  for (const char* list : {"+c int_001\n+c int_001\n", "+b int_001\n+b int_001\n",
                           "+b int_001\n+c int_001\n+idle int_001\n-idle int_002\n"}) {
    world.disk.Overwrite(RunningFile(kRoot), list);
    CAPTURE(list);
    CHECK(world.Open()->ListUnfinished() == both);
  }
}

TEST_CASE("RunningList: an interaction that the list lacks is taken up after its chat was opened", "[store][journal]") {
  const bool before_the_list_is_read = GENERATE(false, true);
  CAPTURE(before_the_list_is_read);
  World world;
  world.disk.Overwrite(RunningFile(kRoot), "+idle int_001\n-idle int_001\n");  // whole, but without the line
  const std::vector<InteractionRef> lost{{world.busy, Id(1)}};
  auto store = world.Open();
  if (before_the_list_is_read) {
    REQUIRE(store->LoadSummary(world.busy));
    CHECK(store->ListUnfinished() == lost);
    return;
  }
  REQUIRE(store->ListUnfinished() == std::vector<InteractionRef>());
  REQUIRE(store->LoadSummary(world.busy));
  store.reset();
  CHECK(world.Open()->ListUnfinished() == lost);
}

}  // namespace reprise::running_list_test
