// The list of chats that several servers change.
#include "base/system.h"
#include "remote/postgres/lease.h"
#include "remote/postgres/postgres_store.h"
#include "remote/postgres/schema.h"
#include "store/sample.h"
#include "support/postgres_server.h"
#include "support/test.h"

namespace reprise::listing_test {
namespace {

std::string Titles(PostgresStore& store, std::size_t limit) {
  const auto page = store.ListPage(std::nullopt, limit, {});
  REQUIRE(page);
  std::string titles;
  for (const ChatSummary& each : page->chats) titles += each.title + " ";
  return titles + (page->more ? "..." : "");
}

}  // namespace

TEST_CASE("PostgresStore: a page shows what other servers have changed since the last one", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  const auto database = *Database::Open({.url = test::PostgresServer::Get()->url()});
  REQUIRE(MigrateSchema(*database));
  const std::string tenant = "tenant_" + RandomHex(8);
  const auto keys = std::make_shared<const KeySet>(KeySet::Generate());
  const auto open = [&] {
    return std::make_unique<PostgresStore>(PostgresStore::Options{
        .database = *database, .keys = keys, .tenant = tenant, .instance = Lease::MakeInstance()});
  };
  const auto here = open(), there = open();
  const auto named = [](const char* name) { return *ChatId::Parse(name); };
  // Chats are listed by the time of their last change, which is in milliseconds.
  const auto later = [](PostgresStore& store) -> PostgresStore& {
    for (const Timestamp now = Now(); Now() == now;) continue;
    return store;
  };
  CHECK(Titles(*here, 2) == "");
  REQUIRE(there->CreateChat(named("a"), {.title = "one"}));
  CHECK(Titles(*here, 2) == "one ");
  REQUIRE(later(*here).CreateChat(named("b"), {.title = "two"}));
  CHECK(Titles(*there, 2) == "two one ");
  CHECK(Titles(*there, 1) == "two ...");
  REQUIRE(later(*there).ChangeChat(named("a"), {.title = "changed"}));
  CHECK(Titles(*here, 2) == "changed two ");

  REQUIRE(there->ReserveInteraction(named("b")));
  Interaction turn = Sample(1, {}, "hello");
  turn.chat_id = named("b");
  turn.completed_at = Now() + std::chrono::hours(1);
  REQUIRE(there->SaveInteraction(turn));
  CHECK(Titles(*here, 2) == "two changed ");
  CHECK(here->ListChats()->front().head == Id(1));

  REQUIRE(there->DeleteChat(named("a")));
  CHECK(Titles(*here, 2) == "two ");
  REQUIRE(there->CreateChat(named("a"), {.title = "again"}));
  CHECK(Titles(*here, 2) == "two again ");
  CHECK(here->ListUnreadableChats()->empty());
}

TEST_CASE("PostgresStore: an unreadable chat is listed as such, until it can be read", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  const auto database = *Database::Open({.url = test::PostgresServer::Get()->url()});
  REQUIRE(MigrateSchema(*database));
  const std::string tenant = "tenant_" + RandomHex(8);
  const auto store =
      std::make_unique<PostgresStore>(PostgresStore::Options{.database = *database,
                                                             .keys = std::make_shared<const KeySet>(KeySet::Generate()),
                                                             .tenant = tenant,
                                                             .instance = Lease::MakeInstance()});
  REQUIRE(store->CreateChat(Chat1(), {.title = "mine"}));
  CHECK(Titles(*store, 2) == "mine ");
  TenantDatabase mine(*database, tenant);
  const auto rows =
      mine.Execute({.sql = "select index_record from reprise.chats where tenant = $1", .values = {tenant}});
  REQUIRE(rows);
  const auto replace = [&](std::string record) {
    REQUIRE(mine.Execute({.sql = "update reprise.chats set version = version + 1, index_record = $2 where tenant = $1",
                          .values = {tenant, SqlValue::Bytes(std::move(record))}}));
  };
  replace(R"({"no":"index"})");
  CHECK(Titles(*store, 2) == "");
  const auto unreadable = store->ListUnreadableChats();
  REQUIRE(unreadable->size() == 1);
  CHECK(unreadable->front().id == Chat1());
  replace(std::string(rows->text(0, 0)));
  CHECK(Titles(*store, 2) == "mine ");
  CHECK(store->ListUnreadableChats()->empty());
}

}  // namespace reprise::listing_test
