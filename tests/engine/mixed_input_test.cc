#include "engine/mixed_input.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "support/test.h"

namespace reprise::test::mixed_input_test {
namespace {

const std::string kThen =
    R"({"model":"a","messages":[{"role":"system","content":"One.\n\nTwo.\n\nLast \u00e4."},)"
    R"({"role":"user","content":"hi"}],)"
    R"("tools":[{"name":"x","description":"old"},{"name":"gone"},{"name":"y"}],"effort":"low","stream":true})";
const std::string kNow =
    R"({"model":"b","stream":true,)"
    R"("messages":[{"role":"system","content":"One.\n\nZwei.\n\nNew.\n\nMore.\n\nLast \u00e4."},)"
    R"({"role":"user","content":"hi"}],"tools":[{"name":"y"},{"name":"x","description":"new"},{"name":"added"}],)"
    R"("max_tokens":7})";

MixedInput Make(const std::string& then = kThen, const std::string& now = kNow, const std::vector<Drift>& names = {}) {
  auto input = MixedInput::Of(then, now, names);
  REQUIRE(input);
  return *std::move(input);
}

std::string Mixed(const MixedInput& input, const std::string& body, const std::vector<std::size_t>& current) {
  std::vector<bool> is_current(input.differences().size());
  for (const std::size_t each : current) is_current.at(each) = true;
  return input.Mix(body, is_current).value();
}

std::size_t Find(const MixedInput& input, const std::string& name) {
  const auto found = std::ranges::find(input.differences(), name, &Drift::name);
  REQUIRE(found != input.differences().end());
  return static_cast<std::size_t>(found - input.differences().begin());
}

}  // namespace

TEST_CASE("MixedInput: all as recorded is the recorded body byte for byte, and all as today that of today",
          "[bisect]") {
  const std::pair<std::string, std::string> kBodies[] = {
      {kThen, kNow},
      {kNow, kThen},
      {kThen, R"({"messages":[{"role":"user","content":"hi"}]})"},
      {R"({"system":[{"type":"text","text":"A.\n\nB.","cache_control":{"type":"ephemeral"}}],)"
       R"("messages":[],"tools":[]})",
       R"({"messages":[],"system":"A.\n\nC."})"},
      {R"({"instructions":"A.","input":["x"]})", R"({"input":["x"],"instructions":"B.\n\n"})"}};
  for (const auto& [then, now] : kBodies) {
    INFO(then << "\n" << now);
    const MixedInput input = Make(then, now);
    const std::size_t count = input.differences().size();
    REQUIRE(count > 0);
    CHECK(input.Mix(now, std::vector<bool>(count, false)).value() == then);
    CHECK(input.Mix(now, std::vector<bool>(count, true)).value() == now);
    CHECK(input.left_over().empty());
  }
}

TEST_CASE("MixedInput: each difference stands for itself", "[bisect]") {
  const MixedInput input = Make();
  // Three of the prompt, three of tools and one of their order, three parameters.
  CHECK(input.differences().size() == 10);
  const std::string effort = Mixed(input, kNow, {Find(input, "model")});
  CHECK(effort.find(R"("model":"b")") != effort.npos);
  CHECK(effort.find(R"("effort":"low")") != effort.npos);
  CHECK(effort.find("max_tokens") == effort.npos);
  CHECK(effort.find(R"(One.\n\nTwo.\n\nLast)") != effort.npos);
  CHECK(effort.find(R"([{"name":"x","description":"old"},{"name":"gone"},{"name":"y"}])") != effort.npos);
  const std::string tools = Mixed(input, kNow, {Find(input, "x"), Find(input, "gone"), Find(input, "added")});
  CHECK(tools.find(R"([{"name":"x","description":"new"},{"name":"added"},{"name":"y"}])") != tools.npos);
  const std::string order = Mixed(input, kNow, {Find(input, "(order)")});
  CHECK(order.find(R"([{"name":"y"},{"name":"x","description":"old"},{"name":"gone"}])") != order.npos);
}

TEST_CASE("MixedInput: a key for the provider's cache differs if one input has none", "[bisect]") {
  const std::string with = R"({"prompt_cache_key":"k1","messages":[]})", without = R"({"messages":[]})";
  CHECK(Make(with, R"({"prompt_cache_key":"k2","messages":[]})").differences().empty());
  for (const auto& [then, now] : {std::pair(with, without), std::pair(without, with)}) {
    const MixedInput input = Make(then, now);
    REQUIRE(input.differences().size() == 1);
    CHECK(input.differences()[0].name == "prompt_cache_key");
    CHECK(Mixed(input, now, {}) == then);
  }
}

TEST_CASE("MixedInput: paragraphs that were replaced by as many are apart, and named by what is known", "[bisect]") {
  const auto body = [](const std::string& prompt) { return R"({"system":")" + prompt + R"(","messages":[]})"; };
  const std::string now = body(R"(A2\n\nB2\n\nC)");
  const std::vector<Drift> names = {
      {.cause = Drift::Cause::kModule, .name = "10-a", .before = "A1\n\nB1", .after = "A2"},
      {.cause = Drift::Cause::kSkill, .name = "s", .after = "B2"}};
  const MixedInput input = Make(body(R"(A1\n\nB1\n\nC)"), now, names);
  REQUIRE(input.differences().size() == 2);
  CHECK((input.differences()[0].name == "10-a" && input.differences()[0].before == "A1"));
  CHECK((input.differences()[1].cause == Drift::Cause::kSkill && input.differences()[1].after == "B2"));
  CHECK(Mixed(input, now, {1}) == body(R"(A1\n\nB2\n\nC)"));
}

TEST_CASE("MixedInput: later requests keep their messages, and those with another prompt are left alone", "[bisect]") {
  const MixedInput input = Make();
  std::string later = kNow;
  later.replace(later.find(R"({"role":"user","content":"hi"})"), 30,
                R"({"role":"user","content":"hi"},{"role":"tool","content":"t"})");
  CHECK(Mixed(input, later, {}).find(R"(,{"role":"user","content":"hi"},{"role":"tool","content":"t"}])") !=
        std::string::npos);
  CHECK(Make(kThen, later).left_over() == "/messages/2");
  const std::string other = R"({"model":"b","messages":[{"role":"system","content":"Sum up."}]})";
  CHECK(Mixed(input, other, {}) == other);
  CHECK_FALSE(input.Mix("[]", std::vector<bool>(input.differences().size())));
}

TEST_CASE("MixedInput: what is no conversation, or for another interface, is refused", "[bisect]") {
  const std::string good = R"({"system":"A","messages":[]})";
  for (const std::string bad :
       {"", "7", "{", "{}", R"({"model":"a"})", R"({"messages":[{"role":"system","content":"A"}]})",
        R"({"instructions":"A","input":[]})"}) {
    INFO(bad);
    CHECK_FALSE(MixedInput::Of(good, bad, {}));
    CHECK_FALSE(MixedInput::Of(bad, good, {}));
  }
  CHECK(MixedInput::Of(good, good, {})->differences().empty());
}

}  // namespace reprise::test::mixed_input_test
