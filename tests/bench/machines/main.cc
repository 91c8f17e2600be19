// Measures servers with one database against the least work of PostgreSQL and Redis for it, in the same run, and prints
// the ratios. Starts its own PostgreSQL and Redis.
//
//   reprise_bench_machines [SECONDS]     per measurement; default 2
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/system.h"
#include "remote/postgres/postgres_tenant_stores.h"
#include "remote/postgres/schema.h"
#include "remote/postgres/signals.h"
#include "remote/redis/redis_signals.h"
#include "store/sample.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"

namespace reprise::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds = 2;

template <typename Value>
Value Must(Result<Value> result) {
  if (result) return *std::move(result);
  std::fprintf(stderr, "%s (%s)\n", result.error().message.c_str(), result.error().detail.c_str());
  std::exit(1);
}
void Must(const Result<void>& result) {
  if (!result) Must(Result<int>(Fail(result.error())));
}

// How often a second `once(writer)` is done by `writers` threads at once.
double Rate(int writers, const std::function<void(int)>& once) {
  std::atomic<std::size_t> done = 0;
  std::atomic<bool> stop = false;
  std::vector<std::jthread> threads;
  const auto begin = Clock::now();
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      while (!stop) once(writer), ++done;
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  threads.clear();
  return static_cast<double>(done) / std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Latency {
  double p50 = 0, p99 = 0;  // milliseconds
};

// The latency of `once`, which waits for what it measures.
Latency LatencyOf(int times, const std::function<void()>& once) {
  std::vector<double> all;
  for (int i = 0; i < times; ++i) {
    const auto begin = Clock::now();
    once();
    all.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  std::sort(all.begin(), all.end());
  return {all[all.size() / 2], all[all.size() * 99 / 100]};
}

// Waits for a signal from another thread.
class Said {
 public:
  void Say() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void AwaitNext() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ > taken_; });
    taken_ = count_;
  }
  // False if nothing comes in this time.
  bool AwaitNext(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, limit, [&] { return count_ > taken_; });
    taken_ = count_;
    return came;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t count_ = 0, taken_ = 0;
};

struct Instance {
  Instance(const std::string& url, const std::shared_ptr<const KeySet>& keys, const std::string& redis_url)
      : notify(Must(NotifySignals::Open(url))) {
    if (!redis_url.empty()) redis = Must(RedisSignals::Open({.urls = {redis_url}, .otherwise = notify.get()}));
    Signals* const signals = redis ? static_cast<Signals*>(redis.get()) : notify.get();
    database = Must(SharedDatabase::Open({.url = url, .signals = signals, .version = "bench"}));
    parts = Must(PostgresParts::Open(*database, {.tenant = {}, .keys = keys}));
  }
  std::unique_ptr<NotifySignals> notify;
  std::unique_ptr<RedisSignals> redis;
  std::unique_ptr<SharedDatabase> database;
  std::unique_ptr<PostgresParts> parts;
};

void Report(const char* what, double value, const char* unit, double floor, double goal, bool is_rate) {
  const double ratio = floor > 0 ? value / floor : 0;
  const bool holds = is_rate ? ratio >= goal : ratio <= goal;
  std::printf("%-52s %9.3f %-4s floor %9.3f  ratio %5.2f  goal %s %.2f  %s\n", what, value, unit, floor, ratio,
              is_rate ? ">=" : "<=", goal, holds ? "holds" : "MISSED");
  std::fflush(stdout);
}

void ReportTime(const char* what, const Latency& time, double goal) {
  std::printf("%-52s p50 %.3f ms, p99 %.3f ms  goal p50 <= %.2f  %s\n", what, time.p50, time.p99, goal,
              time.p50 <= goal ? "holds" : "MISSED");
  std::fflush(stdout);
}

// A turn whose record is as long as that of a bare insert.
Interaction Turn(const ChatId& chat, InteractionId id, std::optional<InteractionId> parent) {
  Interaction turn = Sample(chat, id, parent, std::string(500, 'x'));
  return turn;
}

// --- commits ---------------------------------------------------------------------------------------------------------

std::vector<std::unique_ptr<Database>> OpenForBareInserts(const std::string& url, int writers) {
  std::vector<std::unique_ptr<Database>> connections;
  for (int i = 0; i < writers; ++i) connections.push_back(Must(Database::Open({.url = url})));
  Must(connections[0]->Execute({.sql = "create table if not exists bare(id bigserial primary key, record bytea)"}));
  Must(connections[0]->Execute({.sql = "alter table bare alter column record set storage external"}));
  return connections;
}

void BareInsert(Database& database, const std::string& record) {
  Must(database.Execute({.sql = "insert into bare(record) values ($1)", .values = {SqlValue::Bytes(record)}}));
}

double BareInserts(const std::string& url, int writers) {
  const auto connections = OpenForBareInserts(url, writers);
  const std::string record = RandomHex(2048);
  return Rate(writers, [&](int writer) { BareInsert(*connections[static_cast<std::size_t>(writer)], record); });
}

Latency BareCommit(const std::string& url) {
  const auto database = Must(Database::Open({.url = url}));
  return LatencyOf(200, [&] {
    Must(database->Execute({.sql = "insert into bare(record) values ($1)", .values = {SqlValue::Bytes("answer")}}));
  });
}

struct Writer {
  ChatId chat;
  std::optional<InteractionId> head{};
  std::optional<std::int64_t> version{};

  // Begins as a server that knows the head it last read or wrote.
  std::unique_ptr<RunHold> Begin(PostgresParts& parts) const {
    return Must(parts.runs().Begin(
        {.chat = chat, .expected_head = head, .expected_version = version, .makes_chat = !head, .record = "begun"}));
  }
  void Ended(PostgresParts& parts, InteractionId id) {
    head = id;
    version = Must(parts.store().LoadKnownHead(chat)).version;
  }
};

std::vector<Writer> Writers(int count) {
  std::vector<Writer> writers;
  for (int i = 0; i < count; ++i) writers.push_back({*ChatId::Parse("w" + RandomHex(6))});
  return writers;
}

// Begins and finishes runs, which is a turn's work for the database.
double Turns(PostgresParts& parts, int count) {
  std::vector<Writer> writers = Writers(count);
  return Rate(count, [&](int index) {
    Writer& writer = writers[static_cast<std::size_t>(index)];
    const auto hold = writer.Begin(parts);
    Must(hold->Finish(Turn(writer.chat, hold->id(), writer.head)));
    writer.Ended(parts, hold->id());
  });
}

struct SavesAndInserts {
  double saves = 0, inserts = 0;  // per second, of all writers
};

// Times Finish alone, and for a single writer also a bare insert right after it: a disk is quicker under writes without
// a pause than under occasional ones, as in turns.
SavesAndInserts Saves(PostgresParts& parts, const std::string& url, int count) {
  std::vector<Writer> writers = Writers(count);
  const auto connection = std::move(OpenForBareInserts(url, 1).front());
  const std::string record = RandomHex(2048);
  std::atomic<std::int64_t> saving = 0, inserting = 0, done = 0;  // nanoseconds, and the number of saves
  Rate(count, [&](int index) {
    Writer& writer = writers[static_cast<std::size_t>(index)];
    const auto hold = writer.Begin(parts);
    const Interaction turn = Turn(writer.chat, hold->id(), writer.head);
    const auto begin = Clock::now();
    Must(hold->Finish(turn));
    const auto saved = Clock::now();
    if (count == 1) BareInsert(*connection, record);
    const auto inserted = Clock::now();
    saving += (saved - begin).count();
    inserting += (inserted - saved).count();
    ++done;
    writer.Ended(parts, hold->id());
  });
  const auto rate = [&](std::int64_t nanoseconds) {
    return static_cast<double>(done) * count / (static_cast<double>(nanoseconds) / 1e9);
  };
  return {.saves = rate(saving), .inserts = rate(inserting)};
}

// --- news for other servers ------------------------------------------------------------------------------------------

// The latency of an asynchronous append and then PUBLISH to SUBSCRIBE.
Latency BareEvent(const std::string& url, const std::string& redis_url) {
  const auto database = Must(Database::Open({.url = url}));
  Must(database->Execute({.sql = "create table if not exists bare_journal(id bigserial primary key, record bytea)"}));
  const auto from = Must(RedisSignals::Open({.urls = {redis_url}})),
             to = Must(RedisSignals::Open({.urls = {redis_url}}));
  Said said;
  const auto subscription = to->Subscribe("bare", [&](std::string_view) { said.Say(); });
  do {
    from->Publish("bare", "x");
  } while (!said.AwaitNext(std::chrono::milliseconds(50)));
  const std::string record = RandomHex(150);
  return LatencyOf(2000, [&] {
    Must(database->Execute({.sql = "insert into bare_journal(record) values ($1) returning set_config("
                                   "'synchronous_commit', 'off', true)",
                            .values = {SqlValue::Bytes(record)}}));
    do {
      from->Publish("bare", record);
    } while (!said.AwaitNext(std::chrono::seconds(1)));
  });
}

Latency LiveEvent(Instance& a, Instance& b) {
  const ChatId chat = *ChatId::Parse("live" + RandomHex(6));
  const auto hold = Must(a.parts->runs().Begin({.chat = chat, .record = "begun"}));
  Said heard;
  const auto following = Must(b.parts->runs().Follow({chat, hold->id()}, [&](const HeldNews& news) {
    if (!news.records.empty()) heard.Say();
  }));
  const std::string record = RandomHex(150);
  const auto once = [&] {
    hold->Append(record, Journal::Reach::kProcess, [](const Result<void>& kept) { Must(kept); });
    heard.AwaitNext();
  };
  heard.AwaitNext();
  for (int i = 0; i < 50; ++i) once();
  const Latency latency = LatencyOf(2000, once);
  Must(hold->Finish(Turn(chat, hold->id(), std::nullopt)));
  return latency;
}

// The latency from the answer at B to its arrival at A. The answer itself is a commit.
Latency Answered(Instance& a, Instance& b) {
  Said taken;
  a.parts->runs().Watch([&](const Wanted& wanted) {
    if (wanted.kind != Wanted::Kind::kAnswer) return;
    std::thread([&, run = *wanted.run] {
      if (!Must(a.parts->questions().Answered(run)).empty()) taken.Say();
    }).detach();
  });
  std::vector<double> all;
  for (int i = 0; i < 200; ++i) {
    const ChatId chat = *ChatId::Parse("asked" + RandomHex(6));
    const auto hold = Must(a.parts->runs().Begin({.chat = chat, .record = "begun"}));
    PendingApproval pending{chat, hold->id(), {}};
    pending.request.approval_id = "approval_" + RandomHex(16);
    pending.request.tool_name = "danger";
    Must(a.parts->questions().Open({pending}));
    const auto begin = Clock::now();
    Must(
        b.parts->questions().Answer({chat, hold->id()}, pending.request.approval_id, ApprovalAnswer{.approved = true}));
    taken.AwaitNext();
    all.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    Must(hold->Discard());
  }
  a.parts->runs().Watch({});
  std::sort(all.begin(), all.end());
  return {all[all.size() / 2], all[all.size() * 99 / 100]};
}

int Run() {
  if (test::PostgresServer::Get() == nullptr) return 1;
  const std::string url = test::PostgresServer::Get()->url();
  const auto redis = test::RedisServer::Start();
  const auto keys = std::make_shared<const KeySet>(KeySet::Generate());
  Must(MigrateSchema(*Must(Database::Open({.url = url}))));
  {
    Instance one(url, keys, "");
    for (const int writers : {1, 16}) {
      const double floor = BareInserts(url, writers);
      const std::string of = " (" + std::to_string(writers) + " at once)";
      const auto [saves, inserts] = Saves(*one.parts, url, writers);
      const double goal = writers == 1 ? 0.75 : 0.6;
      Report(("fenced save, to inserts without a pause" + of).c_str(), saves, "/s", floor, goal, true);
      // Many writers leave the disk no pause anyway.
      if (writers == 1) Report(("fenced save, to an insert behind it" + of).c_str(), saves, "/s", inserts, goal, true);
      Report(("begin and save" + of).c_str(), Turns(*one.parts, writers), "/s", floor, writers == 1 ? 0.3 : 0.2, true);
    }
  }
  {
    Instance a(url, keys, ""), b(url, keys, "");
    ReportTime("live event from A at B, without Redis", LiveEvent(a, b), 0.8);
    Report("answer at B to A, without Redis", Answered(a, b).p50, "ms", BareCommit(url).p50, 3, false);
  }
  if (!redis) return 1;
  Instance a(url, keys, redis->url()), b(url, keys, redis->url());
  while (!a.redis->is_connected() || !b.redis->is_connected())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const Latency floor = BareEvent(url, redis->url());
  Report("live event from A at B, with Redis", LiveEvent(a, b).p50, "ms", floor.p50, 2, false);
  Report("answer at B to A, with Redis", Answered(a, b).p50, "ms", BareCommit(url).p50, 3, false);
  return 0;
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  if (argc > 1) reprise::bench::seconds = std::atof(argv[1]);
  return reprise::bench::Run();
}
