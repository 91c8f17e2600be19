// A chat is added to a database as a whole or not at all.
#include "base/system.h"
#include "remote/postgres/lease.h"
#include "remote/postgres/postgres_store.h"
#include "remote/postgres/schema.h"
#include "store/sample.h"
#include "support/postgres_server.h"
#include "support/test.h"

namespace reprise::import_test {
namespace {

IncomingChat Coming() {
  return {.summary = {.id = Chat1(),
                      .title = "coming",
                      .created_at = At(1),
                      .updated_at = At(2),
                      .head = Id(1),
                      .head_status = InteractionStatus::kCompleted},
          .interactions = {Id(1)},
          .load = [](InteractionId) -> Result<Interaction> { return Sample(1, {}, "one"); }};
}

}  // namespace

TEST_CASE("PostgresStore: no part stays of a chat whose files or queue cannot be stored", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  const auto database = *Database::Open({.url = test::PostgresServer::Get()->url()});
  REQUIRE(MigrateSchema(*database));
  const auto store = std::make_unique<PostgresStore>(PostgresStore::Options{
      .database = *database, .keys = nullptr, .tenant = "tenant_" + RandomHex(8), .instance = Lease::MakeInstance()});
  IncomingChat coming = Coming();
  ErrorCode expected{};
  SECTION("a file that cannot be read") {
    const StoredFile file = MakeFile("a.txt", "text/plain", "content").value();
    coming.files = {file.info.id, FileId::Random()};
    coming.load_file = [file](const FileId& id) -> Result<StoredFile> {
      if (id == file.info.id) return file;
      return Fail(ErrorCode::kIo, "it cannot be read");
    };
    expected = ErrorCode::kIo;
  }
  SECTION("more messages than may wait") {
    for (std::size_t i = 0; i <= kMaxQueued; ++i) {
      coming.queue.push_back({.id = "queued_" + std::to_string(i), .user_message = "next", .created_at = At(3)});
    }
    expected = ErrorCode::kUnavailable;
  }
  const auto imported = store->ImportChat(coming);
  REQUIRE_FALSE(imported);
  CHECK(imported.error().code == expected);
  CHECK(IsNotFound(store->LoadSummary(Chat1()).error()));
  CHECK(store->ListTrash()->empty());
  // The name is free again.
  CHECK(store->ImportChat(Coming()));
  CHECK(store->LoadInteraction(Chat1(), Id(1)) == Sample(1, {}, "one"));
}

}  // namespace reprise::import_test
