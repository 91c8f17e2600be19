#include "people/issuer_keys.h"

#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <queue>

#include "base/json.h"
#include "people/issued_tokens.h"
#include "support/test.h"

namespace reprise::issuer_keys_test {
namespace {

std::string SetOf(const std::vector<std::string>& keys) {
  std::string all;
  for (const std::string& key : keys) all += (all.empty() ? "" : ",") + key;
  return R"({"keys":[)" + all + "]}";
}
std::string Named(const char* jwk, Json kid) {
  Json json = *ParseJson(jwk);
  json["kid"] = std::move(kid);
  return DumpJson(json);
}

// Runs posted jobs on request and counts fetches.
class Bench {
 public:
  explicit Bench(std::chrono::milliseconds pause, std::chrono::milliseconds fresh = std::chrono::hours(1),
                 std::chrono::milliseconds usable = std::chrono::hours(1)) {
    keys.emplace(IssuerKeys::Options{.fetch = [this](std::stop_token) { return Fetch(); },
                                     .post = [this](std::function<void()> job) { Post(std::move(job)); },
                                     .pause = pause,
                                     .fresh = fresh,
                                     .usable = usable});
  }
  ~Bench() {
    keys->Stop();
    keys->Join();
  }
  // Runs the next posted job.
  void Step() {
    std::unique_lock lock(mutex_);
    posted_.wait(lock, [this] { return !jobs_.empty(); });
    const auto job = std::move(jobs_.front());
    jobs_.pop();
    lock.unlock();
    job();
  }
  // "" until it is told, "key", or the error's reason.
  std::shared_ptr<std::string> Find(std::string algorithm, std::string kid) {
    auto told = std::make_shared<std::string>();
    keys->Find(std::move(algorithm), std::move(kid),
               [told](const Result<PublicKey>& key) { *told = key ? "key" : key.error().reason; });
    return told;
  }

  std::optional<IssuerKeys> keys;
  Result<std::string> served = SetOf({Named(issued::kEdDsaKey, "one")});
  std::atomic<int> fetches{0};

 private:
  Result<std::vector<IssuerKey>> Fetch() {
    ++fetches;
    return served ? ReadIssuerKeys(*served) : Fail(served.error());
  }
  void Post(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push(std::move(job));
    posted_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable posted_;
  std::queue<std::function<void()>> jobs_;
};

constexpr std::chrono::hours kLong{1};

}  // namespace

TEST_CASE("ReadIssuerKeys: takes usable keys and skips others", "[people]") {
  const auto keys = ReadIssuerKeys(SetOf({issued::kRs256Key, R"({"kty":"oct","k":"AAAA","kid":"shared"})", "7", "{}",
                                          issued::kShortRsaKey, issued::kEs256Key, issued::kEdDsaKey}));
  REQUIRE(keys);
  REQUIRE(keys->size() == 3);
  CHECK((*keys)[0].kid == "rsa");
  CHECK((*keys)[2].key.algorithm() == "EdDSA");
  for (const std::string& text : {std::string("{}"), std::string("[]"), std::string(), SetOf({}), SetOf({"{}"}),
                                  std::string(R"({"keys":{}})"), SetOf(std::vector<std::string>(101, "{}"))}) {
    CHECK_FALSE(ReadIssuerKeys(text));
  }
}

TEST_CASE("IsSafeIssuerUrl: by TLS, or on this machine", "[people]") {
  for (const char* safe :
       {"https://a", "https://a.example/x", "http://127.0.0.1:5/realm", "http://localhost", "http://[::1]:8"})
    CHECK(IsSafeIssuerUrl(safe));
  for (const char* unsafe :
       {"http://a.example", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "ftp://a", "https://",
        "http://127.0.0.1:1@evil.example", "https:///x", "", "http://", "//a", "http://evil.example/127.0.0.1"})
    CHECK_FALSE(IsSafeIssuerUrl(unsafe));
}

TEST_CASE("IssuerKeys: the first caller waits for the fetch, later ones find the keys", "[people]") {
  Bench bench(kLong);
  const auto first = bench.Find("EdDSA", "one"), second = bench.Find("EdDSA", "one"),
             other = bench.Find("EdDSA", "two");
  CHECK(first->empty());
  bench.Step();
  CHECK(*first == "key");
  CHECK(*second == "key");
  CHECK(*other == "invalid_token");
  CHECK(*bench.Find("EdDSA", "one") == "key");
  CHECK(bench.fetches == 1);
}

TEST_CASE("IssuerKeys: the algorithm is the key's own", "[people]") {
  Bench bench(kLong);
  const auto told = bench.Find("RS256", "one");
  bench.Step();
  CHECK(*told == "invalid_token");
  CHECK(*bench.Find("ES256", "one") == "invalid_token");
}

TEST_CASE("IssuerKeys: a token without a kid means the only key of its algorithm", "[people]") {
  Bench bench(kLong);
  bench.served =
      SetOf({Named(issued::kEdDsaKey, Json()), issued::kRs256Key, issued::kEs256Key, Named(issued::kEs256Key, "2")});
  const auto told = bench.Find("EdDSA", "");
  bench.Step();
  CHECK(*told == "key");
  CHECK(*bench.Find("RS256", "") == "key");
  CHECK(*bench.Find("ES256", "") == "invalid_token");
  CHECK(*bench.Find("ES256", "2") == "key");
}

TEST_CASE("IssuerKeys: a hundred unknown keys cause one fetch", "[people]") {
  Bench bench(kLong);
  std::vector<std::shared_ptr<std::string>> told;
  for (int i = 0; i < 50; ++i) told.push_back(bench.Find("EdDSA", "unknown" + std::to_string(i)));
  bench.Step();
  for (int i = 50; i < 100; ++i) told.push_back(bench.Find("EdDSA", "unknown" + std::to_string(i)));
  for (const auto& each : told) CHECK(*each == "invalid_token");
  CHECK(bench.fetches == 1);
}

TEST_CASE("IssuerKeys: after a rotation the new key is fetched, and the old one counts no more", "[people]") {
  Bench bench(std::chrono::milliseconds(0));
  const auto before = bench.Find("EdDSA", "one");
  bench.Step();
  CHECK(*before == "key");
  bench.served = SetOf({Named(issued::kEdDsaKey, "two")});
  const auto after = bench.Find("EdDSA", "two");
  bench.Step();
  CHECK(*after == "key");
  const auto gone = bench.Find("EdDSA", "one");
  bench.Step();
  CHECK(*gone == "invalid_token");
  CHECK(bench.fetches == 3);
}

TEST_CASE("IssuerKeys: an unreachable issuer does not make a token invalid", "[people]") {
  Bench bench(std::chrono::milliseconds(0));
  bench.served = Fail(ErrorCode::kUnavailable, "down");
  const auto told = bench.Find("EdDSA", "one");
  bench.Step();
  CHECK(*told == "issuer_unreachable");
  bench.served = SetOf({Named(issued::kEdDsaKey, "one")});
  const auto again = bench.Find("EdDSA", "one");
  bench.Step();
  CHECK(*again == "key");
  bench.served = Fail(ErrorCode::kUnavailable, "down");
  const auto unknown = bench.Find("EdDSA", "new");
  bench.Step();
  CHECK(*unknown == "issuer_unreachable");
  CHECK(*bench.Find("EdDSA", "one") == "key");  // what is known stays known
}

TEST_CASE("IssuerKeys: pauses between fetches, even after a failure", "[people]") {
  Bench bench(kLong);
  bench.served = Fail(ErrorCode::kUnavailable, "down");
  const auto told = bench.Find("EdDSA", "one");
  bench.Step();
  CHECK(*told == "issuer_unreachable");
  for (int i = 0; i < 10; ++i) CHECK(*bench.Find("EdDSA", "one") == "issuer_unreachable");
  CHECK(bench.fetches == 1);
}

TEST_CASE("IssuerKeys: old keys are used while they are fetched again, too old ones are not", "[people]") {
  {
    Bench bench(std::chrono::milliseconds(0), /*fresh=*/std::chrono::milliseconds(0));
    const auto first = bench.Find("EdDSA", "one");
    bench.Step();
    CHECK(*first == "key");
    bench.served = SetOf({Named(issued::kEdDsaKey, "two")});
    CHECK(*bench.Find("EdDSA", "one") == "key");  // at once, and they are fetched
    bench.Step();
    CHECK(bench.fetches == 2);
  }
  Bench bench(std::chrono::milliseconds(0), kLong, /*usable=*/std::chrono::milliseconds(0));
  const auto first = bench.Find("EdDSA", "one");
  bench.Step();
  CHECK(*first == "key");
  bench.served = Fail(ErrorCode::kUnavailable, "down");
  const auto old = bench.Find("EdDSA", "one");
  CHECK(old->empty());
  bench.Step();
  CHECK(*old == "issuer_unreachable");
}

TEST_CASE("IssuerKeys: a stop tells everybody who waits", "[people]") {
  Bench bench(kLong);
  const auto told = bench.Find("EdDSA", "one");
  bench.keys->Stop();
  CHECK(*told == "issuer_unreachable");
  CHECK(*bench.Find("EdDSA", "one") == "issuer_unreachable");
  bench.Step();
}

}  // namespace reprise::issuer_keys_test
