// Power is lost after every single write of three servers' lives, with any luck that a disk may have. The real store
// and the real engine start on the remains. The same checks must notice deliberate bugs in the product.
#include "fault/power_loss.h"

#include <unordered_set>
#include <utility>

#include "fault/bugs.h"
#include "fault/check.h"
#include "fault/scenario.h"
#include "fault/torture.h"
#include "support/test.h"

namespace reprise::power_loss_test {
namespace {

using Names = Luck::Names;
using Data = Luck::Data;

// The writes, and what clients were told.
struct Recording {
  Recording(const LifeOptions& options, SyncReach reach) : disk(reach) {
    for (const auto& act : {FirstLife, SecondLife, ThirdLife}) {
      Life life(recorder, &ledger, options);
      if (life.not_opened()) return;
      act(life);
      if (act != ThirdLife) life.Kill();
    }
  }
  MemoryFileSystem disk;
  WriteRecorder recorder{disk};
  Ledger ledger{[this] { return recorder.position(); }};
};

struct Tally {
  std::size_t writes = 0, states = 0;  // distinct states
  std::string broken{};                // the first broken promise, and where
};

std::string Where(std::size_t position, const Luck& luck) {
  return " (after write " + std::to_string(position) + ", names " + std::to_string(static_cast<int>(luck.names)) +
         ", data " + std::to_string(static_cast<int>(luck.data)) + ")";
}

// The kinds of luck to try after each write: first the plain ones, then `draws` random ones.
std::vector<Luck> Moods(std::size_t draws) {
  std::vector<Luck> moods;
  for (const Names names : {Names::kAll, Names::kNone}) {
    for (const Data data : {Data::kAll, Data::kNone}) moods.push_back({names, data});
  }
  for (std::size_t i = 0; i < draws; ++i) {
    moods.push_back({i % 4 == 2   ? Names::kInOrder
                     : i % 4 == 3 ? Names::kAll
                                  : Names::kAny,
                     i % 8 == 0   ? Data::kAll
                     : i % 8 == 4 ? Data::kNone
                                  : Data::kAny});
  }
  return moods;
}

// Stops at the first broken promise.
Tally Replay(const Recording& recording, const LifeOptions& life, SyncReach reach, std::size_t draws,
             std::uint32_t seed) {
  const std::vector<DiskWrite> writes = recording.recorder.writes();
  const std::vector<Luck> moods = Moods(draws);
  Tally tally{.writes = writes.size()};
  std::mt19937 dice(seed);
  PowerLossDisk disk(reach);
  Ledger::Reader reader(recording.ledger);
  std::unordered_set<std::uint64_t> seen;
  for (std::size_t position = 0; position <= writes.size(); ++position) {
    if (position > 0) disk.Do(writes[position - 1]);
    if (kSanitized && position % 4 != 0) continue;
    const Promises& promises = reader.At(position);
    for (std::size_t mood = 0; mood < moods.size(); ++mood) {
      const PowerLossDisk::State state = disk.LosePower(moods[mood], dice);
      // Skips a known state, except with plain luck: there a client may have been told more since, so the same state
      // has to keep more promises.
      if (!seen.insert(state.Digest()).second && mood >= 4) continue;
      const CheckOptions options{.life = life, .process_only = mood == 0, .go_on = seen.size() % 16 == 0};
      tally.broken = BrokenPromise(*state.Mount(), promises, options);
      tally.states = seen.size();
      if (!tally.broken.empty()) {
        tally.broken += Where(position, moods[mood]);
        return tally;
      }
    }
  }
  return tally;
}

std::string Named(SyncReach reach) {
  return reach == SyncReach::kItself     ? ": "
         : reach == SyncReach::kNewNames ? ", syncs new names: "
                                         : ", syncs all names: ";
}

LifeOptions Plain() { return {}; }
LifeOptions Sealed() { return {.keys = Keys()}; }

}  // namespace

TEST_CASE("Power loss: every promise is kept, whatever has reached the disk", "[fault][power]") {
  const Silence silence;
  const Torture& torture = Torture::Get();
  std::size_t states = 0;
  // Mostly sealed, like people's data.
  for (const auto& [sealed, reach] : {std::pair(true, SyncReach::kItself),
                                      {false, SyncReach::kItself},
                                      {true, SyncReach::kNewNames},
                                      {true, SyncReach::kAllNames},
                                      {false, SyncReach::kAllNames}}) {
    const LifeOptions options = sealed ? Sealed() : Plain();
    const Recording recording(options, reach);
    const std::size_t draws = (torture.is_long                         ? 2'000
                               : sealed && reach == SyncReach::kItself ? 125
                                                                       : 25) /
                              torture.fraction;
    const Tally tally = Replay(recording, options, reach, draws, torture.seed);
    Report(std::string("power loss, ") + (sealed ? "sealed" : "plain") + Named(reach) + std::to_string(tally.writes) +
           " writes, " + std::to_string(tally.states) + " distinct states, seed " + std::to_string(torture.seed));
    CAPTURE(sealed, Named(reach), tally.writes, tally.states, torture.seed);
    REQUIRE(tally.broken == "");
    CHECK(recording.ledger.size() > 50);
    states += tally.states;
  }
  CHECK(states > 20'000 / torture.fraction);
}

TEST_CASE("Power loss: after a kill anywhere and a second start", "[fault]") {
  const Silence silence;
  const Torture& torture = Torture::Get();
  const SyncReach reach = GENERATE(SyncReach::kItself, SyncReach::kNewNames, SyncReach::kAllNames);
  const Recording recording(Sealed(), reach);
  const std::vector<DiskWrite> writes = recording.recorder.writes();
  std::mt19937 dice(torture.seed);
  std::size_t states = 0;
  Ledger::Reader reader(recording.ledger);
  for (std::size_t position = 0; position <= writes.size(); position += torture.is_long ? 1 : 3 * torture.fraction) {
    const Promises& promises = reader.At(position);
    PowerLossDisk disk(reach);
    for (std::size_t i = 0; i < position; ++i) disk.Do(writes[i]);
    const auto found = disk.LosePower({Names::kAll, Data::kAll}, dice).Mount();
    WriteRecorder recorder(*found);
    {
      Life life(recorder, nullptr, Sealed());
      life.Kill();
    }
    std::vector<DiskWrite> restart = recorder.writes();
    disk.Continue(restart);
    for (std::size_t i = 0; i <= restart.size(); ++i) {
      if (i > 0) disk.Do(restart[i - 1]);
      for (const Luck& luck : Moods(torture.is_long ? 24 : 4)) {
        ++states;
        CAPTURE(Named(reach), position, i, static_cast<int>(luck.names), static_cast<int>(luck.data));
        REQUIRE(BrokenPromise(*disk.LosePower(luck, dice).Mount(), promises, {.life = Sealed()}) == "");
      }
    }
  }
  Report("kill, restart, power loss: " + std::to_string(states) + " states, seed " + std::to_string(torture.seed));
  CHECK(states > 5'000 / torture.fraction);
}

TEST_CASE("Power loss: the checks notice deliberate bugs", "[fault]") {
  const Silence silence;
  const SyncReach reach = GENERATE(SyncReach::kItself, SyncReach::kNewNames, SyncReach::kAllNames);
  for (const Bug& bug : AllBugs()) {
    LifeOptions options = Sealed();
    options.disk_double = bug.disk;
    options.store_double = bug.store;
    const Recording recording(options, reach);
    LifeOptions healthy = Sealed();
    healthy.store_double = bug.reader;
    const Tally tally =
        Replay(recording, healthy, bug.claims_reach ? SyncReach::kItself : reach, 20, Torture::Get().seed);
    Report("seeded bug \"" + bug.name + "\"" + Named(reach) +
           (tally.broken.empty() ? "NOT CAUGHT in " : "caught after ") + std::to_string(tally.states) +
           " states: " + tally.broken);
    CAPTURE(bug.name, Named(reach), tally.writes, tally.states);
    CHECK(tally.broken != "");
  }
}

}  // namespace reprise::power_loss_test
