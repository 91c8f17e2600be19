#include "client/acp/updates.h"

#include <string>
#include <vector>

#include "support/test.h"

namespace reprise::acp::updates_test {
namespace {

std::vector<Json> After(Updates& updates, const std::vector<EventPayload>& events) {
  std::vector<Json> all;
  for (const EventPayload& payload : events) {
    for (Json& each : updates.Take({.payload = payload})) all.push_back(std::move(each));
  }
  for (Json& each : updates.Flush(/*all=*/true)) all.push_back(std::move(each));
  return all;
}

Updates Begun(UpdateAbilities abilities = {}) {
  Updates updates("/work", abilities);
  updates.Begin("int_001");
  return updates;
}

}  // namespace

TEST_CASE("Updates: streamed text is not repeated", "[acp]") {
  Updates updates = Begun();
  const auto shown = After(updates, {event::ThinkingDelta{"hm"}, event::TextDelta{"Hel"}, event::TextDelta{"lo"},
                                     event::Thinking{"hm"}, event::Answer{"Hello."}});
  REQUIRE(shown.size() == 3);
  CHECK(shown[0]["sessionUpdate"] == "agent_thought_chunk");
  CHECK(shown[1]["content"]["text"] == "Hello");
  CHECK(shown[2]["content"]["text"] == ".");
}

TEST_CASE("Updates: a call from its question to its result", "[acp]") {
  Updates updates = Begun();
  const std::string input = R"({"path":"a.txt","content":"hi"})";
  event::ApprovalRequired asked;
  asked.call_id = "call_1";
  asked.tool_name = "write_file";
  asked.tool_input = input;
  asked.reason = "writes a file";
  const auto shown = After(updates, {asked, event::ToolCallStarted{"call_1", "write_file", input},
                                     event::ToolOutputDelta{"call_1", "write_file", "half"},
                                     event::ToolResult{"call_1", "write_file", "wrote 2 bytes"}});
  REQUIRE(shown.size() == 3);
  CHECK(shown[0]["status"] == "pending");
  CHECK(shown[0]["content"][0]["newText"] == "hi");
  CHECK(shown[0]["locations"][0]["path"] == "/work/a.txt");
  CHECK(shown[1]["status"] == "in_progress");
  CHECK(shown[2]["status"] == "completed");
  CHECK(shown[2]["toolCallId"] == "int_001/call_1");
  CHECK(shown[2]["content"][1]["content"]["text"] == "wrote 2 bytes");
}

TEST_CASE("Updates: plan and tasks are one plan", "[acp]") {
  Updates updates = Begun();
  const auto shown =
      After(updates, {event::PlanUpdated{"call_1", {"look"}}, event::TaskUpdated{"call_2", {{"1", "pack", "doing"}}}});
  REQUIRE(shown.size() == 2);
  CHECK(shown[1]["entries"][0]["content"] == "look");
  CHECK(shown[1]["entries"][1]["status"] == "in_progress");
}

TEST_CASE("Updates: notices go only to clients that accept them", "[acp]") {
  const std::vector<EventPayload> events = {event::Retry{1, 10, "busy", "later"}, event::LoopDetected{"read_file", 3},
                                            event::Compacted{.summary = "they spoke"}};
  Updates silent = Begun();
  CHECK(After(silent, events).empty());
  Updates told = Begun({.notices = true, .compaction = true});
  const auto shown = After(told, events);
  REQUIRE(shown.size() == 3);
  CHECK(shown[0]["description"] == "later");
  CHECK(shown[1]["description"] == "read_file");
  CHECK(shown[2]["summary"][0]["text"] == "they spoke");
}

}  // namespace reprise::acp::updates_test
