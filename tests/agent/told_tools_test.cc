#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/context.h"
#include "agent/told.h"
#include "base/json.h"
#include "support/test.h"

namespace reprise::told_tools_test {
namespace {

ToolSpec Tool(std::string name, std::size_t words = 40) {
  std::string description = "Does it e.g. so. And then";
  for (std::size_t i = 0; i < words; ++i) description += " more";
  return {.name = std::move(name),
          .description = std::move(description),
          .parameters = R"({"type":"object","description":"all","properties":{"description":{"type":"string",)"
                        R"("description":"of it","enum":["a","b"]},"list":{"type":"array","items":{"type":"integer",)"
                        R"("title":"n"}}},"required":["description"]})"};
}

std::vector<std::string> NamesOf(const std::vector<ToolSpec>& specs) {
  std::vector<std::string> names;
  for (const ToolSpec& spec : specs) names.push_back(spec.name);
  return names;
}

TEST_CASE("ShortToolsWithin: with enough room nothing is shortened", "[agent]") {
  const std::vector<ToolSpec> specs{Tool("a"), Tool("b")};
  for (const std::int64_t budget : {std::int64_t{0}, 2 * EstimateTokens(specs), std::int64_t{1'000'000}}) {
    CHECK_FALSE(ShortToolsWithin(specs, budget));
  }
}

TEST_CASE("ShortToolsWithin: with little room descriptions are short", "[agent]") {
  const std::vector<ToolSpec> specs{Tool("a"), Tool("b")};
  const auto told = ShortToolsWithin(specs, 2 * EstimateTokens(specs) - 1);
  REQUIRE(told);
  CHECK(told->left_out.empty());
  REQUIRE(told->specs.size() == 2);
  CHECK(told->specs[0].description == "Does it e.g. so.");
  CHECK(told->specs[0].parameters ==
        R"({"type":"object","properties":{"description":{"type":"string","enum":["a","b"]},)"
        R"("list":{"type":"array","items":{"type":"integer"}}},"required":["description"]})");
}

TEST_CASE("ShortToolsWithin: the least useful are left out, always the same ones", "[agent]") {
  const std::vector<ToolSpec> specs{Tool("echo"), Tool("theirs_1"), Tool("read_file"), Tool("theirs_2"),
                                    Tool("run_shell")};
  std::vector<ToolSpec> one{Tool("x")};
  const auto told_one = ShortToolsWithin(one, 2 * EstimateTokens(one) - 1);
  REQUIRE(told_one);
  const std::int64_t each = EstimateTokens(told_one->specs) + 5;
  const auto told = ShortToolsWithin(specs, 3 * 3 * each);
  REQUIRE(told);
  CHECK(NamesOf(told->specs) == std::vector<std::string>{"theirs_1", "read_file", "run_shell"});
  CHECK(told->left_out == std::vector<std::string>{"echo", "theirs_2"});
  const auto none = ShortToolsWithin(specs, 1);
  REQUIRE(none);
  CHECK(none->specs.empty());
}

}  // namespace
}  // namespace reprise::told_tools_test
