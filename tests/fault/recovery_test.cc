// Starts that fail, one after the other: interactions that cannot be recovered wait for a later start.
#include <algorithm>
#include <utility>

#include "fault/check.h"
#include "fault/full_disk.h"
#include "fault/scenario.h"
#include "fault/torture.h"
#include "support/await_log.h"
#include "support/faulty_file_system.h"
#include "support/forwarding_file_system.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::recovery_test {
namespace {

// Cannot read files with this text in their paths.
class PartlyUnreadable final : public ForwardingFileSystem {
 public:
  PartlyUnreadable(FileSystem& base, std::string text) : ForwardingFileSystem(base), text_(std::move(text)) {}
  Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) override {
    return Check(path).and_then([&] { return base_.ReadFile(path, max_bytes); });
  }
  Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) override {
    return Check(path).and_then([&] { return base_.ListDirectory(path); });
  }

 private:
  Result<void> Check(const std::string& path) const {
    if (path.find(text_) == std::string::npos) return {};
    return Fail(ErrorCode::kIo, "cannot be read", path);
  }
  const std::string text_;
};

// Can read files, but cannot list folders.
class Unlistable final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) override {
    return Fail(ErrorCode::kIo, "cannot be listed", path);
  }
};

// Cannot rename a file to a checkpoint.
class TakesNoCheckpoint final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  Result<void> Rename(const std::string& from, const std::string& to) override {
    if (to.find("/int_") != std::string::npos && to.ends_with(".json")) return Fail(ErrorCode::kIo, "no", to);
    return base_.Rename(from, to);
  }
};

// Kills a server with two chats that wait for an answer.
void LeaveTwoWaiting(FileSystem& disk) {
  Life life(disk, nullptr, {});
  for (const ChatId& chat : {kMain, kOther}) {
    life.ThenAnswer({"hello"});
    life.Finish(life.Start(chat, "one"));
    life.ThenCall({{"call", "danger", "{}"}}, "May I?");
    REQUIRE(life.AwaitApproval(life.Start(chat, "two")));
  }
  life.Kill();
}

std::size_t WaitingIn(Life& life) { return life.engine().PendingApprovals().size(); }

}  // namespace

TEST_CASE("Recovery: killed during recovery, with the list lost, waiting runs are still found", "[fault]") {
  const Silence silence;
  MemoryFileSystem first;
  LeaveTwoWaiting(first);
  REQUIRE(first.RemoveFile(kDataFolder + "/.running"));
  std::size_t calls = 0;
  for (std::size_t n = 1;; ++n) {
    const auto disk = first.AfterPowerLoss(MemoryFileSystem::Kept::kEverything);
    FaultyFileSystem killed(*disk, {.at = n, .from_then_on = true});
    {
      Life life(killed, nullptr, {});
      life.Kill();
    }
    Life again(*disk, nullptr, {});
    CAPTURE(n);
    REQUIRE(WaitingIn(again) == 2);
    again.Kill();
    if (!killed.fired()) break;
    calls = n;
  }
  CHECK(calls > 5);
}

TEST_CASE("Recovery: a chat that cannot be listed is tried again", "[fault]") {
  const Silence silence;
  MemoryFileSystem disk;
  LeaveTwoWaiting(disk);
  REQUIRE(disk.RemoveFile(kDataFolder + "/.running"));
  {
    PartlyUnreadable unreadable(disk, "/other");
    Life life(unreadable, nullptr, {});
    CHECK(WaitingIn(life) == 1);
    life.Kill();
  }
  Life again(disk, nullptr, {});
  CHECK(WaitingIn(again) == 2);
  again.Kill();
}

TEST_CASE("Recovery: on a full disk nothing is lost, and the next start recovers", "[fault]") {
  const Silence silence;
  for (std::size_t room = 0; room < 6'000; room += 100) {
    MemoryFileSystem disk;
    LeaveTwoWaiting(disk);
    {
      FullDisk full(disk, room);
      Life life(full, nullptr, {});
      CAPTURE(room);
      REQUIRE_FALSE(life.not_opened());
      REQUIRE(life.recovered().left + life.recovered().waiting == 2);
      life.Kill();
    }
    Life again(disk, nullptr, {});
    CAPTURE(room);
    REQUIRE(WaitingIn(again) == 2);
    again.Kill();
  }
}

TEST_CASE("Recovery: a run left at one start does not become the head at the next", "[fault]") {
  const Silence silence;
  MemoryFileSystem disk;
  {
    Life life(disk, nullptr, {});
    life.ThenAnswer({"hello"});
    life.Finish(life.Start(kMain, "one"));
    life.ThenHang({"half"});
    life.AwaitText(life.Start(kMain, "two"), "half");
    life.Kill();
  }
  {
    PartlyUnreadable unreadable(disk, "int_002.journal");
    Life life(unreadable, nullptr, {});
    CHECK(life.recovered().left == 1);
    life.ThenAnswer({"there"});
    life.Finish(life.Start(kMain, "three"));
    CHECK(life.store().LoadSummary(kMain)->head == Id(3));
    life.Kill();
  }
  Life again(disk, nullptr, {});
  CHECK(again.recovered().failed == 1);
  CHECK(again.engine().GetInteraction(kMain, Id(2))->status == InteractionStatus::kFailed);
  CHECK(again.store().LoadSummary(kMain)->head == Id(3));
}

TEST_CASE("Recovery: only the newest of two runs of a chat waits, and the server can stop", "[fault]") {
  const Silence silence;
  MemoryFileSystem disk;
  LeaveTwoWaiting(disk);
  {
    PartlyUnreadable unreadable(disk, "main/interactions/int_002.journal");
    Life life(unreadable, nullptr, {});
    CHECK(WaitingIn(life) == 1);
    life.ThenCall({{"call", "danger", "{}"}}, "May I?");
    REQUIRE(life.AwaitApproval(life.Start(kMain, "three")));
    life.Kill();
  }
  Life again(disk, nullptr, {});
  CHECK(WaitingIn(again) == 2);
  CHECK(again.engine().GetInteraction(kMain, Id(2))->status == InteractionStatus::kFailed);
  CHECK(again.engine().GetInteraction(kMain, Id(3))->status == InteractionStatus::kWaitingApproval);
}

TEST_CASE("Recovery: a finished run that cannot be read does not ask again", "[fault]") {
  const Silence silence;
  MemoryFileSystem disk;
  LeaveTwoWaiting(disk);
  const std::string folder = kDataFolder + "/main/interactions/";
  const std::string journal = *disk.ReadFile(folder + "int_002.journal", 1 << 20);
  {
    Life life(disk, nullptr, {});
    const auto waiting = life.Attach(kMain, Id(2));
    life.Cancel(kMain, Id(2));
    life.Finish(waiting);  // and after an orderly end the index has the interaction
  }
  // A power loss may bring the journal back, and lose the list.
  REQUIRE(disk.CreateFile(folder + "int_002.journal"));
  disk.Overwrite(folder + "int_002.journal", journal);
  REQUIRE(disk.RemoveFile(kDataFolder + "/.running"));
  PartlyUnreadable unreadable(disk, "main/interactions/int_002.json");
  Life again(unreadable, nullptr, {});
  CHECK(again.recovered().left == 1);
  CHECK(WaitingIn(again) == 1);  // the run in the other chat
  CHECK(again.engine().PendingApprovals()[0].chat_id != kMain);
  again.Kill();
}

TEST_CASE("Recovery: an interaction in a fallback folder is not ended from its journal", "[fault]") {
  const Silence silence;
  MemoryFileSystem disk, fallback;
  const LifeOptions options{.fallback = &fallback};
  {
    TakesNoCheckpoint stubborn(disk);
    Life life(stubborn, nullptr, options);
    life.ThenAnswer({"the whole answer"});
    life.Finish(life.Start(kMain, "one"));
    CHECK(life.StreamErrors() == std::vector<std::string>{"save_failed"});
    life.Kill();
  }
  {
    Unlistable unlistable(fallback);
    Life life(disk, nullptr, {.fallback = &unlistable});
    CHECK(life.errors().size() == 1);  // this start does not bring it home
    REQUIRE_FALSE(life.not_opened());
    CHECK(life.engine().GetInteraction(kMain, Id(1))->final_agent_state->messages.size() == 2);
    life.Kill();
  }
  Life again(disk, nullptr, options);
  CHECK(again.errors().empty());
  const auto brought = again.store().LoadInteraction(kMain, Id(1));
  REQUIRE(brought);
  const auto is_answer = [](const AgentEvent& event) { return std::holds_alternative<event::Answer>(event.payload); };
  CHECK(std::any_of(brought->events.begin(), brought->events.end(), is_answer));
}

}  // namespace reprise::recovery_test
