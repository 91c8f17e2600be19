// A folder left by a crash is in order, so verify finds no problem.
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

// Runs one turn in each of two chats, with texts made from `turn`.
void Turns(Life& life, const std::string& turn) {
  for (const ChatId& chat : {kMain, kOther}) {
    life.ThenAnswer({turn});
    life.Finish(life.Start(chat, turn));
  }
}

}  // namespace

TEST_CASE("Verify: two crashes, or a crash and a power loss, leave no problems", "[fault][verify]") {
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
  MemoryFileSystem memory;
  WriteRecorder first(memory);
  {
    // So late that the crash comes before any index is written.
    Life life(first, nullptr, {.keys = Keys(), .index_delay = std::chrono::hours(1)});
    Turns(life, "one");
    life.Kill();
  }
  const std::vector<DiskWrite> writes = first.writes();
  std::size_t states = 0;
  const std::size_t step = power_fails ? 7 : 1;
  for (std::size_t position = writes.size() % step; position <= writes.size(); position += step) {
    PowerLossDisk disk;
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
        CAPTURE(position, i, static_cast<int>(luck.names), static_cast<int>(luck.data));
        REQUIRE(ProblemsIn(*disk.LosePower(luck, dice).Mount()) == "");
      }
    }
  }
  Report("verify after two crashes: " + std::to_string(states) + " states");
  CHECK(states > 500);
}

}  // namespace reprise::verify_crash_test
