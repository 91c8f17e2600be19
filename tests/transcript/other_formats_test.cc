#include "domain/transcript/other_formats.h"

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "base/json.h"
#include "domain/transcript/rounds.h"
#include "support/test.h"

namespace reprise::other_formats_test {
namespace {

const ChatSummary kSummary{.id = *ChatId::Parse("trip"), .title = "Trip"};

AgentEvent At(int second, std::uint32_t round, EventPayload payload) {
  return {.seq = 1, .round_index = round, .at = Timestamp(std::chrono::seconds(second)), .payload = std::move(payload)};
}

// Two rounds: a call that was approved, one that was rejected, and one with a sub-agent; then the answer.
AddedInteraction Turn() {
  Interaction turn{.id = InteractionId::FromNumber(2), .chat_id = kSummary.id};
  turn.parent_id = InteractionId::FromNumber(1);
  turn.status = InteractionStatus::kCompleted;
  turn.user_message = "go";
  turn.model = "a/b";
  turn.workspace = "/work";
  turn.record = RunRecord{.first_message = 3};  // of which the state has one: the user's
  AgentState state;
  state.messages = {
      {.role = Role::kUser, .content = "go"},
      {.role = Role::kAssistant,
       .content = "First",
       .tool_calls = {{"c1", "run_shell", R"({"command":"ls"})"},
                      {"c2", "run_shell", "not JSON"},
                      {"c3", "research", R"({"task":"find it"})"}},
       .extras = R"({"provider_extras":{"x":{"blocks":[{"type":"thinking","thinking":"hm","signature":"s"}]}}})"},
      {.role = Role::kTool, .content = "cut", .tool_call_id = "c1"},
      {.role = Role::kTool, .content = "no", .tool_call_id = "c2", .is_error = true},
      {.role = Role::kTool, .content = "found", .tool_call_id = "c3"},
      {.role = Role::kAssistant, .content = "Done"}};
  turn.final_agent_state = std::move(state);
  event::Approved yes{"a1", "c1", "sha256:1", "once", std::nullopt};
  yes.answered_by = "alice";
  event::ApprovalRequired asked;
  asked.approval_id = "a1";
  asked.call_id = "c1";
  asked.tool_name = "run_shell";
  turn.events = {At(1, 0, event::Thinking{"hm"}),
                 At(1, 0, event::MessageText{"First"}),
                 At(1, 0, event::Usage{{.input_tokens = 10, .output_tokens = 2, .cache_read_tokens = 4}}),
                 At(2, 0, asked),
                 At(3, 0, yes),
                 At(3, 0, event::Rejected{"a2", "c2", "why?"}),
                 At(4, 0, event::ToolCallStarted{"c1", "run_shell", R"({"command":"ls"})"}),
                 At(5, 0, event::ToolResult{"c1", "run_shell", "the whole result", false}),
                 At(5, 0, event::Nested{"c3", 0, event::ToolCallStarted{"n1", "read_file", R"({"path":"x"})"}}),
                 At(6, 0, event::Nested{"c3", 0, event::ToolResult{"n1", "read_file", "text", false}}),
                 At(6, 0, event::Nested{"c3", 1, event::Answer{"it is x"}}),
                 At(7, 1, event::Answer{"Done"})};
  return {.interaction = std::move(turn), .kept_messages = 2};
}

}  // namespace

TEST_CASE("RoundsOf: messages have the calls, events the times, whole results and approvals", "[transcript]") {
  const auto rounds = RoundsOf(Turn());
  REQUIRE(rounds.size() == 2);
  CHECK(rounds[0].thinking == "hm");
  CHECK(rounds[0].text == "First");
  CHECK(rounds[0].at == Timestamp(std::chrono::seconds(1)));
  REQUIRE(rounds[0].calls.size() == 3);
  CHECK(rounds[0].calls[0].result == "the whole result");
  CHECK(rounds[0].calls[0].approved->answered_by == "alice");
  CHECK(rounds[0].calls[1].result == "no");
  CHECK(rounds[0].calls[1].rejected->feedback == "why?");
  REQUIRE(rounds[0].calls[2].of_sub_agent.size() == 2);
  CHECK(rounds[0].calls[2].of_sub_agent[0].calls[0].result == "text");
  CHECK(rounds[0].calls[2].of_sub_agent[1].text == "it is x");
  CHECK(rounds[1].text == "Done");
  CHECK(rounds[1].calls.empty());
}

TEST_CASE("RoundsOf: events alone will do", "[transcript]") {
  AddedInteraction turn = Turn();
  turn.interaction.final_agent_state.reset();
  turn.interaction.record.reset();
  const auto rounds = RoundsOf(turn);
  REQUIRE(rounds.size() == 2);
  CHECK(rounds[0].text == "First");
  CHECK(rounds[0].calls[0].arguments == R"({"command":"ls"})");
  CHECK(rounds[1].text == "Done");
}

TEST_CASE("FormatAtif: only what a person has rejected is rejected", "[transcript]") {
  for (const auto& [expired, superseded, decision] :
       {std::tuple(false, false, "rejected"), std::tuple(true, false, "expired"),
        std::tuple(false, true, "withdrawn")}) {
    AddedInteraction turn = Turn();
    for (AgentEvent& each : turn.interaction.events) {
      if (auto* rejected = std::get_if<event::Rejected>(&each.payload)) {
        rejected->expired = expired;
        rejected->superseded = superseded;
      }
    }
    CHECK(FormatAtif(kSummary, {turn}).find("\"decision\":\"" + std::string(decision)) != std::string::npos);
  }
}

TEST_CASE("FormatAtif: a step for each message, with calls, results, approvals and the sub-agent", "[transcript]") {
  const Json json = *ParseJson(FormatAtif(kSummary, {Turn()}));
  CHECK(json["schema_version"] == "ATIF-v1.7");
  REQUIRE(json["steps"].size() == 3);
  CHECK(json["steps"][0]["source"] == "user");
  const Json& step = json["steps"][1];
  CHECK(step["step_id"] == 2);
  CHECK(step["reasoning_content"] == "hm");
  CHECK(step["metrics"] == Json{{"prompt_tokens", 10}, {"completion_tokens", 2}, {"cached_tokens", 4}});
  CHECK(step["tool_calls"][0]["arguments"] == Json{{"command", "ls"}});
  CHECK(step["tool_calls"][0]["extra"]["approval"]["by"] == "alice");
  CHECK(step["tool_calls"][1]["arguments"] == Json{{"unparsed", "not JSON"}});
  CHECK(step["tool_calls"][1]["extra"]["approval"]["decision"] == "rejected");
  CHECK(step["observation"]["results"][0]["content"] == "the whole result");
  CHECK(step["observation"]["results"][1]["extra"]["is_error"] == true);
  const Json& below = json["subagent_trajectories"][0];
  CHECK(step["observation"]["results"][2]["subagent_trajectory_ref"][0]["trajectory_id"] == below["trajectory_id"]);
  CHECK(below["steps"].size() == 2);
  CHECK(json["final_metrics"]["total_steps"] == 3);
}

TEST_CASE("FormatAtif: a chat without a message has the one step that the format demands", "[transcript]") {
  const Json json = *ParseJson(FormatAtif(kSummary, {}));
  REQUIRE(json["steps"].size() == 1);
  CHECK(json["steps"][0]["source"] == "system");
  CHECK(json["steps"][0]["message"] == "");
  CHECK(json["final_metrics"]["total_steps"] == 1);
}

TEST_CASE("FormatAtif: each turn begins with a step of the user, also if nothing was said", "[transcript]") {
  AddedInteraction wordless = Turn();
  wordless.interaction.user_message.clear();
  const Json json = *ParseJson(FormatAtif(kSummary, {Turn(), wordless}));
  CHECK(json["steps"][3]["source"] == "user");
  CHECK(json["steps"][3]["message"] == "");
}

TEST_CASE("FormatAtif: calls and sub-agents have names of their own, also if turns repeat the ids of calls",
          "[transcript]") {
  AddedInteraction turn = Turn();
  auto& messages = turn.interaction.final_agent_state->messages;
  Message again = messages[1];
  again.tool_calls = {{"c1", "run_shell", "{}"}, {"c1", "run_shell", "{}"}, {"c1_2", "run_shell", "{}"}};
  turn.interaction.events.clear();
  turn.interaction.record.reset();
  turn.interaction.final_agent_state->messages = {messages[0], again};
  turn.kept_messages = 0;
  const Json json = *ParseJson(FormatAtif(kSummary, {Turn(), Turn(), turn}));
  const Json& below = json["subagent_trajectories"];
  REQUIRE(below.size() == 2);
  CHECK(below[0]["trajectory_id"] == "trip/c3");
  CHECK(below[1]["trajectory_id"] == "trip/c3_2");
  const Json& second = json["steps"][4]["observation"]["results"][2];
  CHECK(second["subagent_trajectory_ref"][0]["trajectory_id"] == "trip/c3_2");
  std::vector<std::string> ids;
  for (const Json& call : json["steps"].back()["tool_calls"]) ids.push_back(call["tool_call_id"]);
  CHECK(ids == std::vector<std::string>{"c1", "c1_2", "c1_2_2"});
}

TEST_CASE("FormatClaudeCode: a chain of lines, with the sub-agent beside it", "[transcript]") {
  std::vector<Json> lines;
  const std::string text = FormatClaudeCode(kSummary, {Turn()});
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(*ParseJson(text.substr(at, end - at)));
    at = end + 1;
  }
  CHECK(FormatClaudeCode(kSummary, {Turn()}) == text);
  std::string last;
  std::size_t side = 0;
  for (const Json& line : lines) {
    CHECK(line["sessionId"] == lines[0]["sessionId"]);
    CHECK(line["cwd"] == "/work");
    if (line["isSidechain"] == true) {
      ++side;
      continue;
    }
    CHECK(TextMember(line, "parentUuid") == last);
    last = line["uuid"];
  }
  CHECK(lines.size() == 10);
  CHECK(side == 4);
  const Json& content = lines[1]["message"]["content"];
  CHECK(content[0] == Json{{"type", "thinking"}, {"thinking", "hm"}, {"signature", "s"}});
  CHECK(content[1]["text"] == "First");
  CHECK(content[2]["input"] == Json{{"command", "ls"}});
  CHECK(lines[1]["message"]["usage"]["input_tokens"] == 6);
  CHECK(lines[2]["message"]["content"][0]["content"] == "the whole result");
  CHECK(lines[3]["message"]["content"][0]["is_error"] == true);
}

}  // namespace reprise::other_formats_test
