#include <map>

#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/sample.h"
#include "store/verify.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::rollback_test {
namespace {

const std::string kRoot = "/data";
const ChatId kCopy = *ChatId::Parse("copy");
constexpr std::uint32_t kTurns = 4;

// int_001 - int_002 - int_004, and int_003 beside int_002: in two lives of the chat, with different texts.
struct World {
  MemoryFileSystem disk;
  std::shared_ptr<const KeySet> keys = std::make_shared<const KeySet>(KeySet::Generate());
  std::map<std::uint32_t, std::string> first;  // the files of the first life

  World() {
    Live("first life");
    for (std::uint32_t number = 1; number <= kTurns; ++number) {
      first[number] = disk.ReadFile(InteractionFile(kRoot, Chat1(), Id(number)), 1 << 20).value();
    }
    REQUIRE(Open()->DeleteChat(Chat1()));
    Live("second life");
  }
  void Live(const std::string& text) {
    auto store = Open();
    for (std::uint32_t number = 1; number <= kTurns; ++number) {
      std::optional<std::uint32_t> parent;
      if (number > 1) parent = number == 4 ? 2 : 1;
      Interaction turn = Sample(number, parent, text + " " + std::to_string(number));
      // As long as the states of a long chat, or short.
      if (number != 3) turn.final_agent_state->messages.Change(0).content->append(100'000, 'x');
      REQUIRE(store->SaveInteraction(turn));
    }
  }
  std::unique_ptr<FileInteractionStore> Open() {
    return *FileInteractionStore::Open({.root = kRoot, .keys = keys, .file_system = disk, .lock = false});
  }
  std::unique_ptr<FileInteractionStore> OpenForReading() {
    return *FileInteractionStore::Open(
        {.root = kRoot, .keys = keys, .file_system = disk, .access = FileInteractionStore::Access::kReadOnly});
  }
  void PutBack(std::uint32_t number) { disk.Overwrite(InteractionFile(kRoot, Chat1(), Id(number)), first.at(number)); }
};

template <typename T>
void CheckRolledBack(const Result<T>& result, std::uint32_t number) {
  REQUIRE(!result);
  CHECK(result.error().reason == "integrity_rollback");
  CHECK(result.error().detail == RecordName(Chat1(), Id(number)));
}

}  // namespace

TEST_CASE("Rollback: an older version of any interaction is an error that names it, in every call", "[store]") {
  const std::uint32_t number = GENERATE(1u, 2u, 3u, 4u);
  const bool while_open = GENERATE(false, true);
  CAPTURE(number, while_open);
  World world;
  auto store = world.Open();
  if (while_open) REQUIRE(store->LoadSummary(Chat1()));
  world.PutBack(number);
  if (!while_open) store = world.Open();

  CheckRolledBack(store->LoadInteraction(Chat1(), Id(number)), number);
  CheckRolledBack(store->LoadFinalState(Chat1(), Id(number)), number);
  CheckRolledBack(store->MoveHead(Chat1(), Id(number)), number);
  CheckRolledBack(store->ForkChat(Chat1(), Id(number), kCopy, std::nullopt), number);
  const auto report = VerifyStore(kRoot, world.keys, world.disk);
  REQUIRE(report);
  CHECK(report->problems.size() == 1);
  for (const Problem& problem : report->problems) {
    CHECK(problem.file == RecordName(Chat1(), Id(number)));
    CHECK(problem.kind == "rollback");
  }
  // The state before it is sound, unless its own link to that is not.
  const auto before = store->LoadPreviousState(Chat1(), Id(number));
  if (number == 1) CHECK(before);
  if (number != 1) CheckRolledBack(before, number);
  // The others are as they were.
  const auto parent_of = [](std::uint32_t child) { return child == 4 ? 2u : 1u; };
  for (std::uint32_t other = 1; other <= kTurns; ++other) {
    if (other == number) continue;
    CAPTURE(other);
    CHECK(store->LoadInteraction(Chat1(), Id(other)));
    const auto previous = store->LoadPreviousState(Chat1(), Id(other));
    if (other > 1 && parent_of(other) == number) CheckRolledBack(previous, number);
  }
}

TEST_CASE("Rollback: a read-only store notices it in the newest interaction", "[store]") {
  World world;
  world.PutBack(4);
  CheckRolledBack(world.OpenForReading()->LoadInteraction(Chat1(), Id(4)), 4);
}

TEST_CASE("Rollback: a chat that continues is not taken for one that was put back", "[store]") {
  World world;
  auto store = world.Open();
  REQUIRE(store->LoadInteraction(Chat1(), Id(1)));
  for (std::uint32_t number = 5; number < 9; ++number) {
    REQUIRE(store->SaveInteraction(Sample(number, number - 1, "more")));
    for (std::uint32_t each = 1; each <= number; ++each) CHECK(store->LoadInteraction(Chat1(), Id(each)));
  }
  REQUIRE(store->DeleteChat(Chat1()));
  for (std::uint32_t number = 1; number < 4; ++number) {
    REQUIRE(
        store->SaveInteraction(Sample(number, number == 1 ? std::nullopt : std::optional(number - 1), "a third life")));
    for (std::uint32_t each = 1; each <= number; ++each) CHECK(store->LoadInteraction(Chat1(), Id(each)));
  }
}

}  // namespace reprise::rollback_test
