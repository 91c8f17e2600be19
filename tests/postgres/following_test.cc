// Following a run from another instance: by signals, without lost ones, and in spite of forged ones.
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "base/local_signals.h"
#include "base/system.h"
#include "remote/postgres/lease.h"
#include "remote/postgres/postgres_queue.h"
#include "remote/postgres/postgres_run_store.h"
#include "remote/postgres/postgres_store.h"
#include "remote/postgres/schema.h"
#include "store/sample.h"
#include "support/postgres_server.h"
#include "support/test.h"

namespace reprise::following_test {
namespace {

constexpr std::chrono::seconds kSoon{60};

std::unique_ptr<Database> Opened() {
  auto database = Database::Open({.url = test::PostgresServer::Get()->url()});
  REQUIRE(database);
  return *std::move(database);
}

// Remembers all signals, and loses those that the test chooses.
class LossySignals final : public Signals {
 public:
  void Publish(std::string_view topic, std::string_view payload) override {
    {
      const MutexLock lock(mutex_);
      published_.emplace_back(topic, payload);
      published_one_.notify_all();
      if (is_lossy_ || (loses_records_ && payload.starts_with("record"))) return;
    }
    local_.Publish(topic, payload);
  }
  std::shared_ptr<void> Subscribe(const std::string& topic, Heard heard) override {
    return local_.Subscribe(topic, std::move(heard));
  }
  void Lose(bool all) {
    const MutexLock lock(mutex_);
    is_lossy_ = all;
  }
  void LoseRecords(bool all) {
    const MutexLock lock(mutex_);
    loses_records_ = all;
  }
  std::vector<std::pair<std::string, std::string>> published() {
    const MutexLock lock(mutex_);
    return published_;
  }
  std::size_t CountOf(std::string_view kind) {
    std::size_t count = 0;
    for (const auto& [topic, payload] : published()) count += payload.starts_with(kind) ? 1 : 0;
    return count;
  }

  void AwaitOne(std::string_view kind) {
    const auto until = std::chrono::steady_clock::now() + kSoon;
    MutexLock lock(mutex_);
    const auto is_there = [&]() REQUIRES(mutex_) {
      return std::any_of(published_.begin(), published_.end(),
                         [&](const auto& each) { return each.second.starts_with(kind); });
    };
    while (!is_there()) REQUIRE(published_one_.wait_until(lock, until) == std::cv_status::no_timeout);
  }

 private:
  LocalSignals local_;
  Mutex mutex_;
  std::condition_variable_any published_one_;
  bool is_lossy_ GUARDED_BY(mutex_) = false;
  bool loses_records_ GUARDED_BY(mutex_) = false;
  std::vector<std::pair<std::string, std::string>> published_ GUARDED_BY(mutex_);
};

// The shared parts of a test's instances.
struct World {
  const std::shared_ptr<const KeySet> keys = std::make_shared<const KeySet>(KeySet::Generate());
  LossySignals signals{};
  const std::string tenant = "tenant " + RandomHex(8) + "/\u00e9";
};

struct Instance {
  explicit Instance(World& world) : database(Opened()), lease_database(Opened()) {
    REQUIRE(MigrateSchema(*database));
    store = std::make_unique<PostgresStore>(
        PostgresStore::Options{.database = *database, .keys = world.keys, .tenant = world.tenant});
    lease = *Lease::Take(*lease_database, Lease::MakeInstance(), "test");
    signals = std::make_shared<RunSignals>(*database, world.signals, lease->instance(), [] {});
    runs.emplace(*database, *store, *lease, *signals);
  }

  std::unique_ptr<Database> database, lease_database;
  std::unique_ptr<PostgresStore> store;
  std::unique_ptr<Lease> lease;
  std::shared_ptr<RunSignals> signals;
  std::optional<PostgresRunStore> runs;
};

// The news that a follower was told.
class Told {
 public:
  RunStore::HeardNews listener() {
    return [this](const HeldNews& news) {
      const std::lock_guard lock(mutex_);
      records_.insert(records_.end(), news.records.begin(), news.records.end());
      has_ended_ = has_ended_ || news.has_ended;
      has_failed_ = has_failed_ || news.failure;
      changed_.notify_all();
    };
  }
  std::vector<std::string> records() {
    const std::lock_guard lock(mutex_);
    return records_;
  }
  bool Await(std::size_t count, std::chrono::milliseconds limit = kSoon) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return records_.size() >= count; });
  }
  bool AwaitEnd() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kSoon, [&] { return has_ended_; });
  }
  bool has_failed() {
    const std::lock_guard lock(mutex_);
    return has_failed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> records_;
  bool has_ended_ = false, has_failed_ = false;
};

void AppendNow(RunHold& hold, std::string_view record) {
  const auto kept = std::make_shared<std::promise<Result<void>>>();
  hold.Append(record, Journal::Reach::kProcess, [kept](Result<void> outcome) { kept->set_value(std::move(outcome)); });
  REQUIRE(kept->get_future().get());
}

}  // namespace

TEST_CASE("Postgres: a follower of a run is told each record when it is kept, without asking the database",
          "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  World world;
  Instance a(world), b(world);
  const auto hold = *a.runs->Begin({.chat = Chat1(), .record = "begun"});
  AppendNow(*hold, "one");
  CHECK(world.signals.CountOf("record") == 0);  // no follower yet
  CHECK_FALSE(*a.runs->IsFollowedElsewhere({Chat1(), hold->id()}));
  Told told;
  const auto following = b.runs->Follow({Chat1(), hold->id()}, told.listener());
  REQUIRE(following);
  CHECK(told.records() == std::vector<std::string>{"begun", "one"});
  CHECK(*a.runs->IsFollowedElsewhere({Chat1(), hold->id()}));
  // Nothing looks into the database, so this is the work of the signals alone.
  AppendNow(*hold, "two");
  REQUIRE(told.Await(3));
  for (int i = 3; i < 200; ++i) {
    hold->Append("more", Journal::Reach::kProcess, [](const Result<void>&) {});
  }
  REQUIRE(told.Await(200));
  CHECK(told.records().size() == 200);
  REQUIRE(hold->Finish(Sample(1, {}, "done")));
  CHECK(told.AwaitEnd());
}

// A record is kept while a follower begins: it is either read or told. With the planted fault (the new follower hears
// nothing before it has read, as if it subscribed then) some records are neither.
TEST_CASE("Postgres: no record is lost between those that a follower reads and those that it is told", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  World world;
  Instance a(world), b(world);
  constexpr int kTries = 40;
  constexpr std::chrono::milliseconds kPatience{300};
  for (const bool planted : {false, true}) {
    int missed = 0;
    for (int i = 0; i < kTries && (missed == 0 || !planted); ++i) {
      const ChatId chat = *ChatId::Parse((planted ? "planted" : "sound") + std::to_string(i));
      const auto hold = *a.runs->Begin({.chat = chat, .record = "begun"});
      Told told;
      Result<std::shared_ptr<void>> following = Fail(Error{});
      world.signals.LoseRecords(planted);
      {
        const std::jthread follower([&] { following = b.runs->Follow({chat, hold->id()}, told.listener()); });
        // The number of these queries grows with each try, so that the append comes earlier or later.
        for (int look = 0; look < i % 8; ++look) static_cast<void>(a.runs->HeldElsewhere(chat));
        AppendNow(*hold, "in between");
      }
      world.signals.LoseRecords(false);
      REQUIRE(following);
      missed += told.Await(2, planted ? kPatience : kSoon) ? 0 : 1;
      REQUIRE(hold->Discard());
    }
    CHECK((missed > 0) == planted);
  }
}

TEST_CASE("Postgres: records whose signals were lost are found by a look, in order and once", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  World world;
  Instance a(world), b(world);
  const auto hold = *a.runs->Begin({.chat = Chat1(), .record = "begun"});
  Told told;
  world.signals.Lose(true);  // before it follows, because an owner makes a new follower read once more
  const auto following = b.runs->Follow({Chat1(), hold->id()}, told.listener());
  AppendNow(*hold, "lost");
  AppendNow(*hold, "lost too");
  CHECK(told.records() == std::vector<std::string>{"begun"});
  b.signals->LookEverySecond();
  REQUIRE(told.Await(3));
  world.signals.Lose(false);
  a.signals->LookEverySecond();
  world.signals.AwaitOne("record");  // the owner knows of the follower
  AppendNow(*hold, "told");
  REQUIRE(told.Await(4));
  world.signals.Lose(true);
  AppendNow(*hold, "a gap");
  world.signals.Lose(false);
  AppendNow(*hold, "after it");  // shows that a record is missing
  REQUIRE(told.Await(6));
  CHECK(told.records() == std::vector<std::string>{"begun", "lost", "lost too", "told", "a gap", "after it"});
  world.signals.Lose(true);
  REQUIRE(hold->Finish(Sample(1, {}, "done")));
  b.signals->LookEverySecond();
  CHECK(told.AwaitEnd());
}

TEST_CASE("Postgres: the owner finds its followers by a look if it was not told of them", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  World world;
  Instance a(world), b(world);
  const auto hold = *a.runs->Begin({.chat = Chat1(), .record = "begun"});
  world.signals.Lose(true);
  Told told;
  const auto following = b.runs->Follow({Chat1(), hold->id()}, told.listener());
  world.signals.Lose(false);
  AppendNow(*hold, "not told of");
  CHECK(world.signals.CountOf("record") == 0);
  a.signals->LookEverySecond();
  AppendNow(*hold, "told of");  // its row comes after the look in the pipeline
  AppendNow(*hold, "and this");
  REQUIRE(told.Await(4));
  CHECK(told.records() == std::vector<std::string>{"begun", "not told of", "told of", "and this"});
}

TEST_CASE("Postgres: forged signals in a run's name are not shown", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  World world;
  Instance a(world), b(world);
  const auto hold = *a.runs->Begin({.chat = Chat1(), .record = "begun"});
  Told told;
  const auto following = b.runs->Follow({Chat1(), hold->id()}, told.listener());
  AppendNow(*hold, "one");
  REQUIRE(told.Await(2));
  const auto all = world.signals.published();
  const auto record =
      std::find_if(all.begin(), all.end(), [](const auto& each) { return each.second.starts_with("record"); });
  REQUIRE(record != all.end());
  const std::string& topic = record->first;
  const std::string head = record->second.substr(0, record->second.find('\n'));
  const std::string sealed = record->second.substr(record->second.rfind(' ') + 1);
  for (const std::string& forged :
       {head + "\n1 2 " + sealed, head + "\n1 2 AAAA", head + "\n1 99 " + sealed, head + "\n7 0 " + sealed,
        head + "\nx", head, std::string("record"), std::string("nonsense \x01"), std::string("follow x")}) {
    world.signals.Publish(topic, forged);
  }
  AppendNow(*hold, "two");
  REQUIRE(told.Await(3));
  CHECK(told.records() == std::vector<std::string>{"begun", "one", "two"});
  CHECK_FALSE(told.has_failed());
}

TEST_CASE("Postgres: a run that is taken up is still followed, and no record comes twice", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  World world;
  Instance a(world), b(world), c(world);
  auto hold = *a.runs->Begin({.chat = Chat1(), .record = "begun"});
  AppendNow(*hold, "one");
  Told told;
  const auto following = b.runs->Follow({Chat1(), hold->id()}, told.listener());
  hold->GiveBack();
  auto claimed = c.runs->ClaimAbandoned(10);
  REQUIRE(claimed);
  REQUIRE(claimed->size() == 1);
  RunHold& taken = *claimed->front().hold;
  const auto before = taken.ReadJournal();
  REQUIRE(before);
  REQUIRE(taken.GoOn(before->records));
  AppendNow(taken, "two");
  b.signals->LookEverySecond();
  REQUIRE(told.Await(3));
  AppendNow(taken, "three");
  // A late read may have told the new owner of its follower before the run was its own. Both look every second.
  for (const auto until = std::chrono::steady_clock::now() + kSoon; !told.Await(4, std::chrono::seconds(1));) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    c.signals->LookEverySecond();
    b.signals->LookEverySecond();
  }
  CHECK(told.records() == std::vector<std::string>{"begun", "one", "two", "three"});
}

TEST_CASE("Postgres: changes reach other instances once, even if their signals are lost", "[postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  World world;
  const auto database = Opened();
  REQUIRE(MigrateSchema(*database));
  const std::string topic = "changes_" + RandomHex(8);
  const auto with = [&](const std::string& tenant) {
    return PostgresChanges::Make({.database = *database,
                                  .signals = world.signals,
                                  .topic = topic,
                                  .tenant = tenant,
                                  .instance = Lease::MakeInstance()});
  };
  const auto a = with(world.tenant), b = with(world.tenant), stranger = with(world.tenant + "2");
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<ChatChange> heard;
  bool own_or_strange = false;
  b->Hear([&](std::optional<ChatChange> change) {
    const std::lock_guard lock(mutex);
    if (change) heard.push_back(*change);
    changed.notify_all();
  });
  a->Hear([&](const std::optional<ChatChange>&) { own_or_strange = true; });
  stranger->Hear([&](const std::optional<ChatChange>&) { own_or_strange = true; });
  const auto await = [&](std::size_t count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kSoon, [&] { return heard.size() >= count; });
  };
  a->Tell({.kind = ChatChange::Kind::kInteractionStarted, .chat_id = Chat1(), .interaction_id = Id(7)});
  REQUIRE(await(1));
  world.signals.Lose(true);
  a->Tell({.kind = ChatChange::Kind::kApprovalOpened,
           .chat_id = Chat1(),
           .interaction_id = Id(7),
           .request_id = "approval_1"});
  // Its row may come a moment after this look.
  const auto until = std::chrono::steady_clock::now() + kSoon;
  for (std::unique_lock lock(mutex); heard.size() < 2 && std::chrono::steady_clock::now() < until;) {
    lock.unlock();
    b->LookEverySecond();
    lock.lock();
    changed.wait_for(lock, std::chrono::milliseconds(20));
  }
  world.signals.Lose(false);
  a->Tell({.kind = ChatChange::Kind::kChatDeleted, .chat_id = Chat1()});
  REQUIRE(await(3));
  b->LookEverySecond();
  REQUIRE(database->Execute({.sql = "select 1"}));  // waits for that look
  a->LookEverySecond();
  stranger->LookEverySecond();
  REQUIRE(database->Execute({.sql = "select 1"}));
  const std::lock_guard lock(mutex);
  REQUIRE(heard.size() == 3);
  CHECK((heard[0].kind == ChatChange::Kind::kInteractionStarted && heard[0].interaction_id == Id(7)));
  CHECK((heard[1].kind == ChatChange::Kind::kApprovalOpened && heard[1].request_id == "approval_1"));
  CHECK((heard[2].kind == ChatChange::Kind::kChatDeleted && !heard[2].interaction_id));
  CHECK_FALSE(own_or_strange);
}

}  // namespace reprise::following_test
