#include <thread>

#include "model/model_listing.h"
#include "support/test.h"

namespace reprise::listing_cache_test {
namespace {

using namespace std::chrono_literals;

// Answers when the test says so, or when it is stopped.
class SlowClient : public ModelClient {
 public:
  void Generate(const ModelRequest&, ModelStream&, std::stop_token, Done done) override {
    done(Fail(ErrorCode::kInternal, "not asked for"));
  }
  void ListModels(std::stop_token stop, Listed done) override {
    ++asked;
    done_ = std::move(done);
    on_stop_.emplace(std::move(stop), [this] { Answer(Fail(ErrorCode::kCancelled, "stopped")); });
    if (at_once) Answer(*at_once);
  }
  void Answer(Result<std::vector<ListedModel>> models) {
    if (const auto done = std::exchange(done_, nullptr)) done(std::move(models));
  }
  int asked = 0;
  std::optional<Result<std::vector<ListedModel>>> at_once;

 private:
  Listed done_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

TEST_CASE("ListingCache: an answer is remembered", "[model]") {
  SlowClient client;
  client.at_once = std::vector<ListedModel>{{"a", 100}, {"b", 0}};
  ListingCache cache({});
  CHECK(cache.Models("p").empty());
  cache.Refresh({{"p", &client}});
  cache.Refresh({{"p", &client}});
  CHECK(client.asked == 1);
  CHECK(cache.Models("p").size() == 2);
  CHECK(cache.Find("p", "a")->context_window == 100);
  CHECK(cache.Find("p", "b")->context_window == 0);
  CHECK_FALSE(cache.Find("p", "c"));
  CHECK_FALSE(cache.Find("q", "a"));
}

TEST_CASE("ListingCache: an old answer is requested again, and kept if that fails", "[model]") {
  SlowClient client;
  client.at_once = std::vector<ListedModel>{{"a", 100}};
  ListingCache cache({.wait = 1s, .keep = 0ms, .keep_failure = 0ms});
  cache.Refresh({{"p", &client}});
  client.at_once = Fail(ErrorCode::kUnavailable, "gone");
  cache.Refresh({{"p", &client}});
  CHECK(client.asked == 2);
  CHECK(cache.Find("p", "a")->context_window == 100);
}

TEST_CASE("ListingCache: no caller waits beyond the limit or asks twice, and a late answer counts", "[model]") {
  SlowClient slow, quick;
  quick.at_once = std::vector<ListedModel>{{"q", 0}};
  ListingCache cache({.wait = 1ms});
  cache.Refresh({{"quick", &quick}, {"slow", &slow}});
  cache.Refresh({{"quick", &quick}, {"slow", &slow}});
  CHECK(slow.asked == 1);
  CHECK(cache.Models("quick").size() == 1);
  CHECK(cache.Models("slow").empty());
  slow.Answer(std::vector<ListedModel>{{"s", 5}});
  CHECK(cache.Find("slow", "s")->context_window == 5);
}

TEST_CASE("ListingCache: a later caller waits only for the rest of the time", "[model]") {
  SlowClient slow;
  ListingCache cache({.wait = 500ms});
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 40; ++i) cache.Refresh({{"slow", &slow}});
  CHECK(slow.asked == 1);
  CHECK(std::chrono::steady_clock::now() - begin < 40 * 500ms / 2);
}

TEST_CASE("ListingCache: its destructor cancels requests under way", "[model]") {
  SlowClient slow;
  ListingCache cache({.wait = 1ms});
  cache.Refresh({{"slow", &slow}});
}

}  // namespace
}  // namespace reprise::listing_cache_test
