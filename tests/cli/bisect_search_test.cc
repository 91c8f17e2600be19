#include "cli/bisect_search.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "support/test.h"

namespace reprise::test::bisect_search_test {
namespace {

// Fails if all of `causes` are current, and is right in `right` of its answers.
struct Oracle {
  std::set<std::size_t> causes;
  double right;
  std::mt19937 random;
  std::size_t asked = 0;

  CountPassed Run() {
    return [this](const std::vector<bool>& is_current, std::size_t runs) -> Result<std::size_t> {
      std::size_t passed = 0;
      asked += runs;
      const bool passes = !std::ranges::all_of(causes, [&](std::size_t cause) { return is_current[cause]; });
      for (std::size_t i = 0; i < runs; ++i) {
        const bool is_right = static_cast<double>(random()) / 4294967296.0 < right;
        passed += passes == is_right ? 1 : 0;
      }
      return passed;
    };
  }
};

}  // namespace

TEST_CASE("Bisect: a cause among 64 is found by an oracle that is right in 80 of 100 answers", "[bisect]") {
  std::size_t found = 0, asked = 0, most = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    Oracle oracle{.causes = {seed % 64}, .right = 0.8, .random = std::mt19937(seed)};
    const auto result = Bisect(64, {.together = 1 + seed % 4}, oracle.Run());
    REQUIRE(result);
    CHECK(result->runs == oracle.asked);
    found += result->end == Bisection::End::kFound && result->causes == std::vector<std::size_t>{seed % 64} ? 1 : 0;
    asked += oracle.asked;
    most = std::max(most, oracle.asked);
  }
  INFO("found " << found << " of 500 causes with " << static_cast<double>(asked) / 500 << " runs on average, " << most
                << " at most");
  CHECK(found >= 475);
  CHECK(asked < 500 * 75);
  CHECK(most < 600);
}

TEST_CASE("Bisect: a sure oracle needs the same few runs for each test", "[bisect]") {
  for (const std::size_t differences : {1u, 2u, 3u, 7u, 64u, 65u}) {
    for (std::size_t cause = 0; cause < differences; ++cause) {
      Oracle oracle{.causes = {cause}, .right = 1, .random = {}};
      const auto result = Bisect(differences, {}, oracle.Run());
      REQUIRE((result && result->end == Bisection::End::kFound));
      CHECK(result->causes == std::vector<std::size_t>{cause});
      CHECK(result->runs % result->tests == 0);
      CHECK(result->error <= 0.05);
    }
  }
}

TEST_CASE("Bisect: differences that only matter together are found together", "[bisect]") {
  std::size_t found = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const std::set<std::size_t> causes = {seed % 16, 16 + seed % 7, 31};
    Oracle oracle{.causes = causes, .right = 0.9, .random = std::mt19937(seed)};
    const auto result = Bisect(32, {}, oracle.Run());
    REQUIRE(result);
    found += std::set<std::size_t>(result->causes.begin(), result->causes.end()) == causes ? 1 : 0;
  }
  CHECK(found >= 90);
}

TEST_CASE("Bisect: ends that do not differ are named, and nothing is searched", "[bisect]") {
  const auto always = [](std::size_t passed) {
    return [passed](const std::vector<bool>&, std::size_t runs) -> Result<std::size_t> { return passed * runs; };
  };
  const auto passes = Bisect(8, {}, always(1)), fails = Bisect(8, {}, always(0));
  REQUIRE((passes && fails));
  CHECK((passes->end == Bisection::End::kCurrentPasses && passes->tests == 2 && passes->causes.empty()));
  CHECK((fails->end == Bisection::End::kRecordedFails && fails->tests == 1));
  CHECK_FALSE(Bisect(8, {}, [](const auto&, std::size_t) -> Result<std::size_t> {
    return Fail(ErrorCode::kCancelled, "no further run");
  }));
}

TEST_CASE("Bisect: an outcome that is as often this as that ends the search", "[bisect]") {
  std::size_t asked = 0;
  const auto found = Bisect(7, {}, [&asked](const auto&, std::size_t runs) -> Result<std::size_t> {
    std::size_t passed = 0;
    for (std::size_t i = 0; i < runs; ++i) passed += asked++ % 2;
    return passed;
  });
  REQUIRE(found);
  CHECK((found->end == Bisection::End::kUndecided && found->causes.empty() && found->tests == 1));
  CHECK(found->runs == asked);
  CHECK(asked <= 50);
  CHECK(found->recorded.runs == asked);
}

}  // namespace reprise::test::bisect_search_test
