// The facts that hold for every JournalStore that keeps journals.
#include "store/conformance/store_under_test.h"
#include "store/sample.h"
#include "support/test.h"

namespace reprise::journal_store_conformance_test {
namespace {

// Runs the facts on each kind of store that keeps journals.
template <typename Facts>
void OnEachThatKeeps(Facts facts) {
  OnEachStore([&](StoreUnderTest& under_test) {
    REQUIRE(under_test.store().ListUnfinished());
    const auto id = under_test.store().ReserveInteraction(Chat1());
    REQUIRE(id);
    auto journal = under_test.store().BeginJournal(Chat1(), *id, {"begun"});
    REQUIRE(journal);
    if (*journal == nullptr) return;
    facts(under_test, *id, **journal);
  });
}

}  // namespace

TEST_CASE("JournalStore: the journal of a process that ended is read back, and known as unfinished", "[store]") {
  OnEachThatKeeps([](StoreUnderTest& under_test, InteractionId id, Journal& journal) {
    REQUIRE(journal.Append("one", Journal::Reach::kProcess));
    REQUIRE(journal.Append(std::string("t\0wo\xff", 5), Journal::Reach::kPowerLoss));
    under_test.Reopen();
    JournalStore& journals = under_test.store();
    CHECK(journals.ListUnfinished() == std::vector<InteractionRef>{{Chat1(), id}});
    const auto content = journals.ReadJournal(Chat1(), id);
    REQUIRE(content);
    CHECK(content->records == std::vector<std::string>{"begun", "one", std::string("t\0wo\xff", 5)});
    CHECK_FALSE(content->cut_off);
  });
}

TEST_CASE("JournalStore: a journal that is dropped, or whose interaction is saved, is gone", "[store]") {
  for (const bool is_saved : {true, false}) {
    OnEachThatKeeps([is_saved](StoreUnderTest& under_test, InteractionId id, Journal&) {
      if (is_saved) {
        REQUIRE(under_test.store().SaveInteraction(Sample(id.number(), {}, "done")));
      } else {
        REQUIRE(under_test.store().DropJournal(Chat1(), id));
      }
      CHECK(under_test.store().ReadJournal(Chat1(), id).error().code == ErrorCode::kNotFound);
      under_test.Reopen();
      CHECK(under_test.store().ListUnfinished()->empty());
    });
  }
}

TEST_CASE("JournalStore: a journal that continues another one has its records", "[store]") {
  OnEachThatKeeps([](StoreUnderTest& under_test, InteractionId id, Journal& journal) {
    REQUIRE(journal.Append("one", Journal::Reach::kProcess));
    under_test.Reopen();
    REQUIRE(under_test.store().ListUnfinished());
    const auto content = under_test.store().ReadJournal(Chat1(), id);
    REQUIRE(content);
    {
      const auto next = under_test.store().BeginJournal(Chat1(), id, content->records);
      REQUIRE((next && *next));
      REQUIRE((*next)->Append("two", Journal::Reach::kProcess));
    }
    under_test.Reopen();
    CHECK(under_test.store().ReadJournal(Chat1(), id)->records == std::vector<std::string>{"begun", "one", "two"});
  });
}

}  // namespace reprise::journal_store_conformance_test
