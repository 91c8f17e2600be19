// A chat's queue that earlier versions have kept as one row becomes a row for each message.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/system.h"
#include "domain/codec.h"
#include "remote/postgres/database.h"
#include "remote/postgres/lease.h"
#include "remote/postgres/postgres_store.h"
#include "remote/postgres/schema.h"
#include "store/record.h"
#include "store/sample.h"
#include "support/postgres_server.h"
#include "support/test.h"

namespace reprise::old_queue_test {
namespace {

QueuedMessage Message(const std::string& id) {
  return {
      .id = "queued_" + id, .user_message = "text of " + id, .created_at = *ParseTimestamp("2026-11-21T10:00:00.000Z")};
}

struct World {
  World() {
    database = *Database::Open({.url = test::PostgresServer::Get()->url()});
    REQUIRE(MigrateSchema(*database));
    store = std::make_unique<PostgresStore>(PostgresStore::Options{
        .database = *database, .keys = keys, .tenant = tenant, .instance = Lease::MakeInstance()});
    REQUIRE(store->CreateChat(Chat1(), {.title = "x"}));
  }
  // Writes a queue as they did.
  void KeepAsAWhole(const std::vector<QueuedMessage>& messages) {
    Json listed = Json::array();
    for (const QueuedMessage& message : messages) listed.push_back(ToJson(message));
    const Json json = {{"schema", 1}, {"chat_id", Chat1().str()}, {"messages", std::move(listed)}};
    const auto record = MakeRecordFormat(keys)->Seal({.chat = Chat1(), .queue = true}, {}, DumpJson(json));
    REQUIRE(record);
    TenantDatabase mine(*database, tenant);
    REQUIRE(mine.Execute({.sql = "insert into reprise.queue(tenant, chat, record) values ($1, $2, $3)",
                          .values = {tenant, Chat1().str(), SqlValue::Bytes(record->text)}}));
  }
  std::vector<std::string> Waiting() {
    std::vector<std::string> ids;
    const auto waiting = store->queues().LoadQueue(Chat1());
    REQUIRE(waiting);
    for (const WaitingMessage& each : *waiting) {
      CHECK(each.message == Message(each.message.id.substr(7)));
      ids.push_back(each.message.id.substr(7));
    }
    return ids;
  }
  std::int64_t OldRows() {
    TenantDatabase mine(*database, tenant);
    return mine.Execute({.sql = "select count(*) from reprise.queue where tenant = $1", .values = {tenant}})
        ->number(0, 0);
  }
  void OldServer(bool lives) {
    TenantDatabase all(*database, TenantDatabase::kAll);
    REQUIRE(all.Execute({.sql = "insert into reprise.instances(id, lease_until, version, dead) values ($1::uuid, "
                                "clock_timestamp() + interval '1 hour', 'old', $2::boolean) on conflict (id) do update "
                                "set dead = excluded.dead",
                         .values = {old_server, lives ? "false" : "true"}}));
  }

  const std::string tenant = "tenant_" + RandomHex(8), old_server = Lease::MakeInstance();
  const std::shared_ptr<const KeySet> keys = std::make_shared<const KeySet>(KeySet::Generate());
  std::unique_ptr<Database> database;
  std::unique_ptr<PostgresStore> store;
};

using Ids = std::vector<std::string>;

}  // namespace

TEST_CASE("An old queue goes before later messages, in its order, and its row is removed", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  World world;
  REQUIRE(world.store->queues().AddQueued(Chat1(), Message("new")));
  world.KeepAsAWhole({Message("a"), Message("b"), Message("c")});
  CHECK(world.store->queues().ListQueues() == std::vector{Chat1()});
  CHECK(world.Waiting() == Ids{"a", "b", "c", "new"});
  CHECK(world.OldRows() == 0);
  REQUIRE(world.store->queues().RemoveQueued(Chat1(), "queued_b"));
  // An old server has written a whole queue once more.
  world.KeepAsAWhole({Message("d"), Message("e")});
  CHECK(world.Waiting() == Ids{"d", "e", "a", "c", "new"});
  REQUIRE(world.store->queues().ClearQueue(Chat1()));
  CHECK(world.Waiting().empty());
}

TEST_CASE("An old queue is left alone as long as a server runs that keeps it as a whole", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  World world;
  world.KeepAsAWhole({Message("a")});
  world.OldServer(/*lives=*/true);
  CHECK(world.Waiting().empty());
  CHECK(world.store->queues().ListQueues()->empty());
  CHECK(world.OldRows() == 1);
  world.OldServer(/*lives=*/false);
  CHECK(world.Waiting() == Ids{"a"});
  CHECK(world.OldRows() == 0);
}

TEST_CASE("A record of another message is not taken for a queued message", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  World world;
  for (const char* id : {"a", "b"}) REQUIRE(world.store->queues().AddQueued(Chat1(), Message(id)));
  TenantDatabase all(*world.database, TenantDatabase::kAll);
  REQUIRE(
      all.Execute({.sql = "update reprise.queued q set record = o.record from reprise.queued o where q.tenant = $1 and "
                          "o.tenant = $1 and q.id = 'queued_a' and o.id = 'queued_b'",
                   .values = {world.tenant}}));
  CHECK(world.store->queues().LoadQueue(Chat1()).error().reason == "integrity_swap");
  REQUIRE(world.store->queues().ClearQueue(Chat1()));
  CHECK(world.Waiting().empty());
}

}  // namespace reprise::old_queue_test
