#include "approval/loop_guard.h"

#include <string>

#include "support/test.h"

namespace reprise::loop_guard_test {
namespace {

// A conversation made of rounds; each character is a call, by its arguments.
class Conversation {
 public:
  Conversation() { Say("go"); }
  void Say(std::string text) { messages.push_back({.role = Role::kUser, .content = std::move(text)}); }
  std::optional<CallLoop> Round(const std::vector<std::string>& arguments) {
    Message message{.role = Role::kAssistant};
    for (const std::string& each : arguments) {
      message.tool_calls.push_back({"call_" + std::to_string(++calls_), "tool", each});
    }
    const std::string last = message.tool_calls.back().id;
    messages.push_back(std::move(message));
    return FindCallLoop(messages, last);
  }
  std::vector<Message> messages;

 private:
  int calls_ = 0;
};

}  // namespace

TEST_CASE("CallLoop: the third equal call closes the circle, the fourth was warned", "[agent]") {
  Conversation c;
  CHECK_FALSE(c.Round({R"({"a":1,"b":2})"}));
  CHECK_FALSE(c.Round({R"({"b": 2, "a": 1})"}));  // the same value
  const auto third = c.Round({R"({"a":1,"b":2})"});
  REQUIRE(third);
  CHECK(third->count == 3);
  CHECK_FALSE(third->warned);
  const auto fourth = c.Round({R"({"a":1,"b":2})"});
  REQUIRE(fourth);
  CHECK(fourth->count == 4);
  CHECK(fourth->warned);
  CHECK_FALSE(c.Round({R"({"a":2})"}));
}

TEST_CASE("CallLoop: two alternating calls, in separate rounds or together", "[agent]") {
  Conversation apart;
  for (int i = 0; i < 5; ++i) CHECK_FALSE(apart.Round({i % 2 ? "{}" : "[]"}));
  const auto sixth = apart.Round({"{}"});
  REQUIRE(sixth);
  CHECK(sixth->count == 3);
  CHECK_FALSE(sixth->warned);
  CHECK(apart.Round({"[]"}).value().warned);

  Conversation together;
  CHECK_FALSE(together.Round({"1", "2"}));
  CHECK_FALSE(together.Round({"1", "2"}));
  CHECK_FALSE(together.Round({"1", "2"}).value().warned);
  CHECK(together.Round({"1", "2"}).value().warned);
}

TEST_CASE("CallLoop: histories without a circle", "[agent]") {
  Conversation c;
  CHECK_FALSE(c.Round({"1", "1", "1"}));  // one response: nothing was seen between them
  CHECK_FALSE(c.Round({"1"}));
  c.Say("again");
  CHECK_FALSE(c.Round({"1"}));
  CHECK_FALSE(c.Round({"1"}));
  CHECK_FALSE(c.Round({"2"}));
  CHECK_FALSE(c.Round({"1"}));
  Conversation three;
  for (int i = 0; i < 12; ++i) CHECK_FALSE(three.Round({std::to_string(i % 3)}));
  Conversation broken;  // what is no JSON is compared as it is
  CHECK_FALSE(broken.Round({"{x"}));
  CHECK_FALSE(broken.Round({"{x"}));
  CHECK_FALSE(broken.Round({"{y"}));
}

TEST_CASE("CallLoop: an unknown id and an empty history are no circle", "[agent]") {
  CHECK_FALSE(FindCallLoop({}, "x"));
  CHECK_FALSE(FindCallLoop({{.role = Role::kUser, .content = "hi"}}, "x"));
}

}  // namespace reprise::loop_guard_test
