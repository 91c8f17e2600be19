#include "agent/history.h"

#include "support/test.h"

namespace reprise::history_test {
namespace {

Message Calls(std::vector<std::string> ids) {
  Message message{.role = Role::kAssistant};
  for (const std::string& id : ids) message.tool_calls.push_back({id, "echo", "{}"});
  return message;
}
Message ResultOf(const std::string& id, const std::string& text = "real") {
  Message message{.role = Role::kTool, .content = text};
  message.tool_call_id = id;
  return message;
}
Message User(const std::string& text) { return {.role = Role::kUser, .content = text}; }

}  // namespace

TEST_CASE("CompleteToolCalls: a complete history is not changed", "[agent]") {
  Messages messages{User("a"), Calls({"1", "2"}), ResultOf("2"), ResultOf("1"), User("b")};
  const auto before = messages;
  CHECK(CompleteToolCalls(messages, "missing") == 0);
  CHECK(messages == before);
}

TEST_CASE("CompleteToolCalls: each gap is filled after its own call, and real results stay", "[agent]") {
  Messages messages{User("a"), Calls({"1", "2", "3"}), ResultOf("3"), User("b"), Calls({"4"})};
  CHECK(CompleteToolCalls(messages, "missing") == 3);
  REQUIRE(messages.size() == 8);
  CHECK(messages[2].content == "real");
  CHECK(messages[3].tool_call_id == "1");
  CHECK(messages[4].tool_call_id == "2");
  CHECK(messages[4].content == "missing");
  CHECK(messages[5].role == Role::kUser);
  CHECK(messages[7].tool_call_id == "4");
}

}  // namespace reprise::history_test
