// Runs that several processes share: which of them may write, and which may not any more.
#include <future>
#include <thread>

#include "base/local_signals.h"
#include "base/system.h"
#include "remote/postgres/database.h"
#include "remote/postgres/lease.h"
#include "remote/postgres/postgres_run_store.h"
#include "remote/postgres/postgres_store.h"
#include "remote/postgres/schema.h"
#include "store/file_journal.h"
#include "store/sample.h"
#include "support/postgres_server.h"
#include "support/test.h"

namespace reprise::fencing_test {
namespace {

std::unique_ptr<Database> Opened() {
  auto database = Database::Open({.url = test::PostgresServer::Get()->url()});
  REQUIRE(database);
  return *std::move(database);
}

// The shared parts of a test's instances.
struct World {
  const std::shared_ptr<const KeySet> keys = std::make_shared<const KeySet>(KeySet::Generate());
  mutable LocalSignals signals{};
  const std::string tenant = "tenant_" + RandomHex(8);
};

// One process, as the database sees it.
struct Instance {
  explicit Instance(const World& world) : database(Opened()), lease_database(Opened()) {
    REQUIRE(MigrateSchema(*database));
    store = std::make_unique<PostgresStore>(
        PostgresStore::Options{.database = *database, .keys = world.keys, .tenant = world.tenant});
    lease = *Lease::Take(*lease_database, Lease::MakeInstance(), "test");
    signals = std::make_shared<RunSignals>(*database, world.signals, lease->instance(), [] {});
    runs.emplace(*database, *store, *lease, *signals);
  }
  // As if it had been unreachable for long; its process lives on.
  void LoseLease(Database& through) {
    REQUIRE(through.Execute(
        {.sql = "update reprise.instances set dead = true where id = $1::uuid", .values = {lease->instance()}}));
  }

  std::unique_ptr<Database> database, lease_database;
  std::unique_ptr<PostgresStore> store;
  std::unique_ptr<Lease> lease;
  std::shared_ptr<RunSignals> signals;
  std::optional<PostgresRunStore> runs;
};

Result<void> AppendNow(RunHold& hold, std::string_view record) {
  const auto kept = std::make_shared<std::promise<Result<void>>>();
  hold.Append(record, Journal::Reach::kPowerLoss,
              [kept](Result<void> outcome) { kept->set_value(std::move(outcome)); });
  return kept->get_future().get();
}

std::unique_ptr<RunHold> Begun(Instance& instance) {
  auto hold = instance.runs->Begin({.chat = Chat1(), .record = "begun"});
  REQUIRE(hold);
  return *std::move(hold);
}

}  // namespace

TEST_CASE("Postgres: if several runs begin in one chat at once, one runs, and the others are told which",
          "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  const World world;
  Instance a(world), b(world);
  for (std::uint32_t round = 1; round <= 10; ++round) {
    Result<std::unique_ptr<RunHold>> at_a = Fail(Error{}), at_b = Fail(Error{});
    {
      const std::jthread one([&] { at_a = a.runs->Begin({.chat = Chat1(), .record = "a"}); });
      const std::jthread other([&] { at_b = b.runs->Begin({.chat = Chat1(), .record = "b"}); });
    }
    REQUIRE(at_a.has_value() != at_b.has_value());
    auto& won = at_a ? at_a : at_b;
    const auto& lost = at_a ? at_b : at_a;
    CHECK(lost.error().reason == "busy");
    CHECK(lost.error().details_json == R"({"interaction_id":")" + (*won)->id().str() + R"("})");
    CHECK((at_a ? b : a).runs->HeldElsewhere(Chat1()).value() == (*won)->id());
    CHECK_FALSE((at_a ? a : b).runs->HeldElsewhere(Chat1())->has_value());
    REQUIRE((*won)->Finish(Sample(Chat1(), (*won)->id(), {}, std::to_string(round))));
  }
}

TEST_CASE("Postgres: an instance whose run was taken up writes nothing any more", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  const World world;
  Instance a(world), b(world);
  const auto old_hold = Begun(a);
  REQUIRE(AppendNow(*old_hold, "one"));
  CHECK(b.runs->ClaimAbandoned(10)->empty());  // it lives
  a.LoseLease(*b.database);
  auto claimed = b.runs->ClaimAbandoned(10);
  REQUIRE(claimed);
  REQUIRE(claimed->size() == 1);
  RunHold& hold = *claimed->front().hold;

  const auto late = AppendNow(*old_hold, "two");
  REQUIRE_FALSE(late);
  CHECK(late.error().reason == "fenced");
  CHECK(old_hold->Finish(Sample(1, {}, "of the old one")).error().reason == "fenced");
  CHECK(hold.ReadJournal()->records == std::vector<std::string>{"begun", "one"});
  REQUIRE(hold.GoOn({"begun", "one"}));
  CHECK(AppendNow(*old_hold, "three").error().reason == "fenced");
  REQUIRE(AppendNow(hold, "four"));
  CHECK(hold.ReadJournal()->records == std::vector<std::string>{"begun", "one", "four"});
  REQUIRE(hold.Finish(Sample(1, {}, "of the new one")));
  CHECK(a.store->LoadInteraction(Chat1(), Id(1)) == Sample(1, {}, "of the new one"));
}

namespace {

// The bytes before the sealed text in a journal's row that is one record.
constexpr std::size_t kRowPrefix = 8;

std::string RowAt(Instance& instance, int epoch, int position) {
  TenantDatabase database(*instance.database, instance.store->tenant());
  const auto rows =
      database.Execute({.sql = "select record from reprise.journal where tenant = $1 and epoch = $2::int and "
                               "position = $3::int",
                        .values = {instance.store->tenant(), std::int64_t{epoch}, std::int64_t{position}}});
  REQUIRE(rows);
  REQUIRE(rows->size() == 1);
  return std::string(rows->text(0, 0));
}

// Two texts that were sealed under one key at one position show how they differ.
bool TellTheirDifference(std::string_view sealed_a, std::string_view sealed_b, std::string_view a, std::string_view b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if ((sealed_a[kRowPrefix + i] ^ sealed_b[kRowPrefix + i]) != (a[i] ^ b[i])) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("Postgres: a new owner seals nothing at a position that the old one may have used", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  const World world;
  Instance a(world), b(world);
  const std::string old_text = "what the old owner has said", new_text = "and what the new one says..";
  const auto old_hold = Begun(a);
  REQUIRE(AppendNow(*old_hold, old_text));
  const std::string old_row = RowAt(a, 1, 1), old_first = RowAt(a, 1, 0);
  a.LoseLease(*b.database);
  auto claimed = b.runs->ClaimAbandoned(10);
  REQUIRE(claimed);
  RunHold& hold = *claimed->front().hold;
  REQUIRE(hold.GoOn({"begun"}));  // as if the other record had been lost on its way
  REQUIRE(AppendNow(hold, new_text));
  CHECK_FALSE(TellTheirDifference(old_row, RowAt(b, 2, 1), old_text, new_text));

  // The planted fault: the old key.
  const auto again = JournalCipher::FromHeader({.chat = Chat1(), .interaction = Id(1)},
                                               old_first.substr(0, old_first.find('\n')), world.keys.get());
  REQUIRE(again);
  std::string planted(kRowPrefix, '\0');
  REQUIRE(again->Seal(planted, 1, "", new_text));
  CHECK(TellTheirDifference(old_row, planted, old_text, new_text));
}

TEST_CASE("Postgres: a new owner waits for an append under way, and sees it", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  const World world;
  Instance a(world), b(world);
  const auto hold = Begun(a);
  a.LoseLease(*b.database);
  std::vector<std::future<bool>> appended;
  for (int i = 0; i < 200; ++i) {
    const auto told = std::make_shared<std::promise<bool>>();
    appended.push_back(told->get_future());
    hold->Append(std::to_string(i), Journal::Reach::kProcess,
                 [told](const Result<void>& outcome) { told->set_value(outcome.has_value()); });
  }
  // A run that is being written is skipped until the next look.
  auto claimed = b.runs->ClaimAbandoned(10);
  while (claimed && claimed->empty()) {
    a.LoseLease(*b.database);
    claimed = b.runs->ClaimAbandoned(10);
  }
  REQUIRE(claimed);
  REQUIRE(claimed->size() == 1);
  const auto content = claimed->front().hold->ReadJournal();
  REQUIRE(content);
  std::size_t kept = 0;
  for (auto& each : appended) kept += each.get() ? 1 : 0;
  // The new owner has read the records that were reported as kept: none came later, none is missing.
  CHECK(content->records.size() == kept + 1);
}

TEST_CASE("Postgres: synced records survive a crash of the database, and writing continues", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  const World world;
  Instance a(world);
  const auto hold = Begun(a);
  REQUIRE(AppendNow(*hold, "before"));
  const auto kept = std::make_shared<std::promise<Result<void>>>();
  test::PostgresServer::Get()->Crash();
  hold->Append("after", Journal::Reach::kPowerLoss,
               [kept](Result<void> outcome) { kept->set_value(std::move(outcome)); });
  REQUIRE(kept->get_future().get());
  CHECK(hold->ReadJournal()->records == std::vector<std::string>{"begun", "before", "after"});
  REQUIRE(hold->Finish(Sample(1, {}, "done")));
  CHECK(a.store->LoadInteraction(Chat1(), Id(1)) == Sample(1, {}, "done"));
}

TEST_CASE("Postgres: a turn finds its rows by their keys, even if the planner thinks that a scan is cheap",
          "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  const World world;
  Instance a(world);
  REQUIRE(a.database->Execute({.sql = "select set_config(name, '0', false) from unnest(array['seq_page_cost', "
                                      "'cpu_tuple_cost', 'cpu_operator_cost']) as costs(name)"}));
  const auto scans = [&] {
    REQUIRE(a.database->Execute({.sql = "select pg_stat_force_next_flush()"}));
    const auto rows = a.lease_database->Execute(
        {.sql = "select sum(seq_scan)::bigint from pg_stat_user_tables where schemaname = 'reprise' and relname in "
                "('chats', 'runs', 'journal', 'interactions')"});
    REQUIRE(rows);
    return rows->number(0, 0);
  };
  REQUIRE(a.database->Execute({.sql = "select count(*) from reprise.runs"}));
  const std::int64_t before = scans();
  CHECK(before > 0);  // that scan is counted
  RunBeginning beginning{
      .chat = Chat1(), .expected_head = std::optional<InteractionId>(), .makes_chat = true, .record = "begun"};
  for (std::uint32_t turn = 1; turn <= 3; ++turn) {
    const auto hold = a.runs->Begin(beginning);
    REQUIRE(hold);
    for (int record = 0; record < 50; ++record) (*hold)->Append("more", Journal::Reach::kProcess, [](const auto&) {});
    REQUIRE(AppendNow(**hold, "last"));
    REQUIRE((*hold)->Finish(Sample(Chat1(), (*hold)->id(), {}, "done")));
    const auto known = a.store->LoadKnownHead(Chat1());
    REQUIRE(known);
    beginning.expected_head = known->summary.head;
    beginning.expected_version = known->version;
    beginning.makes_chat = false;
  }
  CHECK(scans() == before);
}

TEST_CASE("Postgres: the remains of an ended run go after a minute, but not a new run of its number", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  const World world;
  Instance a(world);
  const auto count = [&](const char* sql) {
    const auto rows = a.lease_database->Execute({.sql = sql, .values = {world.tenant}});
    REQUIRE(rows);
    return rows->number(0, 0);
  };
  const auto records = [&] { return count("select count(*) from reprise.journal where tenant = $1"); };
  const auto ended = [&] { return count("select count(*) from reprise.ended_runs where tenant = $1"); };
  const auto let_a_minute_pass = [&] {
    REQUIRE(
        a.database->Execute({.sql = "update reprise.ended_runs set at = at - interval '61 seconds' where tenant = $1",
                             .values = {world.tenant}}));
  };
  const auto hold = Begun(a);
  REQUIRE(AppendNow(*hold, "more"));
  REQUIRE(hold->Finish(Sample(1, {}, "done")));
  a.lease->Sweep();
  CHECK(records() == 2);
  CHECK(ended() == 1);
  REQUIRE(a.store->DeleteChat(Chat1()));
  const auto again = Begun(a);
  REQUIRE(again->id() == Id(1));
  let_a_minute_pass();
  a.lease->Sweep();
  CHECK(records() == 1);
  CHECK(ended() == 0);
  REQUIRE(again->Finish(Sample(1, {}, "done")));
  let_a_minute_pass();
  a.lease->Sweep();
  CHECK(records() == 0);
  CHECK(count("select count(*) from reprise.runs where tenant = $1") == 0);
}

TEST_CASE("Postgres: the text of a chat stands nowhere in the database", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  const World world;
  Instance a(world);
  const std::string canary = "canary" + RandomHex(8);
  const auto hold = Begun(a);
  REQUIRE(AppendNow(*hold, canary));
  const auto is_there = [&] {
    const auto rows = a.database->Execute(
        {.sql =
             "select query_to_xml('select * from reprise.' || tablename, true, false, '')::text from pg_tables where "
             "schemaname = 'reprise'"});
    REQUIRE(rows);
    // Bytes come as base64 there, so text in them is looked for separately.
    const auto found = a.database->Execute(
        {.sql = "select exists (select 1 from reprise.journal where position($1::bytea in record) > 0) or exists "
                "(select 1 from reprise.interactions where position($1::bytea in record) > 0) or exists (select 1 from "
                "reprise.chats where position($1::bytea in coalesce(index_record, '')) > 0)",
         .values = {SqlValue::Bytes(canary)}});
    REQUIRE(found);
    bool said = found->truth(0, 0);
    for (std::size_t row = 0; row < rows->size(); ++row)
      said = said || rows->text(row, 0).find(canary) != std::string::npos;
    return said;
  };
  CHECK_FALSE(is_there());
  REQUIRE(hold->Finish(Sample(1, {}, canary)));
  CHECK(a.store->LoadSummary(Chat1())->title == canary);
  CHECK_FALSE(is_there());
}

}  // namespace reprise::fencing_test
