// verify has no complaint about a folder that was left by a crash.
#include <random>

#include "fault/power_loss.h"
#include "fault/scenario.h"
#include "fault/torture.h"
#include "fault/write_recorder.h"
#include "store/verify.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::verify_crash_test {
namespace {

using Names = Luck::Names;
using Data = Luck::Data;

std::string ProblemsIn(FileSystem& disk) {
  std::string text;
  const auto report = VerifyStore(kDataFolder, Keys(), disk);
  if (!report) return report.error().code == ErrorCode::kNotFound ? "" : report.error().message;
  for (const Problem& problem : report->problems)
    text += problem.file + " " + problem.kind + ": " + problem.message + "; ";
  return text;
}

// Takes one turn in each of two chats; `turn` is the text of message and answer.
void Turns(Life& life, const std::string& turn) {
  for (const ChatId& chat : {kMain, kOther}) {
    life.ThenAnswer({turn});
    life.Finish(life.Start(chat, turn));
  }
}

}  // namespace

TEST_CASE("Verify: has no complaint after two crashes, or a crash and a power loss", "[fault][verify]") {
  const Silence silence;
  const bool power_fails = GENERATE(false, true);
  const Torture& torture = Torture::Get();
  std::mt19937 dice(torture.seed);
  const std::vector<Luck> moods =
      power_fails
          ? std::vector<Luck>{{Names::kNone, Data::kNone},   {Names::kAll, Data::kNone}, {Names::kAll, Data::kAll},
                              {Names::kInOrder, Data::kAny}, {Names::kAny, Data::kAny},  {Names::kAny, Data::kAny},
                              {Names::kAny, Data::kAny},     {Names::kAny, Data::kAny}}
          : std::vector<Luck>{{Names::kAll, Data::kAll}};
  const SyncReach reach = GENERATE(SyncReach::kItself, SyncReach::kAllNames);
  MemoryFileSystem memory(reach);
  WriteRecorder first(memory);
  {
    // The index is so late that the crash comes first.
    Life life(first, nullptr, {.keys = Keys(), .index_delay = std::chrono::hours(1)});
    Turns(life, "one");
    life.Kill();
  }
  const std::vector<DiskWrite> writes = first.writes();
  std::size_t states = 0;
  const std::size_t step = power_fails ? 7 : 1;
  for (std::size_t position = writes.size() % step; position <= writes.size(); position += step) {
    PowerLossDisk disk(reach);
    for (std::size_t i = 0; i < position; ++i) disk.Do(writes[i]);
    const auto found = disk.LosePower({Names::kAll, Data::kAll}, dice).Mount();
    WriteRecorder second(*found);
    {
      Life life(second, nullptr, {.keys = Keys(), .index_delay = std::chrono::hours(1)});
      REQUIRE_FALSE(life.not_opened());
      Turns(life, "two");
      Turns(life, "three");
      life.Kill();
    }
    std::vector<DiskWrite> more = second.writes();
    disk.Continue(more);
    for (std::size_t i = 0; i <= more.size(); ++i) {
      if (i > 0) disk.Do(more[i - 1]);
      for (const Luck& luck : moods) {
        ++states;
        CAPTURE(static_cast<int>(reach), position, i, static_cast<int>(luck.names), static_cast<int>(luck.data));
        REQUIRE(ProblemsIn(*disk.LosePower(luck, dice).Mount()) == "");
      }
    }
  }
  Report("verify after two crashes: " + std::to_string(states) + " states");
  CHECK(states > 500);
}

}  // namespace reprise::verify_crash_test
