#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/local_signals.h"
#include "base/posix_file_system.h"
#include "base/system.h"
#include "crypto/key_set.h"
#include "remote/postgres/lease.h"
#include "remote/postgres/postgres_run_store.h"
#include "remote/postgres/postgres_store.h"
#include "remote/postgres/postgres_tenant_stores.h"
#include "remote/postgres/schema.h"
#include "remote/postgres/signals.h"
#include "reprise/interaction_store.h"
#include "store/file_interaction_store.h"
#include "store/local_run_store.h"
#include "store/memory_interaction_store.h"
#include "support/memory_file_system.h"
#include "support/pgbouncer_server.h"
#include "support/postgres_server.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise {

// One kind of InteractionStore with everything that it needs, empty at first.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;
  virtual InteractionStore& store() = 0;
  QueueStore& queues() { return store().queues(); }
  virtual RunStore& runs() = 0;
  // Closes the store and opens it again on the same content; a store that lives in memory only stays as it is.
  virtual void Reopen() = 0;
  // The same after a kill of its process: its runs are abandoned.
  virtual void EndProcess() { Reopen(); }
};

class MemoryStoreUnderTest final : public StoreUnderTest {
 public:
  InteractionStore& store() override { return store_; }
  RunStore& runs() override { return runs_; }
  void Reopen() override {}

 private:
  MemoryInteractionStore store_;
  LocalRunStore runs_{store_};
};

template <typename Disk>
class FileStoreUnderTest final : public StoreUnderTest {
 public:
  explicit FileStoreUnderTest(std::shared_ptr<const KeySet> keys) : keys_(std::move(keys)) { Reopen(); }
  InteractionStore& store() override { return *store_; }
  RunStore& runs() override { return *runs_; }
  void Reopen() override {
    runs_.reset();
    store_.reset();
    constexpr bool kReal = std::is_same_v<Disk, PosixFileSystem>;
    auto store = FileInteractionStore::Open({.root = kReal ? folder_.File("data/chats") : "/data/chats",
                                             .keys = keys_,
                                             .file_system = disk_,
                                             .lock = kReal});
    REQUIRE(store);
    store_ = *std::move(store);
    runs_.emplace(*store_);
  }

 private:
  const TempDirectory folder_;
  Disk disk_;
  const std::shared_ptr<const KeySet> keys_;
  std::unique_ptr<FileInteractionStore> store_;
  std::optional<LocalRunStore> runs_;
};

// Each has a tenant of its own in one database. An ended process counts as dead at once.
class PostgresUnderTest final : public StoreUnderTest {
 public:
  explicit PostgresUnderTest(std::shared_ptr<const KeySet> keys, std::string url = test::PostgresServer::Get()->url())
      : url_(std::move(url)), keys_(std::move(keys)) {
    Reopen();
  }
  ~PostgresUnderTest() override { Close(); }
  InteractionStore& store() override { return *store_; }
  RunStore& runs() override { return *runs_; }
  QuestionStore& questions() { return *questions_; }
  void Reopen() override {
    Close();
    database_ = Opened();
    lease_database_ = Opened();
    REQUIRE(MigrateSchema(*database_));
    store_ = std::make_unique<PostgresStore>(
        PostgresStore::Options{.database = *database_, .keys = keys_, .tenant = tenant_});
    auto lease = Lease::Take(*lease_database_, Lease::MakeInstance(), "test");
    REQUIRE(lease);
    lease_ = *std::move(lease);
    signals_ = std::make_shared<RunSignals>(*database_, local_, lease_->instance(), [] {});
    runs_.emplace(*database_, *store_, *lease_, *signals_);
    questions_.emplace(*database_, *store_, *signals_, lease_->instance());
  }

 private:
  std::unique_ptr<Database> Opened() const {
    auto database = Database::Open({.url = url_, .more_connections = 3});
    REQUIRE(database);
    return *std::move(database);
  }
  void Close() {
    questions_.reset();
    runs_.reset();
    signals_.reset();
    lease_.reset();
    store_.reset();
    lease_database_.reset();
    database_.reset();
  }

  const std::string url_;
  const std::string tenant_ = "tenant_" + RandomHex(8);
  const std::shared_ptr<const KeySet> keys_;
  std::unique_ptr<Database> database_, lease_database_;
  std::unique_ptr<PostgresStore> store_;
  std::unique_ptr<Lease> lease_;
  LocalSignals local_;
  std::shared_ptr<RunSignals> signals_;
  std::optional<PostgresRunStore> runs_;
  std::optional<PostgresQuestionStore> questions_;
};

inline constexpr std::string_view kStores[] = {
    "memory", "sealed files", "plain files", "sealed files in memory", "postgres", "postgres through pgbouncer"};

inline std::unique_ptr<StoreUnderTest> MakeStoreUnderTest(std::string_view kind) {
  const auto keys = [] { return std::make_shared<const KeySet>(KeySet::Generate()); };
  if (kind == "memory") return std::make_unique<MemoryStoreUnderTest>();
  if (kind == "sealed files") return std::make_unique<FileStoreUnderTest<PosixFileSystem>>(keys());
  if (kind == "postgres") return std::make_unique<PostgresUnderTest>(keys());
  if (kind == "postgres through pgbouncer") {
    return std::make_unique<PostgresUnderTest>(keys(), test::PgbouncerServer::Get()->url());
  }
  if (kind == "plain files") return std::make_unique<FileStoreUnderTest<PosixFileSystem>>(nullptr);
  return std::make_unique<FileStoreUnderTest<MemoryFileSystem>>(keys());
}

// Runs the same facts on each kind of store.
template <typename Facts>
void OnEachStore(Facts facts) {
  for (const std::string_view kind : kStores) {
    CAPTURE(kind);
    if (kind == "postgres" && test::PostgresServer::Get() == nullptr) continue;
    if (kind == "postgres through pgbouncer" && test::PgbouncerServer::Get() == nullptr) continue;
    const auto under_test = MakeStoreUnderTest(kind);
    facts(*under_test);
  }
}

}  // namespace reprise
