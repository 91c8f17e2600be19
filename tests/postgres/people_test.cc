// A tenant's data beside chats, in a database that several processes share.
#include <algorithm>
#include <thread>

#include "base/system.h"
#include "remote/postgres/database.h"
#include "remote/postgres/postgres_store.h"
#include "remote/postgres/postgres_tenant_stores.h"
#include "remote/postgres/schema.h"
#include "store/audit_file.h"
#include "support/postgres_server.h"
#include "support/test.h"

namespace reprise::people_test {
namespace {

// One process with one tenant of the database.
struct Instance {
  Instance(const std::shared_ptr<const KeySet>& keys, const std::string& tenant) {
    auto opened = Database::Open({.url = test::PostgresServer::Get()->url()});
    REQUIRE(opened);
    database = *std::move(opened);
    REQUIRE(MigrateSchema(*database));
    store =
        std::make_unique<PostgresStore>(PostgresStore::Options{.database = *database, .keys = keys, .tenant = tenant});
    all = std::make_unique<TenantDatabase>(*database, TenantDatabase::kAll);
  }
  std::vector<Problem> AuditProblems() const {
    VerifyReport report;
    VerifyAudit(DatabaseFiles::kRoot, store->keys(), store->files(), report);
    return report.problems;
  }

  std::unique_ptr<Database> database;
  std::unique_ptr<PostgresStore> store;
  std::unique_ptr<TenantDatabase> all;
};

std::string FirstKind(const Instance& instance) {
  const auto problems = instance.AuditProblems();
  return problems.empty() ? "none" : problems.front().kind;
}

std::shared_ptr<const KeySet> Keys(const std::string& tenant) {
  static const KeySet keys = KeySet::Generate();
  return std::make_shared<const KeySet>(keys.BoundTo(tenant));
}

std::string NewTenant() { return "tenant_" + RandomHex(8); }

AuditEntry Entry(int number) {
  return {.event = AuditEntry::Event::kStarted,
          .chat_id = "c",
          .interaction_id = "int_001",
          .call_id = "call_" + std::to_string(number),
          .tool_name = "echo",
          .arguments_digest = "sha256:" + std::string(64, '0')};
}

StandingGrant EchoGrant() {
  return {.grant = {"echo", "sha256:" + std::string(64, '1'), "sha256:" + std::string(64, '2')},
          .tool_input = "{}",
          .created_at = Now()};
}

}  // namespace

TEST_CASE("PostgresAuditLog: lines that processes add at once are one chain, which is valid", "[postgres]") {
  if (!test::PostgresServer::Get()) return;
  const std::string tenant = NewTenant();
  Instance one(Keys(tenant), tenant), two(Keys(tenant), tenant);
  constexpr int kEach = 60;
  {
    PostgresAuditLog first(*one.database, *one.store), second(*two.database, *two.store);
    const auto add = [](PostgresAuditLog& log, int begin) {
      for (int i = begin; i < begin + kEach; ++i) REQUIRE(log.Append(Entry(i)));
    };
    std::thread other([&] { add(second, 1000); });
    add(first, 0);
    other.join();

    const auto page = first.Read(0, 100);
    REQUIRE(page);
    CHECK(page->lines.size() == 100);
    REQUIRE(page->next == 100);
    const auto rest = second.Read(*page->next, 100);
    REQUIRE(rest);
    CHECK(rest->lines.size() == 2 * kEach - 100);
    CHECK_FALSE(rest->next);
  }
  CHECK(one.AuditProblems().empty());

  const auto change = [&](const char* sql) { REQUIRE(one.all->Execute({.sql = sql, .values = {tenant}})); };
  SECTION("a line that was changed") {
    change("update reprise.audit set line = replace(line, 'started', 'refused') where tenant = $1 and seq = 7");
    CHECK(FirstKind(one) == "auth");
  }
  SECTION("a line that is gone") {
    change("delete from reprise.audit where tenant = $1 and seq = 7");
    CHECK(FirstKind(one) == "missing");
  }
  SECTION("the end that is gone, also when lines were added since") {
    change("delete from reprise.audit where tenant = $1 and seq > 100");
    CHECK(FirstKind(one) == "missing");
    REQUIRE(PostgresAuditLog(*two.database, *two.store).Append(Entry(0)));
    CHECK_FALSE(one.AuditProblems().empty());
  }
  SECTION("one of another tenant") {
    const std::string other = NewTenant();
    Instance elsewhere(Keys(other), other);
    REQUIRE(one.all->Execute(
        {.sql = "insert into reprise.audit select $2, seq, line, digest from reprise.audit where tenant = $1",
         .values = {tenant, other}}));
    REQUIRE(one.all->Execute(
        {.sql = "insert into reprise.folder_files select $2, name, content from reprise.folder_files where "
                "tenant = $1",
         .values = {tenant, other}}));
    CHECK_FALSE(elsewhere.AuditProblems().empty());
  }
}

TEST_CASE("PostgresGrantStore: a grant or revocation by one process counts for all of them", "[postgres]") {
  if (!test::PostgresServer::Get()) return;
  const std::string tenant = NewTenant(), other = NewTenant();
  Instance one(Keys(tenant), tenant), two(Keys(tenant), tenant);
  PostgresGrantStore first(*one.database, tenant, Keys(tenant)), second(*two.database, tenant, Keys(tenant));
  const StandingGrant grant = EchoGrant();
  CHECK_FALSE(second.Covers(grant.grant));
  CHECK(first.Add(grant).value());
  CHECK_FALSE(second.Add(grant).value());
  CHECK(second.Covers(grant.grant));
  Grant on_other_terms = grant.grant;
  on_other_terms.terms_digest = "sha256:" + std::string(64, '3');
  CHECK_FALSE(second.Covers(on_other_terms));
  on_other_terms.terms_digest.clear();
  CHECK_FALSE(second.Covers(on_other_terms));
  const auto listed = second.List();
  REQUIRE(listed);
  REQUIRE(listed->size() == 1);
  CHECK(listed->front().grant == grant.grant);

  // A grant that an administrator of the database copied to another tenant.
  PostgresGrantStore elsewhere(*two.database, other, Keys(other));
  REQUIRE(
      one.all->Execute({.sql = "insert into reprise.grants select $2, id, record from reprise.grants where tenant = $1",
                        .values = {tenant, other}}));
  CHECK_FALSE(elsewhere.Covers(grant.grant));
  CHECK(elsewhere.List().error().code == ErrorCode::kCorruption);

  const std::string id(
      one.all->Execute({.sql = "select id from reprise.grants where tenant = $1", .values = {tenant}})->text(0, 0));
  REQUIRE(second.Remove(id));
  CHECK_FALSE(first.Covers(grant.grant));
  CHECK(first.Remove(id).error().code == ErrorCode::kNotFound);
}

TEST_CASE("PostgresDailyUsage: the counts of all processes are one sum for each tenant", "[postgres]") {
  if (!test::PostgresServer::Get()) return;
  const std::string tenant = NewTenant(), other = NewTenant();
  Instance one(nullptr, tenant), two(nullptr, tenant);
  PostgresDailyUsage first(*one.database, tenant), second(*two.database, tenant), elsewhere(*two.database, other);
  CHECK(first.Today() == 0);
  for (int i = 0; i < 3; ++i) REQUIRE(first.Add(10));
  REQUIRE(second.Add(5));
  REQUIRE(elsewhere.Add(100));
  CHECK(first.Today() == 35);
  CHECK(second.Today() == 35);
  CHECK(PostgresDailyUsage(*one.database, tenant).Today() == 35);  // after a restart
  CHECK(elsewhere.Today() == 100);
}

TEST_CASE("Database: after a statement failed for one tenant, the next one has its own tenant", "[postgres]") {
  if (!test::PostgresServer::Get()) return;
  const std::string tenant = NewTenant();
  Instance one(nullptr, tenant);
  TenantDatabase mine(*one.database, tenant);
  const Statement whose{.sql = "select coalesce(current_setting('reprise.tenant', true), '')"};
  CHECK(mine.Execute(whose)->text(0, 0) == tenant);
  CHECK(one.database->Execute(whose)->text(0, 0).empty());
  CHECK(mine.Execute({.sql = "select 1 / 0"}).error().detail.starts_with("22012"));
  CHECK(one.database->Execute(whose)->text(0, 0).empty());
  CHECK(mine.Execute(whose)->text(0, 0) == tenant);
}

}  // namespace reprise::people_test
