// Acknowledged calls survive: each call to the disk fails once, each time followed by a power loss, and the real store
// reads the rest.
#include <functional>
#include <map>

#include "store/file_interaction_store.h"
#include "store/sample.h"
#include "store/verify.h"
#include "support/faulty_file_system.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::power_loss_test {
namespace {

using Kept = MemoryFileSystem::Kept;

const std::string kRoot = "/home/data/chats";

std::shared_ptr<const KeySet> Keys() {
  static const auto keys = std::make_shared<const KeySet>(KeySet::Generate());
  return keys;
}

Result<std::unique_ptr<FileInteractionStore>> OpenStore(FileSystem& disk) {
  // The delay is longer than the test: chat.json is written at known points only, so that each run makes the same
  // calls.
  return FileInteractionStore::Open(
      {.root = kRoot, .keys = Keys(), .file_system = disk, .lock = false, .index_delay = std::chrono::hours(1)});
}

// The promises of the store so far.
struct Promises {
  bool created = false;
  std::map<std::uint32_t, Interaction> saved;
  std::vector<std::uint32_t> attempted;
  std::optional<InteractionId> head;  // as of the last acknowledged call that set it
  std::optional<std::string> title;
  bool head_unsure = false;  // a later call that would have changed it failed
  bool title_unsure = false;
  bool deleted_other = false, other_unsure = false;
};

void Save(FileInteractionStore& store, const Interaction& interaction, Promises& promises) {
  promises.attempted.push_back(interaction.id.number());
  if (interaction.parent_id && !promises.saved.contains(interaction.parent_id->number())) return;
  if (store.SaveInteraction(interaction)) {
    promises.saved.emplace(interaction.id.number(), interaction);
    promises.head = interaction.id;
    promises.head_unsure = false;
  } else {
    promises.head_unsure = true;
  }
}

void MoveHead(FileInteractionStore& store, std::uint32_t head, Promises& promises) {
  if (!promises.saved.contains(head)) return;
  if (store.MoveHead(Chat1(), Id(head))) {
    promises.head = Id(head);
    promises.head_unsure = false;
  } else {
    promises.head_unsure = true;
  }
}

// Two lives of a server: create, save, edit, switch back, rename, delete another chat.
void Script(FileSystem& disk, Promises& promises) {
  if (const auto store = OpenStore(disk)) {
    promises.created = (*store)->CreateChat(Chat1(), {.title = "a title"}).has_value();
    if (promises.created) promises.title = "a title";
    const ChatId other = *ChatId::Parse("other");
    if ((*store)->SaveInteraction(Sample(other, Id(1), {}, "elsewhere"))) {
      promises.deleted_other = (*store)->DeleteChat(other).has_value();
    }
    static_cast<void>((*store)->ReserveInteraction(Chat1()));
    Save(**store, Sample(1, {}, "one"), promises);
    Save(**store, Sample(2, 1, "two"), promises);
    Save(**store, Sample(3, 1, "two, edited"), promises);
    MoveHead(**store, 2, promises);
  }
  if (const auto store = OpenStore(disk)) {
    Save(**store, Sample(4, 2, "after the restart"), promises);
    if ((*store)->ChangeChat(Chat1(), {.title = "renamed"})) {
      promises.title = "renamed";
    } else {
      promises.title_unsure = true;
    }
    Save(**store, Sample(5, 4, "the last"), promises);
  }
}

// The first promise that the disk does not keep; empty if it keeps all of them.
std::string Broken(FileSystem& disk, const Promises& promises) {
  const auto opened = OpenStore(disk);
  if (!opened) return promises.created || !promises.saved.empty() ? "the store does not open" : "";
  FileInteractionStore& store = **opened;
  const auto chat = store.LoadChat(Chat1());
  if (!chat) return promises.created || !promises.saved.empty() ? "the chat is gone: " + chat.error().message : "";
  if (!chat->damaged.empty()) return "damaged: " + chat->damaged.front().error.message;
  for (const auto& [number, interaction] : promises.saved) {
    if (store.LoadInteraction(Chat1(), Id(number)) != interaction) return "lost " + Id(number).str();
  }
  for (const Interaction& interaction : chat->interactions) {
    // An interaction that was not acknowledged may be there, but only whole.
    const auto acknowledged = promises.saved.find(interaction.id.number());
    if (acknowledged != promises.saved.end() && interaction != acknowledged->second) return "changed";
    if (interaction.final_agent_state->messages.size() != 2) return "half an interaction";
  }
  if (promises.head && !promises.head_unsure && chat->summary.head != promises.head) return "the head is elsewhere";
  if (promises.title && !promises.title_unsure && chat->summary.title != *promises.title) return "the title is lost";
  if (promises.deleted_other && store.LoadSummary(*ChatId::Parse("other"))) return "a deleted chat is back";
  const auto next = store.ReserveInteraction(Chat1());
  if (!next || !store.SaveInteraction(Sample(Chat1(), *next, {}, "goes on"))) return "the chat does not go on";
  return "";
}

std::string BrokenAfter(const MemoryFileSystem& disk, const Promises& promises) {
  for (const Kept kept : {Kept::kNothing, Kept::kNames, Kept::kEverything}) {
    const auto left = disk.AfterPowerLoss(kept);
    if (std::string broken = Broken(*left, promises); !broken.empty()) {
      return broken + " (kept " + std::to_string(static_cast<int>(kept)) + ")";
    }
  }
  return "";
}

}  // namespace

TEST_CASE("FileInteractionStore: whichever call fails, acknowledged calls survive a power loss", "[store][fault]") {
  for (const bool from_then_on : {false, true}) {
    for (const ErrorCode code : {ErrorCode::kIo, ErrorCode::kStorageFull}) {
      std::size_t n = 1;
      for (;; ++n) {
        MemoryFileSystem disk;
        FaultyFileSystem faulty(disk, {.at = n, .code = code, .from_then_on = from_then_on, .short_write = true});
        Promises promises;
        Script(faulty, promises);
        CAPTURE(n, from_then_on);
        REQUIRE(BrokenAfter(disk, promises) == "");
        if (!faulty.fired()) break;
      }
      CHECK(n > 50);  // the script really makes that many calls
    }
  }
}

TEST_CASE("FileInteractionStore: without a fault the script is acknowledged as a whole", "[store][fault]") {
  MemoryFileSystem disk;
  Promises promises;
  Script(disk, promises);
  CHECK(promises.created);
  CHECK(promises.deleted_other);
  CHECK(promises.saved.size() == 5);
  CHECK(promises.head == Id(5));
  CHECK(promises.title == "renamed");
  CHECK_FALSE((promises.head_unsure || promises.title_unsure));
}

TEST_CASE("FileInteractionStore: the check catches a disk that does not sync files", "[store][fault]") {
  MemoryFileSystem disk;
  FaultyFileSystem lying(disk);
  lying.IgnoreFileSyncs();
  Promises promises;
  Script(lying, promises);
  CHECK(BrokenAfter(disk, promises) != "");
}

TEST_CASE("FileInteractionStore: the check catches a disk that does not sync directories", "[store][fault]") {
  MemoryFileSystem disk;
  FaultyFileSystem lying(disk);
  lying.IgnoreDirectorySyncs();
  Promises promises;
  Script(lying, promises);
  CHECK(BrokenAfter(disk, promises) != "");
}

TEST_CASE("FileInteractionStore: a save out of order moves the head for good", "[store][fault]") {
  MemoryFileSystem disk;
  {
    const auto store = OpenStore(disk);
    REQUIRE(store);
    REQUIRE((*store)->SaveInteraction(Sample(1, {}, "one")));
    REQUIRE((*store)->SaveInteraction(Sample(3, 1, "three")));
  }
  const auto store = OpenStore(disk);
  REQUIRE(store);
  REQUIRE((*store)->SaveInteraction(Sample(2, 1, "two, late")));
  const auto left = disk.AfterPowerLoss(Kept::kNothing);
  const auto again = OpenStore(*left);
  REQUIRE(again);
  CHECK((*again)->LoadSummary(Chat1())->head == Id(2));
  CHECK((*again)->LoadChat(Chat1())->interactions.size() == 3);
}

TEST_CASE("FileInteractionStore: a save whose file exists already makes it durable", "[store][fault]") {
  for (std::size_t n = 1; n < 20; ++n) {
    MemoryFileSystem disk;
    FaultyFileSystem killed(disk, {.at = n, .from_then_on = true});
    if (const auto store = OpenStore(killed)) static_cast<void>((*store)->SaveInteraction(Sample(1, {}, "one")));
    // The machine lives on; the next process saves the same interaction, as BringHome does.
    const auto store = OpenStore(disk);
    REQUIRE(store);
    REQUIRE((*store)->SaveInteraction(Sample(1, {}, "one")));
    const auto left = disk.AfterPowerLoss(Kept::kNothing);
    const auto again = OpenStore(*left);
    CAPTURE(n);
    REQUIRE(again);
    REQUIRE((*again)->LoadInteraction(Chat1(), Id(1)) == Sample(1, {}, "one"));
  }
}

TEST_CASE("FileInteractionStore: at no point of a save is the file under its name unsynced", "[store][fault]") {
  MemoryFileSystem disk;
  {
    const auto store = OpenStore(disk);
    REQUIRE(store);
    REQUIRE((*store)->SaveInteraction(Sample(1, {}, "one")));
  }
  std::vector<std::string> calls;
  for (const std::string& call : disk.operations()) {
    const std::string verb = call.substr(0, call.find(' '));
    if (call.find("/chat1") != std::string::npos || verb == "sync_directory") calls.push_back(verb);
  }
  const std::vector<std::string> tail(calls.end() - 12, calls.end());
  CHECK(tail == std::vector<std::string>{"create_directory", "create_directory", "create", "append", "sync", "rename",
                                         "sync_directory", "sync_directory", "sync_directory",
                                         // The first chat.json is not synced, because it can be made again.
                                         "create", "append", "rename"});
}

TEST_CASE("FileInteractionStore: where a sync reaches all names, a turn needs one", "[store][fault]") {
  MemoryFileSystem disk(SyncReach::kAllNames);
  const auto store = OpenStore(disk);
  REQUIRE(store);
  REQUIRE((*store)->ReserveInteraction(Chat1()) == Id(1));
  REQUIRE((*store)->BeginJournal(Chat1(), Id(1), {}));
  const std::size_t before = disk.operations().size();
  REQUIRE((*store)->SaveInteraction(Sample(1, {}, "one")));
  std::vector<std::string> verbs;
  const auto calls = disk.operations();
  for (std::size_t i = before; i < calls.size(); ++i) {
    if (calls[i].find(".running") == std::string::npos) verbs.push_back(calls[i].substr(0, calls[i].find(' ')));
  }
  std::erase(verbs, "create");  // of the file, on the preparer's thread
  CHECK(verbs == std::vector<std::string>{"append", "rename", "sync", "remove"});
}

TEST_CASE("FileInteractionStore: an unreadable file is unfinished only beside a journal that the index lacks",
          "[store][fault]") {
  const std::string file = kRoot + "/chat1/interactions/int_002.json";
  const auto verdict = [&](bool has_journal, bool index_knows) {
    MemoryFileSystem disk(SyncReach::kAllNames);
    {
      const auto store = OpenStore(disk);
      REQUIRE(store);
      REQUIRE((*store)->SaveInteraction(Sample(1, {}, "one")));
      if (index_knows) REQUIRE((*store)->SaveInteraction(Sample(2, 1, "two")));
    }  // writes the index
    {
      const auto store = OpenStore(disk);
      REQUIRE(store);
      if (has_journal) REQUIRE((*store)->BeginJournal(Chat1(), Id(2), {}));
    }
    if (!index_knows) REQUIRE(disk.CreateFile(file).map([](const auto&) {}));
    disk.Overwrite(file, "{");
    CHECK(VerifyChat(kRoot, Chat1(), Keys(), disk)->problems.empty() == (has_journal && !index_knows));
    const auto store = OpenStore(disk);
    REQUIRE(store);
    const bool is_damaged = !(*store)->LoadChat(Chat1())->damaged.empty();
    if (has_journal) REQUIRE((*store)->DropJournal(Chat1(), Id(2)));
    CHECK(disk.ReadFile(file, 10).has_value() ==
          is_damaged);  // an unfinished one goes with its journal, damage is kept
    return is_damaged;
  };
  CHECK_FALSE(verdict(/*has_journal=*/true, /*index_knows=*/false));
  CHECK(verdict(/*has_journal=*/false, /*index_knows=*/false));
  CHECK(verdict(/*has_journal=*/true, /*index_knows=*/true));
  CHECK(verdict(/*has_journal=*/false, /*index_knows=*/true));
}

}  // namespace reprise::power_loss_test
