#include "model/tool_call_assembler.h"

#include <nlohmann/json.hpp>

#include "support/test.h"

namespace reprise::tool_call_assembler_test {
namespace {

std::vector<ToolCall> Assemble(const std::vector<ToolCallDelta>& deltas) {
  ToolCallAssembler assembler;
  for (const ToolCallDelta& delta : deltas) REQUIRE(assembler.Add(delta));
  auto calls = assembler.Take(/*must_be_whole=*/false);
  REQUIRE(calls);
  return *calls;
}

TEST_CASE("Tool calls: pieces are joined by index", "[model]") {
  CHECK(Assemble({{0, "call_a", "echo", ""},
                  {0, "", "", "{\"te"},
                  {1, "call_b", "time", "{"},
                  {0, "", "", "xt\":1}"},
                  {1, "", "", "}"}}) ==
        std::vector<ToolCall>{{"call_a", "echo", "{\"text\":1}"}, {"call_b", "time", "{}"}});
}

TEST_CASE("Tool calls: are ordered by index", "[model]") {
  CHECK(Assemble({{5, "b", "second", "{}"}, {2, "a", "first", "{}"}}) ==
        std::vector<ToolCall>{{"a", "first", "{}"}, {"b", "second", "{}"}});
}

TEST_CASE("Tool calls: without an index a new id or name begins a call, the rest continues the last", "[model]") {
  CHECK(Assemble({{{}, "a", "one", "{"}, {{}, "", "", "}"}, {{}, "b", "two", "{"}, {{}, "b", "", "}"}}) ==
        std::vector<ToolCall>{{"a", "one", "{}"}, {"b", "two", "{}"}});
  const auto calls = Assemble({{{}, "", "one", "{}"}, {{}, "", "two", "{}"}});
  REQUIRE(calls.size() == 2);
  CHECK(calls[1].name == "two");
}

TEST_CASE("Tool calls: whole calls that share one index stay apart", "[model]") {
  CHECK(Assemble({{0, "a", "one", "{}"}, {0, "b", "two", "{}"}, {0, "", "", " "}}) ==
        std::vector<ToolCall>{{"a", "one", "{}"}, {"b", "two", "{} "}});
}

TEST_CASE("Tool calls: a repeated name is one name, pieces of a name are joined", "[model]") {
  CHECK(Assemble({{0, "a", "echo", "{"}, {0, "a", "echo", "}"}}) == std::vector<ToolCall>{{"a", "echo", "{}"}});
  CHECK(Assemble({{0, "a", "calcu", ""}, {0, "", "lator", "{}"}}) == std::vector<ToolCall>{{"a", "calculator", "{}"}});
}

TEST_CASE("Tool calls: missing and repeated ids are made unique", "[model]") {
  const auto calls = Assemble({{0, "", "a", "{}"}, {1, "", "b", "{}"}, {2, "same", "c", "{}"}, {3, "same", "d", "{}"}});
  REQUIRE(calls.size() == 4);
  CHECK(calls[0].id.starts_with("call_"));
  CHECK(calls[0].id.size() > 20);
  CHECK(calls[0].id != calls[1].id);
  CHECK(calls[2].id == "same");
  CHECK(calls[3].id != "same");
}

TEST_CASE("Tool calls: an id that was used before is not given to another call", "[model]") {
  ToolCallAssembler assembler;
  REQUIRE(assembler.Add({0, "call_1", "a", "{}"}));
  assembler.members()["signature"] = "s";
  REQUIRE(assembler.Add({1, "call_2", "b", "{}"}));
  const auto calls = assembler.Take(/*must_be_whole=*/true, {"call_1"});
  REQUIRE(calls);
  CHECK(calls->front().id != "call_1");
  CHECK(calls->back().id == "call_2");
  CHECK(assembler.TakeMembers().at(calls->front().id).at("signature") == "s");
}

TEST_CASE("Tool calls: a call without a name is rejected", "[model]") {
  ToolCallAssembler assembler;
  REQUIRE(assembler.Add({0, "a", "", "{}"}));
  const auto calls = assembler.Take(/*must_be_whole=*/false);
  REQUIRE_FALSE(calls);
  CHECK(calls.error().reason == "provider_protocol");
}

TEST_CASE("Tool calls: incomplete arguments are rejected if the answer may have been cut off", "[model]") {
  for (const bool must_be_whole : {true, false}) {
    ToolCallAssembler assembler;
    REQUIRE(assembler.Add({0, "a", "echo", "{\"text\":\"hal"}));
    CHECK(assembler.Take(must_be_whole).has_value() == !must_be_whole);
  }
}

TEST_CASE("Tool calls: number and length are limited", "[model]") {
  ToolCallAssembler many;
  for (std::size_t i = 0; i < ToolCallAssembler::kMaxCalls; ++i) {
    REQUIRE(many.Add({static_cast<std::int64_t>(i), "", "echo", "{}"}));
  }
  CHECK_FALSE(many.Add({1'000'000'000, "", "echo", "{}"}));

  ToolCallAssembler longer;
  const std::string megabyte(1u << 20, 'x');
  for (int i = 0; i < 3; ++i) REQUIRE(longer.Add({i, "", "echo", megabyte}));
  CHECK_FALSE(longer.Add({0, "", "", megabyte}));
}

}  // namespace
}  // namespace reprise::tool_call_assembler_test
