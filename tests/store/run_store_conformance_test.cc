// The facts that hold for every RunStore.
#include <future>

#include "store/conformance/store_under_test.h"
#include "store/sample.h"
#include "support/test.h"

namespace reprise::run_store_conformance_test {
namespace {

// Appends, and waits for the result.
Result<void> AppendNow(RunHold& hold, std::string_view record, Journal::Reach reach = Journal::Reach::kProcess) {
  const auto kept = std::make_shared<std::promise<Result<void>>>();
  hold.Append(record, reach, [kept](Result<void> outcome) { kept->set_value(std::move(outcome)); });
  return kept->get_future().get();
}

std::unique_ptr<RunHold> Begun(RunStore& runs, const RunBeginning& beginning) {
  auto hold = runs.Begin(beginning);
  REQUIRE(hold);
  return *std::move(hold);
}

const std::optional<InteractionId> kNone;
RunBeginning AtHead(std::optional<InteractionId> head) {
  return {.chat = Chat1(), .expected_head = head, .record = "begun"};
}

// The only abandoned run.
AbandonedRun ClaimOne(RunStore& runs) {
  auto claimed = runs.ClaimAbandoned(10);
  REQUIRE(claimed);
  REQUIRE(claimed->size() == 1);
  return std::move(claimed->front());
}

}  // namespace

TEST_CASE("RunStore: a new run makes its chat, has the next number, and is the only one there", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    RunStore& runs = under_test.runs();
    auto first = Begun(runs, AtHead(kNone));
    CHECK(first->id() == Id(1));
    for (const auto& beginning : {AtHead(kNone), RunBeginning{.chat = Chat1()}}) {
      const auto second = runs.Begin(beginning);
      REQUIRE_FALSE(second);
      CHECK(second.error().code == ErrorCode::kConflict);
      CHECK(second.error().reason == "busy");
      CHECK(second.error().retryable);
      CHECK(second.error().details_json == R"({"interaction_id":"int_001"})");
    }
    CHECK(Begun(runs, {.chat = *ChatId::Parse("other"), .record = "begun"})->id() == Id(1));
    REQUIRE(first->Finish(Sample(1, {}, "one")));
    CHECK(Begun(runs, AtHead(Id(1)))->id() == Id(2));
  });
}

TEST_CASE("RunStore: a finished run is stored and is the head", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    auto hold = Begun(under_test.runs(), AtHead(kNone));
    REQUIRE(AppendNow(*hold, "said"));
    REQUIRE(hold->Finish(Sample(1, {}, "one")));
    hold = nullptr;
    for (int round = 0; round < 2; ++round) {
      CHECK(under_test.store().LoadInteraction(Chat1(), Id(1)) == Sample(1, {}, "one"));
      CHECK(under_test.store().LoadSummary(Chat1())->head == Id(1));
      CHECK(under_test.runs().ClaimAbandoned(10)->empty());
      under_test.Reopen();
    }
  });
}

TEST_CASE("RunStore: a run does not begin at a head that has moved", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    RunStore& runs = under_test.runs();
    REQUIRE(Begun(runs, AtHead(kNone))->Finish(Sample(1, {}, "one")));
    REQUIRE(Begun(runs, AtHead(Id(1)))->Finish(Sample(2, 1, "two")));
    for (const auto& head : {kNone, std::optional(Id(1))}) {
      const auto stale = runs.Begin(AtHead(head));
      REQUIRE_FALSE(stale);
      CHECK(stale.error().code == ErrorCode::kConflict);
      CHECK(stale.error().reason == "head_moved");
    }
    REQUIRE(under_test.store().MoveHead(Chat1(), Id(1)));
    CHECK(runs.Begin(AtHead(Id(2))).error().reason == "head_moved");
    CHECK(Begun(runs, AtHead(Id(1)))->id().number() >= 3);
  });
}

TEST_CASE("RunStore: a run that does not begin at the head may begin, whatever the head is", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    RunStore& runs = under_test.runs();
    REQUIRE(Begun(runs, AtHead(kNone))->Finish(Sample(1, {}, "one")));
    REQUIRE(Begun(runs, AtHead(Id(1)))->Finish(Sample(2, 1, "two")));
    auto beside = Begun(runs, {.chat = Chat1(), .record = "begun"});
    REQUIRE(beside->Finish(Sample(3, 1, "two, edited")));
    CHECK(under_test.store().LoadSummary(Chat1())->head == Id(3));
  });
}

TEST_CASE("RunStore: a discarded run leaves nothing, and its number is not used again", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    REQUIRE(Begun(under_test.runs(), AtHead(kNone))->Finish(Sample(1, {}, "one")));
    auto hold = Begun(under_test.runs(), AtHead(Id(1)));
    REQUIRE(AppendNow(*hold, "said"));
    REQUIRE(hold->Discard());
    CHECK(under_test.store().LoadInteraction(Chat1(), Id(2)).error().code == ErrorCode::kNotFound);
    CHECK(Begun(under_test.runs(), AtHead(Id(1)))->id() == Id(3));
  });
}

TEST_CASE("RunStore: records are kept in order, and each is reported once", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    auto hold = Begun(under_test.runs(), AtHead(kNone));
    constexpr int kRecords = 200;
    std::vector<int> told;
    for (int i = 0; i < kRecords; ++i) {
      const auto reach = i % 10 == 0 ? Journal::Reach::kPowerLoss : Journal::Reach::kProcess;
      hold->Append(std::to_string(i), reach, [&told, i](const Result<void>& kept) { told.push_back(kept ? i : -1); });
    }
    hold->GiveBack();  // no call is outstanding then
    std::vector<int> expected;
    for (int i = 0; i < kRecords; ++i) expected.push_back(i);
    CHECK(told == expected);
    if (!hold->keeps_journal()) return;
    const AbandonedRun run = ClaimOne(under_test.runs());
    const auto content = run.hold->ReadJournal();
    REQUIRE(content);
    REQUIRE(content->records.size() == kRecords + 1);
    CHECK(content->records.front() == "begun");
    for (int i = 0; i < kRecords; ++i) CHECK(content->records[static_cast<std::size_t>(i) + 1] == std::to_string(i));
  });
}

TEST_CASE("RunStore: a run that is given back stays busy, is claimed by one caller, and can be finished", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    RunStore& runs = under_test.runs();
    auto given = Begun(runs, AtHead(kNone));
    given->GiveBack();
    given = nullptr;
    CHECK(runs.Begin(AtHead(kNone)).error().reason == "busy");
    const AbandonedRun run = ClaimOne(runs);
    CHECK(run.ref == InteractionRef{Chat1(), Id(1)});
    CHECK(run.is_last);
    CHECK(run.hold->id() == Id(1));
    CHECK(runs.ClaimAbandoned(10)->empty());
    CHECK(runs.Begin(AtHead(kNone)).error().reason == "busy");
    REQUIRE(run.hold->Finish(Sample(1, {}, "one")));
    CHECK(Begun(runs, AtHead(Id(1)))->id() == Id(2));
  });
}

TEST_CASE("RunStore: a run whose process has ended is found, and continues after its records", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    {
      auto hold = Begun(under_test.runs(), AtHead(kNone));
      if (!hold->keeps_journal()) return;
      REQUIRE(AppendNow(*hold, "one"));
      REQUIRE(AppendNow(*hold, std::string("t\0wo\xff", 5), Journal::Reach::kPowerLoss));
    }
    const std::vector<std::string> kept = {"begun", "one", std::string("t\0wo\xff", 5)};
    under_test.EndProcess();
    {
      const AbandonedRun run = ClaimOne(under_test.runs());
      const auto content = run.hold->ReadJournal();
      REQUIRE(content);
      CHECK(content->records == kept);
      CHECK_FALSE(content->cut_off);
      REQUIRE(run.hold->GoOn(content->records));
      REQUIRE(AppendNow(*run.hold, "three", Journal::Reach::kPowerLoss));
    }
    under_test.EndProcess();
    {
      const AbandonedRun run = ClaimOne(under_test.runs());
      auto all = kept;
      all.emplace_back("three");
      CHECK(run.hold->ReadJournal()->records == all);
      REQUIRE(run.hold->Finish(Sample(1, {}, "one")));
    }
    under_test.EndProcess();
    CHECK(under_test.runs().ClaimAbandoned(10)->empty());
    CHECK(under_test.store().LoadInteraction(Chat1(), Id(1)) == Sample(1, {}, "one"));
  });
}

TEST_CASE("RunStore: a run that ends at once keeps no journal", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    auto hold = Begun(under_test.runs(), {.chat = Chat1(), .expected_head = kNone});
    CHECK_FALSE(hold->keeps_journal());
    REQUIRE(hold->Finish(Sample(1, {}, "")));
    CHECK(under_test.store().LoadSummary(Chat1())->head == Id(1));
  });
}

TEST_CASE("RunStore: the chat of a run that is set aside continues", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    auto hold = Begun(under_test.runs(), AtHead(kNone));
    hold->SetAside();
    CHECK(Begun(under_test.runs(), AtHead(kNone))->id() == Id(2));
  });
}

}  // namespace reprise::run_store_conformance_test
