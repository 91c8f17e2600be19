#include "cli/live_runs.h"

#include <array>

#include "support/test.h"

namespace reprise::test::live_runs_test {
namespace {

TEST_CASE("the interval of passed runs is that of Wilson") {
  CHECK(PassedText(3, 5) == "3 of 5 runs passed (95 % interval 23-88 %)");
  CHECK(PassedText(5, 5) == "5 of 5 runs passed (95 % interval 57-100 %)");
  CHECK(PassedText(0, 1) == "0 of 1 run passed (95 % interval 0-79 %)");
  CHECK(PassedText(500, 1000) == "500 of 1,000 runs passed (95 % interval 47-53 %)");
}

TEST_CASE("checks for runs with a model are collected, the most particular number last") {
  const std::array checks = {
      ParseChecks(R"({"at_least":"1/2","judge":{"model":"a","question":"?"}})", "suite.json").value(),
      ParseChecks(R"({"command":{"argv":["x"],"seconds":0.5},"turns":{"2":{"at_least":"3/4","max":{"rounds":1}}}})",
                  "a.json")
          .value()};
  const LiveChecks second = LiveChecksOf(checks, InteractionId::FromNumber(7), 2);
  CHECK((second.any && second.commands.size() == 1 && second.judges.size() == 1 && second.at_least->times == 4));
  const LiveChecks first = LiveChecksOf(checks, InteractionId::FromNumber(7), 1);
  CHECK((first.any && first.at_least->times == 2));
  const LiveChecks none = LiveChecksOf(std::span(checks).subspan(1), InteractionId::FromNumber(7), 1);
  CHECK((none.any && none.commands.front().seconds == 0.5 && !none.at_least));
}

}  // namespace
}  // namespace reprise::test::live_runs_test
