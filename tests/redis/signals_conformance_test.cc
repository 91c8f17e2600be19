// The contract of every implementation of Signals.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/local_signals.h"
#include "remote/postgres/signals.h"
#include "remote/redis/redis_signals.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"
#include "support/test.h"

namespace reprise::signals_conformance_test {
namespace {

// The signals that a subscriber has heard.
class Heard {
 public:
  Signals::Heard listener() {
    return [this](std::string_view payload) {
      const std::lock_guard lock(mutex_);
      all_.emplace_back(payload);
      changed_.notify_all();
    };
  }
  bool Await(const std::string& payload) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return Count(payload) > 0; });
  }
  std::size_t CountOf(const std::string& payload) {
    const std::lock_guard lock(mutex_);
    return Count(payload);
  }
  std::vector<std::string> texts() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> texts = all_;
    std::erase(texts, "");
    return texts;
  }

 private:
  std::size_t Count(const std::string& payload) const {
    return static_cast<std::size_t>(std::count(all_.begin(), all_.end(), payload));
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> all_;
};

// As it may be lost.
void PublishUntilHeard(Signals& from, const std::string& topic, const std::string& payload, Heard& heard) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  do {
    REQUIRE(std::chrono::steady_clock::now() < until);
    from.Publish(topic, payload);
  } while (!heard.Await(payload));
}

std::unique_ptr<Signals> ThroughNotify() {
  auto signals = NotifySignals::Open(test::PostgresServer::Get()->url());
  REQUIRE(signals);
  return *std::move(signals);
}

std::unique_ptr<Signals> ThroughRedis(const std::string& url, const std::string& ca_file = "",
                                      Signals* otherwise = nullptr) {
  auto signals = RedisSignals::Open({.urls = {url}, .ca_file = ca_file, .otherwise = otherwise});
  REQUIRE(signals);
  return *std::move(signals);
}

// What reaches `to` from `from`; for one process they are the same.
void OnEach(const std::function<void(Signals& from, Signals& to)>& facts) {
  {
    CAPTURE("local");
    LocalSignals local;
    facts(local, local);
  }
  if (test::PostgresServer::Get() != nullptr) {
    CAPTURE("notify");
    const auto from = ThroughNotify(), to = ThroughNotify();
    facts(*from, *to);
  }
  if (const auto server = test::RedisServer::Start()) {
    CAPTURE("redis");
    const auto from = ThroughRedis(server->url()), to = ThroughRedis(server->url());
    facts(*from, *to);
  }
  if (const auto server = test::RedisServer::Start({.tls = true})) {
    CAPTURE("redis with tls");
    const auto from = ThroughRedis(server->url(), server->certificate()),
               to = ThroughRedis(server->url(), server->certificate());
    facts(*from, *to);
  }
  if (test::PostgresServer::Get() != nullptr) {
    CAPTURE("redis that is not there, and notify");
    const auto from = ThroughNotify(), to = ThroughNotify();
    const std::string nowhere = "redis://127.0.0.1:1";
    const auto from_redis = ThroughRedis(nowhere, "", from.get()), to_redis = ThroughRedis(nowhere, "", to.get());
    facts(*from_redis, *to_redis);
  }
}

}  // namespace

TEST_CASE("Signals: a signal reaches all subscribers of the topic unchanged", "[redis]") {
  OnEach([](Signals& from, Signals& to) {
    Heard one, two, other;
    const auto first = to.Subscribe("topic_1", one.listener());
    const auto second = to.Subscribe("topic_1", two.listener());
    const auto third = to.Subscribe("topic_2", other.listener());
    const std::string payload = "caf\u00e9 \"quoted\" \\ back\n{1,2} 'x' NULL $1";
    PublishUntilHeard(from, "topic_1", payload, one);
    PublishUntilHeard(from, "topic_1", payload, two);
    PublishUntilHeard(from, "topic_2", "other", other);
    CHECK(other.texts().front() == "other");
    CHECK(one.CountOf("other") == 0);
  });
}

TEST_CASE("Signals: arrive in order, also many at once", "[redis]") {
  OnEach([](Signals& from, Signals& to) {
    Heard heard;
    const auto subscription = to.Subscribe("topic", heard.listener());
    PublishUntilHeard(from, "topic", "ready", heard);
    std::vector<std::string> sent;
    for (int i = 0; i < 3000; ++i) {
      sent.push_back(std::to_string(i));
      from.Publish("topic", sent.back());
    }
    for (int i = 0; i < 30; ++i) {
      std::vector<std::string> together;
      for (int k = 0; k < 100; ++k) together.push_back(std::to_string(i) + " " + std::to_string(k));
      from.PublishAll("topic", together);
      sent.insert(sent.end(), together.begin(), together.end());
    }
    from.PublishAll("topic", {});
    PublishUntilHeard(from, "topic", "end", heard);
    std::vector<std::string> came = heard.texts();
    std::erase(came, "ready");
    std::erase(came, "end");
    CHECK(came == sent);
  });
}

TEST_CASE("Signals: of a long signal at least the first line arrives, and an empty one arrives", "[redis]") {
  OnEach([](Signals& from, Signals& to) {
    Heard heard;
    const auto subscription = to.Subscribe("topic", heard.listener());
    PublishUntilHeard(from, "topic", "ready", heard);
    const std::string head = "head of " + std::to_string(100'000), whole = head + "\n" + std::string(100'000, 'x');
    from.Publish("topic", whole);
    PublishUntilHeard(from, "topic", "end", heard);
    CHECK(heard.CountOf(head) + heard.CountOf(whole) == 1);
    const auto before = heard.CountOf("");
    from.Publish("topic", "");
    PublishUntilHeard(from, "topic", "end of it", heard);
    CHECK(heard.CountOf("") > before);
  });
}

TEST_CASE("Signals: nothing is called after its subscription ends, even during a publish", "[redis]") {
  OnEach([](Signals& from, Signals& to) {
    std::atomic<bool> stop = false;
    const std::jthread publisher([&] {
      while (!stop) from.Publish("topic", "x");
    });
    for (int i = 0; i < 30; ++i) {
      std::atomic<bool> is_there = true, was_wrong = false;
      auto subscription = to.Subscribe("topic", [&](std::string_view) {
        if (!is_there) was_wrong = true;
        std::this_thread::yield();
        if (!is_there) was_wrong = true;
      });
      subscription.reset();
      is_there = false;
      CHECK_FALSE(was_wrong);
    }
    stop = true;
  });
}

TEST_CASE("RedisSignals: go the other way without Redis, and through Redis when it is back", "[redis]") {
  const auto server = test::RedisServer::Start();
  if (!server) return;
  LocalSignals otherwise;
  RedisSignals::Options options{.urls = {server->url()}, .otherwise = &otherwise};
  const auto signals = *RedisSignals::Open(options), to = *RedisSignals::Open({.urls = {server->url()}});
  Heard heard, at_redis, other_way;
  const auto here = signals->Subscribe("topic", heard.listener());
  const auto there = to->Subscribe("topic", at_redis.listener());
  const auto listening = otherwise.Subscribe("topic", other_way.listener());
  PublishUntilHeard(*signals, "topic", "first", at_redis);
  const auto before = other_way.CountOf("first");
  for (int i = 0; i < 10; ++i) PublishUntilHeard(*signals, "topic", std::to_string(i), at_redis);
  CHECK(other_way.CountOf("5") == 0);  // Redis alone
  CHECK(other_way.CountOf("first") == before);

  server->Kill();
  const auto lost = at_redis.CountOf("");
  PublishUntilHeard(*signals, "topic", "while it is away", other_way);
  PublishUntilHeard(*signals, "topic", "while it is away", heard);
  server->StartAgain();
  PublishUntilHeard(*signals, "topic", "it is back", at_redis);
  CHECK(at_redis.CountOf("") > lost);  // it was told that something may have been lost
}

TEST_CASE("RedisSignals: give up a hanging Redis after a second and lose nothing", "[redis]") {
  const auto server = test::RedisServer::Start();
  if (!server) return;
  LocalSignals otherwise;
  const auto signals = *RedisSignals::Open({.urls = {server->url()}, .otherwise = &otherwise});
  Heard heard, other_way;
  const auto here = signals->Subscribe("topic", heard.listener());
  PublishUntilHeard(*signals, "topic", "ready", heard);
  const auto listening = otherwise.Subscribe("topic", other_way.listener());
  server->Freeze();
  const auto begin = std::chrono::steady_clock::now();
  signals->PublishAll("topic", {"once", "and once"});
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(500));  // who publishes does not wait
  while (!other_way.Await("and once")) REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
  CHECK(other_way.CountOf("once") >= 1);
  server->Thaw();
}

TEST_CASE("RedisSignals: without a subscriber at Redis, go the other way too", "[redis]") {
  const auto server = test::RedisServer::Start();
  if (!server) return;
  LocalSignals otherwise;
  const auto signals = *RedisSignals::Open({.urls = {server->url()}, .otherwise = &otherwise});
  Heard heard, other_way;
  const auto here = signals->Subscribe("mine", heard.listener());
  PublishUntilHeard(*signals, "mine", "ready", heard);  // it is connected
  const auto listening = otherwise.Subscribe("topic", other_way.listener());
  const auto begin = std::chrono::steady_clock::now();
  signals->Publish("topic", "once");
  while (!other_way.Await("once")) REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("RedisSignals: use an address that answers", "[redis]") {
  const auto server = test::RedisServer::Start();
  if (!server) return;
  const auto signals = *RedisSignals::Open({.urls = {"redis://127.0.0.1:1", server->url()}});
  Heard heard;
  const auto here = signals->Subscribe("topic", heard.listener());
  PublishUntilHeard(*signals, "topic", "x", heard);
}

TEST_CASE("RedisSignals: use the URL's user, password and database", "[redis]") {
  const auto server = test::RedisServer::Start(
      {.arguments = {"--user", "default", "on", ">pass:word@1", "~*", "&*", "+@all", "--user", "reprise", "on",
                     ">secret", "&reprise:*", "+publish", "+subscribe", "+ping", "+select"}});
  if (!server) return;
  const auto check = [&](const std::string& url) { return RedisSignals::Check({.urls = {url}}); };
  CHECK(check(server->url(":pass%3Aword%401@") + "/3"));
  CHECK(check(server->url("reprise:secret@")));
  CHECK(check(server->url(":wrong@")).error().code == ErrorCode::kUnavailable);
  CHECK(check(server->url("reprise:wrong@")).error().detail.find("WRONGPASS") != std::string::npos);
  CHECK(check(server->url()).error().detail.find("NOAUTH") != std::string::npos);
  CHECK(check(server->url(":pass%3Aword%401@") + "/99").error().detail.find("out of range") != std::string::npos);
  const auto signals = ThroughRedis(server->url("reprise:secret@"));
  Heard heard;
  const auto here = signals->Subscribe("topic", heard.listener());
  PublishUntilHeard(*signals, "topic", "x", heard);
}

TEST_CASE("RedisSignals: with TLS the certificate must be trusted and match the server", "[redis]") {
  const auto server = test::RedisServer::Start({.tls = true});
  if (!server) return;
  const auto check = [&](const std::string& url, const std::string& ca_file) {
    return RedisSignals::Check({.urls = {url}, .ca_file = ca_file});
  };
  CHECK(check(server->url(), server->certificate()));
  const auto stranger = check(server->url(), "");
  REQUIRE_FALSE(stranger);
  CHECK(stranger.error().detail.find("self-signed") != std::string::npos);
  const std::string other_name = "rediss://localhost:" + std::to_string(server->port());
  const auto misnamed = check(other_name, server->certificate());
  REQUIRE_FALSE(misnamed);
  CHECK(misnamed.error().detail.find("ostname mismatch") != std::string::npos);
  CHECK_FALSE(check("redis://127.0.0.1:" + std::to_string(server->port()), ""));  // without TLS there is no word
  CHECK(check(server->url(), "/nowhere").error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("RedisUrl: refuses an invalid URL without showing it", "[redis]") {
  const auto parsed = RedisUrl::Parse("rediss://us%65r:p%40ss@[::1]:7000/2");
  REQUIRE(parsed);
  CHECK((parsed->host == "::1" && parsed->port == "7000" && parsed->user == "user" && parsed->password == "p@ss" &&
         parsed->database == "2" && parsed->is_tls));
  CHECK(RedisUrl::Parse("redis://host")->name() == "host:6379");
  for (const char* url : {"http://host", "redis://", "redis://secret@host", "redis://host:port", "redis://host:99999",
                          "redis://host/db", "redis://:secret@", "host"}) {
    CAPTURE(url);
    const auto wrong = RedisUrl::Parse(url);
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().code == ErrorCode::kInvalidArgument);
    CHECK(wrong.error().message.find("secret") == std::string::npos);
  }
}

}  // namespace reprise::signals_conformance_test
