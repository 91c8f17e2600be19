#include "terminal/progress.h"

#include "support/test.h"

namespace reprise::test::progress_test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kWide = 200;

LongTask Checking(std::uint64_t total) { return {.doing = "checking", .things = "files", .total = total}; }

}  // namespace

TEST_CASE("ProgressText: count, total, rate and time left", "[progress]") {
  CHECK(ProgressText(Checking(3030), 1204, 3440ms, kWide) == "checking 1,204 of 3,030 files, 350/s, 6 s left");
  CHECK(ProgressText(Checking(3030), 0, 400ms, kWide) == "checking 0 of 3,030 files");
  CHECK(ProgressText(Checking(3030), 3030, 1s, kWide) == "checking 3,030 of 3,030 files, 3,030/s, 1 s left");
  CHECK(ProgressText(Checking(0), 1234567, 1000s, kWide) == "checking 1,234,567 files, 1,235/s");
}

TEST_CASE("ProgressText: there may be more than was expected, and then nobody knows how much", "[progress]") {
  CHECK(ProgressText(Checking(10), 11, 1s, kWide) == "checking 11 files, 11/s");
}

TEST_CASE("ProgressText: slow work and long waits are said in fitting units", "[progress]") {
  CHECK(ProgressText(Checking(100), 1, 500ms, kWide) == "checking 1 of 100 files, 2.0/s, 50 s left");
  CHECK(ProgressText(Checking(100), 1, 60s, kWide) == "checking 1 of 100 files, 99 min left");
  CHECK(ProgressText(Checking(1000), 1, 60s, kWide) == "checking 1 of 1,000 files, 16 h 39 min left");
  CHECK(ProgressText(Checking(1'000'000), 1, 60s, kWide) == "checking 1 of 1,000,000 files");
}

TEST_CASE("ProgressText: a thing may take several steps", "[progress]") {
  const LongTask task{.doing = "importing", .things = "interactions", .total = 100, .steps_each = 2};
  CHECK(ProgressText(task, 101, 1s, kWide) == "importing 50 of 100 interactions, 51/s, 1 s left");
  CHECK(ProgressText(task, 200, 1s, kWide) == "importing 100 of 100 interactions, 100/s, 1 s left");
}

TEST_CASE("ProgressText: what does not fit is left out, the rate first", "[progress]") {
  const std::string all = "checking 1,204 of 3,030 files, 350/s, 6 s left";
  const std::string without_rate = "checking 1,204 of 3,030 files, 6 s left", alone = "checking 1,204 of 3,030 files";
  for (std::size_t columns = 0; columns <= all.size(); ++columns) {
    const std::string text = ProgressText(Checking(3030), 1204, 3440ms, columns);
    INFO(columns);
    CHECK(text.size() <= columns);
    CHECK(text == (columns >= all.size()            ? all
                   : columns >= without_rate.size() ? without_rate
                                                    : alone.substr(0, columns)));
  }
}

}  // namespace reprise::test::progress_test
