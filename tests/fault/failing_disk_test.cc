// Under a working server, every call to the disk fails once or from then on, or the disk fills up. Every failure must
// be reported by its name, and everything reported must survive, even a power loss.
#include <algorithm>
#include <map>
#include <utility>

#include "fault/check.h"
#include "fault/full_disk.h"
#include "fault/scenario.h"
#include "fault/torture.h"
#include "support/await_log.h"
#include "support/faulty_file_system.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::failing_disk_test {
namespace {

using Kept = MemoryFileSystem::Kept;

// A server's life on a failing disk, with a fallback folder on a healthy one.
struct Trouble {
  void Live(FileSystem& troubled) {
    Life life(troubled, &ledger, {.keys = Keys(), .fallback = &fallback});
    errors = life.errors();
    if (life.not_opened()) {
      errors.push_back(*life.not_opened());
      return;
    }
    FirstLife(life);
    errors = life.errors();
    stream_errors = life.StreamErrors();
    if (after) after(life);
    life.Kill();
  }

  // The first broken promise after a power loss, in which the fallback's disk also loses its unsynced changes.
  std::string Broken() const {
    const Promises promises = Ledger::Reader(ledger).AtTheEnd();
    for (const Kept kept : {Kept::kNothing, Kept::kNames, Kept::kEverything}) {
      const auto left = disk.AfterPowerLoss(kept), left_fallback = fallback.AfterPowerLoss(kept);
      const CheckOptions options{.life = {.keys = Keys(), .fallback = left_fallback.get()}};
      const std::string broken = BrokenPromise(*left, promises, options);
      if (!broken.empty()) return broken + " (kept " + std::to_string(static_cast<int>(kept)) + ")";
    }
    return "";
  }

  // The first reported error of another kind than `code`; empty if there is none. (kNotFound is allowed, because later
  // steps build on failed ones.)
  std::string Misreported(ErrorCode code) const {
    for (const Error& error : errors) {
      if (error.code != code && error.code != ErrorCode::kNotFound) return error.reason + ": " + error.message;
    }
    for (const std::string& reason : stream_errors) {
      if (reason != DefaultReason(code) && !(code == ErrorCode::kIo && reason == "save_failed")) return reason;
    }
    return "";
  }

  MemoryFileSystem disk, fallback;
  Ledger ledger{[] { return 0; }};
  std::vector<Error> errors;
  std::vector<std::string> stream_errors;
  std::function<void(Life&)> after;
};

}  // namespace

TEST_CASE("Failing disk: each call fails, once or for good", "[fault]") {
  const Silence silence;
  const bool from_then_on = GENERATE(false, true);
  const ErrorCode code = GENERATE(ErrorCode::kIo, ErrorCode::kStorageFull);
  const std::size_t step = Torture::Get().is_long ? 1 : Torture::Get().fraction;
  std::size_t runs = 0, reported = 0;
  for (std::size_t n = 1;; n += step, ++runs) {
    Trouble trouble;
    FaultyFileSystem faulty(trouble.disk, {.at = n, .code = code, .from_then_on = from_then_on, .short_write = true});
    trouble.Live(faulty);
    CAPTURE(n, from_then_on, DefaultReason(code));
    REQUIRE(trouble.Misreported(code) == "");
    REQUIRE(faulty.repeated_syncs() == 0);
    REQUIRE(trouble.Broken() == "");
    reported += trouble.errors.size() + trouble.stream_errors.size();
    // (The last calls belong to the index, for which no client waits.)
    if (from_then_on && n < 100) REQUIRE(trouble.errors.size() + trouble.stream_errors.size() > 0);
    if (!faulty.fired()) break;
  }
  Report("failing disk, " + std::string(DefaultReason(code)) + (from_then_on ? " for good: " : " once: ") +
         std::to_string(runs) + " calls, " + std::to_string(reported) + " failures reported");
  CHECK(runs > 100 / step);
}

TEST_CASE("Failing disk: reading fails", "[fault]") {
  const Silence silence;
  const bool from_then_on = GENERATE(false, true);
  // A store with all kinds of records, left by a killed server.
  MemoryFileSystem disk, fallback;
  Ledger ledger{[] { return 0; }};
  {
    Life life(disk, &ledger, {.keys = Keys()});
    FirstLife(life);
    life.Kill();
  }
  const Promises promises = Ledger::Reader(ledger).AtTheEnd();
  std::size_t runs = 0;
  for (std::size_t n = 1;; ++n, ++runs) {
    const auto copy = disk.AfterPowerLoss(Kept::kEverything);
    FaultyFileSystem faulty(*copy, {.at = n, .from_then_on = from_then_on, .reads = true});
    {
      Life life(faulty, nullptr, {.keys = Keys()});
      if (!life.not_opened()) SecondLife(life);
      CAPTURE(n, from_then_on);
      for (const Error& error : life.errors()) {
        CAPTURE(error.message, error.detail);
        REQUIRE((error.code == ErrorCode::kIo || error.code == ErrorCode::kNotFound));
      }
      life.Kill();
    }
    CAPTURE(n, from_then_on);
    // The earlier promises; the second life may have gone on from there.
    Promises before = promises;
    for (auto& [place, run] : before.runs) run.answered = true;
    for (auto& [id, chat] : before.chats) chat.moving = true;
    REQUIRE(BrokenPromise(*copy, before, {.life = {.keys = Keys()}}) == "");
    if (!faulty.fired()) break;
  }
  Report(std::string("reading fails ") + (from_then_on ? "for good: " : "once: ") + std::to_string(runs) + " calls");
  CHECK(runs > 40);
}

TEST_CASE("Full disk: fills up at any size, and works again when there is room", "[fault]") {
  const Silence silence;
  const std::size_t step = (Torture::Get().is_long ? 64 : 512) * Torture::Get().fraction;
  std::size_t runs = 0, unnoticed = 0;
  for (std::size_t room = 0;; room += step, ++runs) {
    Trouble trouble;
    FullDisk full(trouble.disk, room);
    bool went_on = true;
    trouble.after = [&](Life& life) {
      if (!full.was_full()) return;
      full.MakeRoom();
      life.ThenAnswer({"there is room"});
      const auto log = life.Start(kMain, "again");
      life.Finish(log);
      went_on = log && SeenEvents(ReadLog(*log)).ended == InteractionStatus::kCompleted;
    };
    trouble.Live(full);
    CAPTURE(room);
    REQUIRE(trouble.Misreported(ErrorCode::kStorageFull) == "");
    REQUIRE(trouble.Broken() == "");
    if (!full.was_full()) break;
    // Work that can be done again later, such as the index or removing a journal, fails silently.
    if (trouble.errors.empty() && trouble.stream_errors.empty()) ++unnoticed;
    if (trouble.after && !trouble.disk.ListDirectory(kDataFolder)) continue;  // the server never started
    REQUIRE(went_on);
  }
  Report("full disk: " + std::to_string(runs) + " sizes");
  CHECK(unnoticed <= runs / 20);
  CHECK(runs > 20 / Torture::Get().fraction);
}

// Each call fails once during a second turn, and a third turn continues from there.
TEST_CASE("Failing disk: what was shown, what is stored and what the next turn continues agree", "[fault]") {
  const Silence silence;
  const auto answers_in = [](const auto& log) {
    std::vector<std::string> answers;
    const SeenEvents seen(ReadLog(*log));
    for (const SeenEvents::Frame& frame : seen.frames) {
      const auto* answer = frame.event ? std::get_if<event::Answer>(&frame.event->payload) : nullptr;
      if (answer) answers.push_back(answer->content);
    }
    return answers;
  };
  const auto holds = [](const Messages& messages, const std::string& text) {
    return std::any_of(messages.begin(), messages.end(), [&](const Message& each) { return each.content == text; });
  };
  std::size_t unsaved = 0;
  for (std::size_t n = 1;; ++n) {
    MemoryFileSystem disk, fallback;
    FaultyFileSystem faulty(disk, {.at = n});
    CAPTURE(n);
    std::vector<std::string> shown;
    std::map<std::uint32_t, InteractionStatus> ended;
    {
      Life life(faulty, nullptr, {.keys = Keys(), .fallback = &fallback});
      if (!life.not_opened()) {
        for (const char* text : {"one", "two", "three", "four"}) {
          life.ThenAnswer({text});
          const auto log = life.Start(kMain, std::string("say ") + text);
          life.Finish(log);
          if (!log) continue;
          const auto requests = life.model().requests();
          for (const std::string& before : shown) REQUIRE((requests.empty() || holds(requests.back(), before)));
          for (const std::string& answer : answers_in(log)) shown.push_back(answer);
          const SeenEvents seen(ReadLog(*log));
          REQUIRE(seen.ended);
          ended[life.IdOf(log).number()] = *seen.ended;
          unsaved += *seen.ended == InteractionStatus::kFailed;
          REQUIRE(life.engine().GetInteraction(kMain, life.IdOf(log))->status == *seen.ended);
        }
      }
      life.Kill();
    }
    Life again(disk, nullptr, {.keys = Keys(), .fallback = &fallback});
    REQUIRE_FALSE(again.not_opened());
    REQUIRE(again.errors().empty());
    for (const auto& [number, status] : ended) {
      const auto stored = again.engine().GetInteraction(kMain, Id(number));
      REQUIRE(stored);
      REQUIRE(stored->status == status);
    }
    again.ThenAnswer({"five"});
    again.Finish(again.Start(kMain, "say five"));
    for (const std::string& before : shown) REQUIRE(holds(again.model().requests().back(), before));
    again.Kill();
    if (!faulty.fired()) break;
  }
  CHECK(unsaved > 5);
}

}  // namespace reprise::failing_disk_test
