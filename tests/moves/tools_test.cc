// Sessions of other tools: what each tool has of its own. tests/e2e/test_moves.py has whole samples of them.
#include <pthread.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "domain/codec.h"
#include "moves/read_text.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::test::tools_test {
namespace {

std::string Line(const Json& json) { return DumpJson(json) + "\n"; }

// The kinds of events of a turn with their texts: "TOOL_RESULT one".
std::vector<std::string> EventsOf(const Interaction& turn) {
  std::vector<std::string> events;
  for (const AgentEvent& event : turn.events) {
    const Json json = ToJson(event);
    std::string text = TextMember(json, "type");
    for (const char* member : {"content", "tool_name", "tool_output", "summary"}) {
      if (json.contains(member)) text += " " + TextMember(json, member);
    }
    events.push_back(std::move(text));
  }
  return events;
}

std::vector<std::string> PromptsOf(const ForeignChat& chat) {
  std::vector<std::string> prompts;
  for (const Interaction& each : chat.interactions) prompts.push_back(each.user_message);
  return prompts;
}

Json GeminiMessage(const char* id, const char* type, const Json& content, const Json& more = Json::object()) {
  Json message = {{"id", id}, {"timestamp", "2026-05-01T10:00:00.000Z"}, {"type", type}, {"content", content}};
  message.update(more);
  return message;
}

std::string GeminiLines(const std::vector<Json>& lines) {
  std::string text = Line({{"sessionId", "g"}, {"projectHash", "h"}, {"kind", "main"}});
  for (const Json& line : lines) text += Line(line);
  return text;
}

}  // namespace

TEST_CASE("MovedTurns: a log of Gemini CLI is read as what remains of it", "[moves]") {
  const auto call = [](const char* status, const Json& result) {
    return Json{{"toolCalls",
                 {{{"id", "ls-1"}, {"name", "ls"}, {"args", Json::object()}, {"status", status}, {"result", result}}}}};
  };
  const Json result = {{{"functionResponse", {{"id", "ls-1"}, {"response", {{"output", "a.txt"}}}}}}};
  const ForeignChat chat = Chat(GeminiLines(
      {GeminiMessage("u1", "user", {{{"text", "list"}}}), GeminiMessage("m1", "gemini", "Looking."),
       GeminiMessage("m1", "gemini", "Looking.", call("executing", nullptr)), GeminiMessage("r1", "user", result),
       GeminiMessage("m1", "gemini", "Looking.", call("success", result)), GeminiMessage("u2", "user", "wrong way"),
       GeminiMessage("m2", "gemini", "no"), Json{{"$rewindTo", "u2"}}, Json{{"$rewindTo", "nothing"}},
       GeminiMessage("u3", "user", "right way"), GeminiMessage("m3", "gemini", "good")}));
  CHECK(PromptsOf(chat) == std::vector<std::string>{"list", "right way"});
  CHECK(EventsOf(chat.interactions[0]) ==
        std::vector<std::string>{"MESSAGE Looking.", "TOOL_CALL ls", "TOOL_RESULT ls a.txt"});
  CHECK(chat.notes == std::vector<std::string>{"left out: 2 x message that was taken back",
                                               "left out: 1 x undoing that names no message"});
}

TEST_CASE("MovedTurns: Gemini CLI's list of what the model is told replaces the messages, a summary those before it",
          "[moves]") {
  const auto told = [](const std::vector<Json>& messages) { return Json{{"$set", {{"messages", messages}}}}; };
  const Json context = GeminiMessage("c", "user", {{{"text", "<session_context>\nToday is"}}});
  const Json question = GeminiMessage("u1", "user", "one"), answer = GeminiMessage("m1", "gemini", "first");
  // A list alone.
  CHECK(PromptsOf(Chat(GeminiLines({told({context, question, answer})}))) == std::vector<std::string>{"one"});
  // A turn that was given up is taken back.
  const ForeignChat aborted =
      Chat(GeminiLines({told({context}), question, answer, GeminiMessage("u2", "user", "never mind"),
                        told({context, question, answer}), GeminiMessage("u3", "user", "three")}));
  CHECK(PromptsOf(aborted) == std::vector<std::string>{"one", "three"});

  const Json summary = GeminiMessage("s", "user", {{{"text", "<state_snapshot>all of it</state_snapshot>"}}});
  const Json reply = GeminiMessage("k", "gemini", {{{"text", "Got it. Thanks for the additional context!"}}});
  const std::vector<Json> said{question, answer, GeminiMessage("u2", "user", "two"),
                               GeminiMessage("m2", "gemini", "second")};
  // What is kept verbatim comes again under other names.
  const std::vector<Json> kept{GeminiMessage("x1", "user", {{{"text", "two"}}}),
                               GeminiMessage("x2", "gemini", {{{"text", "second"}}})};
  std::vector<Json> lines(said), list{context, summary, reply};
  list.insert(list.end(), kept.begin(), kept.end());
  lines.push_back(told(list));
  lines.push_back(GeminiMessage("u3", "user", "three"));
  lines.push_back(GeminiMessage("m3", "gemini", "third"));
  list.push_back(GeminiMessage("u3", "user", "three"));
  lines.push_back(told(list));  // again; the last answer is gone
  const ForeignChat chat = Chat(GeminiLines(lines));
  CHECK(PromptsOf(chat) == std::vector<std::string>{"one", "two", "three"});
  CHECK(EventsOf(chat.interactions[0]) ==
        std::vector<std::string>{"ANSWER first", "COMPACTED <state_snapshot>all of it</state_snapshot>"});
  CHECK(EventsOf(chat.interactions[1]) == std::vector<std::string>{"ANSWER second"});
  REQUIRE(chat.interactions[2].final_agent_state->compaction);
  CHECK(chat.interactions[2].final_agent_state->compaction->end == 2);
  CHECK(chat.interactions[2].final_agent_state->compaction->requested);
}

TEST_CASE("MovedTurns: what a session begins with in place of another is what the model is told", "[moves]") {
  const ForeignChat chat =
      Chat(ClaudeLine("user", "1", "", R"("This session goes on: the code is 4711.")", R"(,"isCompactSummary":true)") +
           ClaudeLine("user", "2", "1", R"("go on")") +
           ClaudeLine("assistant", "3", "2", R"([{"type":"text","text":"ok"}])"));
  REQUIRE(chat.interactions.size() == 2);
  CHECK(chat.interactions[0].status == InteractionStatus::kCompleted);
  CHECK(chat.interactions[0].final_agent_state->messages[0].content == "This session goes on: the code is 4711.");
  CHECK(EventsOf(chat.interactions[0]) ==
        std::vector<std::string>{"COMPACTED This session goes on: the code is 4711."});
}

TEST_CASE("MovedTurns: goose's summaries and remarks are no person's messages", "[moves]") {
  const auto message = [](const char* role, const char* text, bool user, bool agent) {
    return Json{{"role", role},
                {"created", 1'770'000'000},
                {"content", {{{"type", "text"}, {"text", text}}}},
                {"metadata", {{"userVisible", user}, {"agentVisible", agent}}}};
  };
  const Json session = {{"id", "1"},
                        {"working_dir", "/x"},
                        {"conversation",
                         {message("user", "first", true, false), message("assistant", "a first", true, false),
                          message("user", "all of it", false, true), message("assistant", "do not tell", false, true),
                          message("user", "second", true, true), message("assistant", "a second", true, true),
                          message("user", "the time is", false, true)}}};
  const ForeignChat chat = Chat(DumpJson(session));
  CHECK(PromptsOf(chat) == std::vector<std::string>{"first", "second"});
  CHECK(EventsOf(chat.interactions[0]) == std::vector<std::string>{"ANSWER a first", "COMPACTED all of it"});
  CHECK(chat.interactions[1].final_agent_state->compaction->summary == "all of it");
  CHECK(chat.notes == std::vector<std::string>{"left out: 2 x message that the tool added by itself"});
}

TEST_CASE("MovedTurns: a result in goose is what the model was told", "[moves]") {
  const auto part = [](const char* words, const Json& audience) {
    return Json{{"type", "text"}, {"text", words}, {"annotations", {{"audience", audience}}}};
  };
  const auto message = [](const char* role, const Json& content) {
    return Line({{"role", role}, {"created", 1766962214}, {"content", Json::array({content})}});
  };
  const auto call = [&](const char* id) {
    const Json value = {{"name", "developer__shell"}, {"arguments", Json::object()}};
    return message("assistant",
                   {{"type", "toolRequest"}, {"id", id}, {"toolCall", {{"status", "success"}, {"value", value}}}});
  };
  const auto result = [&](const char* id, const Json& value) {
    return message("user",
                   {{"type", "toolResponse"}, {"id", id}, {"toolResult", {{"status", "success"}, {"value", value}}}});
  };
  const Json assistant = Json::array({"assistant"}), user = Json::array({"user"}), both = {"user", "assistant"};
  const ForeignChat chat =
      Chat(message("user", {{"type", "text"}, {"text", "look"}}) + call("a") +
           result("a", {{"content", {part("trees", assistant), part("### trees", user), part("3", both)}}}) +
           call("b") + result("b", Json::array({part("only shown", user)})));
  CHECK(EventsOf(chat.interactions[0]) ==
        std::vector<std::string>{"TOOL_CALL developer__shell", "TOOL_RESULT developer__shell trees\n3",
                                 "TOOL_CALL developer__shell", "TOOL_RESULT developer__shell only shown"});
  CHECK(chat.notes == std::vector<std::string>{"left out: 1 x part of a result for the user alone"});
}

TEST_CASE("MovedTurns: Codex' summaries, sums of tokens and remarks", "[moves]") {
  int second = 0;
  const auto line = [&](const char* type, const Json& payload) {
    return Line({{"timestamp", "2026-05-01T10:00:" + std::to_string(10 + second++) + ".000Z"},
                 {"type", type},
                 {"payload", payload}});
  };
  const auto said = [](const char* role, const char* text) {
    return Json{{"type", "message"}, {"role", role}, {"content", {{{"type", "input_text"}, {"text", text}}}}};
  };
  const auto tokens = [&](int sum, int last) {
    const Json info = {{"total_token_usage", {{"input_tokens", sum}}}, {"last_token_usage", {{"input_tokens", last}}}};
    return line("event_msg", {{"type", "token_count"}, {"info", info}});
  };
  const std::string begin = line("session_meta", {{"id", "c"}, {"cwd", "/x"}});
  const std::string first = line("response_item", said("user", "<skill issue? fix my parser")) +
                            line("response_item", said("user", "<skill>\n<name>x</name>\n</skill>")) +
                            line("response_item", said("assistant", "done"));
  const std::string next = line("response_item", said("user", "next")) + line("response_item", said("assistant", "ok"));
  const Json opaque = {{"type", "compaction"}, {"encrypted_content", "gAAAA"}};
  const auto compacted = [&](const Json& history) {
    return Chat(begin + first + tokens(1000, 1000) + tokens(1000, 1000) + tokens(2200, 1200) +
                line("compacted", {{"message", ""}, {"replacement_history", history}}) + next);
  };
  const ForeignChat unreadable = compacted({said("user", "fix my parser"), opaque});
  CHECK(PromptsOf(unreadable) == std::vector<std::string>{"<skill issue? fix my parser", "next"});
  CHECK(EventsOf(unreadable.interactions[0]) == std::vector<std::string>{"ANSWER done", "USAGE"});
  CHECK_FALSE(unreadable.interactions[1].final_agent_state->compaction);
  CHECK(unreadable.interactions[0].usage.input_tokens == 2200);
  CHECK(unreadable.notes ==
        std::vector<std::string>{"left out: 1 x message that the tool added by itself",
                                 "left out: 1 x summary that only its provider can read, so all messages stay"});
  const ForeignChat readable = compacted({said("user", "fix my parser"), said("user", "Summary: it is fixed.")});
  CHECK(readable.interactions[1].final_agent_state->compaction->summary == "fix my parser\nSummary: it is fixed.");
}

TEST_CASE("MovedTurns: what was taken back in Codex is a branch", "[moves]") {
  const auto said = [](const char* role, const char* text) {
    const Json content = {{{"type", "input_text"}, {"text", text}}};
    return Line({{"type", "response_item"}, {"payload", {{"type", "message"}, {"role", role}, {"content", content}}}});
  };
  const auto back = [](int turns) {
    return Line({{"type", "event_msg"}, {"payload", {{"type", "thread_rolled_back"}, {"num_turns", turns}}}});
  };
  const std::string begin = Line({{"type", "session_meta"}, {"payload", {{"id", "c"}}}});
  const std::string two =
      said("user", "keep") + said("assistant", "kept") + said("user", "undo") + said("assistant", "undone");
  const std::string next = said("user", "other") + said("assistant", "after");
  const ForeignChat one = Chat(begin + two + back(1) + next + said("user", "more"));
  CHECK(PromptsOf(one) == std::vector<std::string>{"keep", "undo", "other", "more"});
  CHECK(one.interactions[2].parent_id == one.interactions[0].id);
  CHECK(one.interactions[2].edited_from == one.interactions[1].id);
  CHECK(one.interactions[3].parent_id == one.interactions[2].id);
  CHECK(one.head == one.interactions[3].id);
  CHECK(one.notes.empty());
  const ForeignChat all = Chat(begin + two + back(9) + next);
  CHECK_FALSE(all.interactions[2].parent_id);
  CHECK(Chat(begin + two + back(1)).head == one.interactions[0].id);
}

TEST_CASE("MovedTurns: each of two sub-agents with one prompt has its call", "[moves]") {
  const auto task = [](const char* id) {
    return R"({"type":"tool_use","id":")" + std::string(id) + R"(","name":"Task","input":{"prompt":"look"}})";
  };
  const auto agent = [](const std::string& name) {
    const std::string side = R"(,"isSidechain":true)";
    return ClaudeLine("user", name + "1", "", R"("look")", side) +
           ClaudeLine("assistant", name + "2", name + "1", R"([{"type":"text","text":")" + name + R"("}])", side);
  };
  const auto result = [](const char* uuid, const char* parent, const char* id) {
    const std::string content = R"([{"type":"tool_result","tool_use_id":")" + std::string(id) + R"(","content":"x"}])";
    return ClaudeLine("user", uuid, parent, content);
  };
  const std::string go = ClaudeLine("user", "1", "", R"("go")");
  const auto agents_of = [](const ForeignChat& chat) {
    std::string calls;
    for (const AgentEvent& event : chat.interactions.at(0).events) {
      const auto* const nested = std::get_if<event::Nested>(&event.payload);
      if (nested != nullptr) calls += nested->call_id + " " + std::get<event::Answer>(nested->step).content + ";";
    }
    return calls;
  };
  CHECK(agents_of(Chat(go + ClaudeLine("assistant", "2", "1", "[" + task("a") + "," + task("b") + "]") + agent("s") +
                       agent("q") + result("3", "2", "a") + result("4", "3", "b"))) == "a s;b q;");
  CHECK(agents_of(Chat(go + ClaudeLine("assistant", "2", "1", "[" + task("a") + "]") + result("3", "2", "a") +
                       ClaudeLine("assistant", "4", "3", "[" + task("b") + "]") + agent("q") +
                       result("5", "4", "b"))) == "b q;");
}

TEST_CASE("MovedTurns: what is of no known type is counted by it", "[moves]") {
  const auto noted = [](const std::string& text) {
    std::string notes;
    for (const std::string& note : Chat(text).notes) notes += note + ";";
    return notes;
  };
  const Json newer = {{"content_type", "newer"}, {"stuff", "lost"}};
  const Json critic = {{"author", {{"role", "critic"}}}, {"content", {{"content_type", "text"}, {"parts", {"no"}}}}};
  const Json answer = {{"author", {{"role", "assistant"}}}, {"content", newer}};
  const Json prompt = {{"author", {{"role", "user"}}}, {"content", {{"content_type", "text"}, {"parts", {"q"}}}}};
  const Json mapping = {{"a", {{"parent", nullptr}, {"message", prompt}}},
                        {"b", {{"parent", "a"}, {"message", answer}}},
                        {"c", {{"parent", "b"}, {"message", critic}}},
                        {"d", 5}};
  CHECK(noted(DumpJson({{"id", "x"}, {"mapping", mapping}})) ==
        "left out: 1 x message of a type that is not known here;"
        "left out: 1 x message of a type that is not known here (critic);"
        "left out: 1 x message of a type that is not known here (newer);");
  const auto atif = [](const Json& steps) {
    return DumpJson(
        {{"schema_version", "ATIF-v1.7"}, {"session_id", "x"}, {"agent", Json::object()}, {"steps", steps}});
  };
  CHECK(noted(atif({{{"source", "robot"}, {"message", "who"}},
                    {{"source", "user"}, {"message", "go"}},
                    7,
                    {{"source", "agent"}, {"message", 5}},
                    {{"source", "agent"}, {"message", {{"x", 1}}}}})) ==
        "left out: 1 x part of a result ();"
        "left out: 1 x step of a type that is not known here;"
        "left out: 1 x step of a type that is not known here (robot);"
        "left out: 1 x text of a type that is not known here (number);");
  CHECK(noted(GeminiLines({GeminiMessage("1", "user", "hi"), GeminiMessage("2", "newer", "lost"),
                           GeminiMessage("3", "gemini", {{{"video", 1}}})})) ==
        "left out: 1 x message of a type that is not known here (newer);"
        "left out: 1 x part of a message of a type that is not known here (video);");
}

TEST_CASE("MovedTurns: results find their calls, and calls their arguments, without ids", "[moves]") {
  const auto text = [](const char* name, const char* words) {
    return Json{{"type", "tool_result"}, {"tool_use_id", nullptr}, {"name", name}, {"content", words}};
  };
  const auto call = [](const char* name) {
    return Json{{"type", "tool_use"}, {"id", nullptr}, {"name", name}, {"input", Json::object()}};
  };
  const Json message = {{"uuid", "m"},
                        {"sender", "assistant"},
                        {"content", {call("weather"), call("stocks"), text("stocks", "42"), text("weather", "rain")}}};
  const Json claude = {{"uuid", "c"},
                       {"chat_messages", {{{"uuid", "h"}, {"sender", "human"}, {"text", "q"}}, message}}};
  CHECK(EventsOf(Chat(DumpJson(Json::array({claude}))).interactions[0]) ==
        std::vector<std::string>{"TOOL_CALL weather", "TOOL_CALL stocks", "TOOL_RESULT weather rain",
                                 "TOOL_RESULT stocks 42"});

  const auto content = [](const char* role, const Json& part) {
    return Json{{"role", role}, {"parts", Json::array({part})}};
  };
  const Json history = {content("user", {{"text", "one"}}),
                        content("model", {{"functionCall", {{"name", "slow"}, {"args", Json::object()}}}}),
                        content("user", {{"text", "two"}}),
                        content("model", {{"functionCall", {{"name", "read"}, {"args", Json::object()}}}}),
                        content("user", {{"functionResponse", {{"name", "read"}, {"response", {{"output", "B"}}}}}})};
  const ForeignChat gemini = Chat(DumpJson({{"history", history}}));  // on one line
  CHECK(EventsOf(gemini.interactions[0]) ==
        std::vector<std::string>{"TOOL_CALL slow", "TOOL_RESULT slow The result of this call is not known."});
  CHECK(EventsOf(gemini.interactions[1]) == std::vector<std::string>{"TOOL_CALL read", "TOOL_RESULT read B"});

  const auto web_ui = [](const std::string& details) {
    const Json messages = {{"u", {{"role", "user"}, {"content", "q"}}},
                           {"a", {{"role", "assistant"}, {"parentId", "u"}, {"content", details}}}};
    return Chat(DumpJson({{"history", {{"messages", messages}}}})).interactions.at(0);
  };
  constexpr const char* kTag = R"(<details type="tool_calls" done="true" id="c" name="s" arguments=)";
  for (const Interaction& turn :
       {web_ui(kTag + std::string(R"("&quot;{\&quot;q\&quot;: 1}&quot;" result="&quot;R&quot;">)"
                                  "\n<summary>Tool Executed</summary>\n</details>")),
        web_ui(kTag + std::string(R"("{&quot;q&quot;: 1}">)"
                                  "\n<summary>Tool Executed</summary>\n&quot;R&quot;\n</details>\n"))}) {
    CHECK(EventsOf(turn) == std::vector<std::string>{"TOOL_CALL s", "TOOL_RESULT s R"});
    CHECK(turn.final_agent_state->messages[1].tool_calls[0].arguments == R"({"q": 1})");
  }

  // The provider's own call and its result, in one answer.
  const ForeignChat search =
      Chat(ClaudeLine("user", "1", "", R"("go")") +
           ClaudeLine("assistant", "2", "1",
                      R"([{"type":"server_tool_use","id":"s","name":"web_search","input":{}},)"
                      R"({"type":"web_search_tool_result","tool_use_id":"s","content":"found"}])"));
  CHECK(EventsOf(search.interactions[0]) ==
        std::vector<std::string>{"TOOL_CALL web_search", "TOOL_RESULT web_search found"});
}

TEST_CASE("MovedTurns: what an ATIF agent is told without a call is one message, and files elsewhere are counted",
          "[moves]") {
  const auto told = [](const std::vector<Json>& results) { return Json{{"results", results}}; };
  const Json elsewhere = {{{"session_id", "s2"}, {"trajectory_path", "helper.json"}}};
  const Json within = {{{"trajectory_id", "t2"}}};
  const Json trajectory = {
      {"schema_version", "ATIF-v1.7"},
      {"session_id", "s"},
      {"agent", {{"name", "sample"}, {"version", "1"}}},
      {"continued_trajectory_ref", "more.json"},
      {"subagent_trajectories",
       {{{"trajectory_id", "t2"}, {"steps", {{{"step_id", 1}, {"source", "agent"}, {"message", "helped"}}}}}}},
      {"steps",
       {{{"step_id", 1}, {"source", "user"}, {"message", "sow"}},
        {{"step_id", 2},
         {"source", "agent"},
         {"message", "keys: ls"},
         {"observation", told({{{"content", "beds"}}, {{"source_call_id", nullptr}, {"content", "seeds"}}})}},
        {{"step_id", 3}, {"source", "user"}, {"message", ""}},
        {{"step_id", 4}, {"source", "agent"}, {"message", "sown"}},
        {{"step_id", 5},
         {"source", "system"},
         {"message", "handed over"},
         {"observation", told({{{"subagent_trajectory_ref", elsewhere}}, {{"subagent_trajectory_ref", within}}})}}}}};
  const ForeignChat chat = Chat(DumpJson(trajectory));
  CHECK(PromptsOf(chat) == std::vector<std::string>{"sow", "beds\nseeds"});
  CHECK(chat.interactions[1].status == InteractionStatus::kCompleted);
  CHECK(EventsOf(chat.interactions[1]) == std::vector<std::string>{"ANSWER sown"});
  CHECK(chat.notes == std::vector<std::string>{"left out: 1 x continuation in a file of its own",
                                               "left out: 1 x message of the system",
                                               "left out: 1 x sub-agent in a file of its own",
                                               "left out: 1 x sub-agent that no call names"});
}

TEST_CASE("MovedTurns: a turn that began with files alone is one again after our own ATIF", "[moves]") {
  const auto step = [](const char* source, const char* message, const char* turn) {
    return Json{{"source", source}, {"message", message}, {"extra", {{"interaction", turn}}}};
  };
  const ForeignChat chat = Chat(DumpJson({{"schema_version", "ATIF-v1.7"},
                                          {"steps",
                                           {step("user", "sow", "int_001"), step("agent", "sown", "int_001"),
                                            step("user", "", "int_002"), step("agent", "seen", "int_002")}}}));
  CHECK(PromptsOf(chat) == std::vector<std::string>{"sow", ""});
}

TEST_CASE("MovedTurns: sub-agents of one session are told apart in ATIF", "[moves]") {
  const auto helper = [](const char* id, const char* words) {
    return Json{{"session_id", "s"},
                {"trajectory_id", id},
                {"steps", {{{"step_id", 1}, {"source", "agent"}, {"message", words}}}}};
  };
  const auto call = [](const char* id) {
    return Json{{"tool_call_id", id}, {"function_name", "ask"}, {"arguments", Json::object()}};
  };
  const auto result = [](const char* call_id, const Json& ref) {
    return Json{{"source_call_id", call_id}, {"content", "done"}, {"subagent_trajectory_ref", Json::array({ref})}};
  };
  const Json trajectory = {
      {"schema_version", "ATIF-v1.7"},
      {"session_id", "s"},
      {"agent", {{"name", "sample"}, {"version", "1"}}},
      {"subagent_trajectories", {helper("one", "first"), helper("two", "second")}},
      {"steps",
       {{{"step_id", 1}, {"source", "user"}, {"message", "ask"}},
        {{"step_id", 2},
         {"source", "agent"},
         {"message", ""},
         {"tool_calls", {call("a"), call("b"), call("c")}},
         {"observation",
          {{"results",
            {result("a", {{"trajectory_id", "two"}, {"session_id", "s"}}),
             result("b", {{"trajectory_id", "three"}, {"session_id", "s"}}), result("c", {{"session_id", "s"}})}}}}}}}};
  const ForeignChat chat = Chat(DumpJson(trajectory));
  std::vector<std::string> nested;
  for (const AgentEvent& event : chat.interactions[0].events) {
    const Json json = ToJson(event);
    if (json.contains("call_id")) {
      nested.push_back(TextMember(json, "call_id") + " " + TextMember(json["event"], "content"));
    }
  }
  CHECK(nested == std::vector<std::string>{"a second", "c first"});
  CHECK(chat.notes == std::vector<std::string>{"left out: 1 x sub-agent in a file of its own"});
}

TEST_CASE("MovedTurns: a result says which pages and files it is of", "[moves]") {
  const Json page = {
      {"type", "knowledge"}, {"title", "Oaks"}, {"url", "https://oaks.example/"}, {"text", "They grow."}};
  const Json file = {{"type", "local_resource"}, {"file_path", "/mnt/oaks.md"}, {"name", "oaks"}};
  const Json link = {{"type", "resource_link"}, {"uri", "file:///oaks"}, {"name", "oaks"}};
  const Json chat = {
      {"uuid", "c"},
      {"model", "claude-sonnet-5"},
      {"summary", "Of oaks."},
      {"current_leaf_message_uuid", "a1"},
      {"chat_messages",
       {{{"uuid", "h1"}, {"sender", "human"}, {"text", "q"}},
        {{"uuid", "a1"},
         {"parent_message_uuid", "h1"},
         {"sender", "assistant"},
         {"content",
          {{{"type", "tool_use"}, {"id", "t"}, {"name", "web_search"}, {"input", Json::object()}},
           {{"type", "tool_result"}, {"tool_use_id", "t"}, {"content", {page, file, link, {{"type", "chart"}}}}},
           {{"type", "text"}, {"text", "So."}, {"citations", {{{"url", "https://oaks.example/"}}}}}}}},
        {{"uuid", "h2"}, {"parent_message_uuid", "a1"}, {"sender", "human"}, {"text", "other"}}}}};
  const ForeignChat read = Chat(DumpJson(chat));  // as the page loads it
  CHECK(EventsOf(read.interactions[0]).at(1) ==
        "TOOL_RESULT web_search Oaks\nhttps://oaks.example/\nThey grow.\n/mnt/oaks.md\nfile:///oaks");
  CHECK(read.notes == std::vector<std::string>{
                          "left out: 1 x citation in an answer", "left out: 1 x file whose content the export lacks",
                          "left out: 1 x part of a result (chart)", "left out: 1 x summary of the chat"});
  CHECK(read.interactions[0].model == "claude-sonnet-5");
  CHECK(read.head == read.interactions[0].id);
}

TEST_CASE("MovedTurns: Cline's tokens are of their answers, and no tag of its own stays", "[moves]") {
  const TempDirectory folder;
  const auto answer = [](std::int64_t prompt, std::int64_t completion, std::int64_t cached) {
    const Json tokens = {{"prompt", prompt}, {"completion", completion}, {"cached", cached}};
    return Json{
        {"role", "assistant"}, {"content", {{{"type", "text"}, {"text", "yes"}}}}, {"metrics", {{"tokens", tokens}}}};
  };
  const auto said = [](const std::vector<std::string>& texts) {
    Json content = Json::array();
    for (const std::string& text : texts) content.push_back({{"type", "text"}, {"text", text}});
    return Json{{"role", "user"}, {"content", content}};
  };
  const Json session = {said({"<task>\nmow\n</task>", "<environment_details>\na\n</environment_details>"}),
                        answer(10, 5, 30),
                        said({"<user_message>\none\n</user_message>", "<environment_details></environment_details>",
                              "<user_message>\ntwo\n</user_message>"}),
                        answer(20, 6, 0)};
  const auto usage_of = [&] {
    std::vector<TokenUsage> usage;
    auto document = ReadDocument(SourceText::Of(DumpJson(session), "the task"));
    const auto opened = OpenCline(*std::move(document), folder.File("api_conversation_history.json"));
    const auto messages = StepsOf(**opened);
    for (const MovedMessage& each : messages) {
      if (each.kind == MovedMessage::Kind::kAnswer) usage.push_back(each.usage);
    }
    CHECK(messages.at(2).text == "one\ntwo");
    return usage;
  };
  CHECK(usage_of() == std::vector<TokenUsage>{{.input_tokens = 40, .output_tokens = 5, .cache_read_tokens = 30},
                                              {.input_tokens = 20, .output_tokens = 6}});
  // A request that failed, or was asked again, is of no answer.
  const auto request = [](const char* text) { return Json{{"say", "api_req_started"}, {"text", text}}; };
  folder.Write("ui_messages.json",
               DumpJson(Json{request(R"({"request":"failed"})"),
                             request(R"({"tokensIn":10,"tokensOut":5,"cacheReads":10,"cacheWrites":20})"),
                             request(R"({"tokensIn":9,"tokensOut":9})"), request(R"({"tokensIn":20,"tokensOut":6})")}));
  CHECK(usage_of() == std::vector<TokenUsage>{
                          {.input_tokens = 40, .output_tokens = 5, .cache_read_tokens = 10, .cache_write_tokens = 20},
                          {.input_tokens = 20, .output_tokens = 6}});
}

TEST_CASE("MovedTurns: Cline's calls that failed or were denied are so", "[moves]") {
  const auto is_error = [](const std::string& text, bool is_native) {
    const Json call = {{"type", "tool_use"}, {"id", "t"}, {"name", "read_file"}, {"input", {{"path", "a"}}}};
    const Json result = is_native ? Json{{"type", "tool_result"}, {"tool_use_id", "t"}, {"content", text}}
                                  : Json{{"type", "text"}, {"text", "[read_file for 'a'] Result:\n" + text}};
    const Json session = {{{"role", "user"}, {"content", "go"}},
                          {{"role", "assistant"}, {"content", Json::array({call})}},
                          {{"role", "user"}, {"content", Json::array({result})}}};
    auto document = ReadDocument(SourceText::Of(DumpJson(session), "the task"));
    const auto opened = OpenCline(*std::move(document), "");
    for (const MovedMessage& each : StepsOf(**opened)) {
      if (each.kind == MovedMessage::Kind::kResult) return each.is_error;
    }
    FAIL("no result");
    return false;
  };
  for (const bool is_native : {false, true}) {
    CHECK(is_error("The tool execution failed with the following error:\n<error>\nno a\n</error>", is_native));
    CHECK(is_error("The user denied this operation.", is_native));
    CHECK(is_error("The user denied this operation and provided the following feedback:\n<feedback>\nb\n</feedback>",
                   is_native));
    CHECK(!is_error("It says: The user denied this operation.", is_native));
  }
}

TEST_CASE("MovedTurns: thinking that nobody has signed is not kept as Anthropic's", "[moves]") {
  const auto extras = [](const std::string& signature) {
    return Chat(ClaudeLine("user", "1", "", R"("go")") +
                ClaudeLine("assistant", "2", "1",
                           R"([{"type":"thinking","thinking":"hm","signature":")" + signature + "\"}]"))
        .interactions[0]
        .final_agent_state->messages[1]
        .extras;
  };
  CHECK(extras("").empty());
  CHECK(extras("c2ln").find("c2ln") != std::string::npos);
}

TEST_CASE("MovedTurns: a person's words stay as they are, whatever they mention", "[moves]") {
  const std::string asked = "What does <command-name> mean in </command-name>?";
  CHECK(Chat(ClaudeLine("user", "1", "", "\"" + asked + "\"")).interactions[0].user_message == asked);
  // An answer that stands before the command it is of.
  const ForeignChat chat =
      Chat(ClaudeLine("user", "1", "", R"("hello")") + ClaudeLine("assistant", "2", "1", R"("hi")") +
           ClaudeLine("assistant", "4", "3", R"("the review")") +
           ClaudeLine("user", "3", "2", R"("<command-name>/review</command-name><command-args>all</command-args>")"));
  CHECK(PromptsOf(chat) == std::vector<std::string>{"hello"});
  CHECK(EventsOf(chat.interactions[0]) == std::vector<std::string>{"MESSAGE hi", "ANSWER the review"});
}

TEST_CASE("MovedTurns: a sub-agent's file that changes meanwhile neither shifts the steps nor ends the program",
          "[moves]") {
  const TempDirectory folder;
  const std::string path = folder.path() + "/s.jsonl", beside = folder.path() + "/s/subagents/agent-x.jsonl";
  std::filesystem::create_directories(folder.path() + "/s/subagents");
  const std::string step = ClaudeLine("assistant", "n", "", R"([{"type":"text","text":"a step"}])");
  const auto write = [](const std::string& file, const std::string& text) { std::ofstream(file) << text; };
  write(path, ClaudeLine("user", "1", "", R"("go")") +
                  ClaudeLine("assistant", "2", "1", R"([{"type":"tool_use","id":"a","name":"Task","input":{}}])") +
                  ClaudeLine("user", "3", "2", R"([{"type":"tool_result","tool_use_id":"a","content":"done"}])",
                             R"(,"toolUseResult":{"agentId":"x"})"));
  const auto source = SourceText::Open(path);
  const MoveFormat* const format = RecognizeFormat(*source, {}).value();
  std::set<std::string> digests;
  const auto read = [&](const std::string& later) {
    write(beside, step + step);
    std::optional<Result<ForeignChat>> chat;
    REQUIRE(ForEachSession(*source, *format, path, [&](const FoundSession& session) -> Result<void> {
      digests.insert(*session.digest());
      const auto turns = session.plan();
      later.empty() ? void(std::filesystem::remove(beside)) : write(beside, later);
      if (!later.empty()) digests.insert(*session.digest());
      chat = (*turns)->ReadAll("chat");
      return {};
    }));
    return *chat;
  };
  const auto grown = read(step + step + step);
  REQUIRE(grown);
  CHECK(EventsOf(grown->interactions[0]) ==
        std::vector<std::string>{"TOOL_CALL Task", "NESTED", "NESTED", "TOOL_RESULT Task done"});
  CHECK(digests.size() == 2);
  for (const std::string& later : {step, std::string()}) {
    const auto shrunk = read(later);
    REQUIRE_FALSE(shrunk);
    CHECK(shrunk.error().message == "the session, or a file beside it, changed while it was read");
  }
}

TEST_CASE("MovedTurns: what opencode's user has undone is left out and counted", "[moves]") {
  const auto message = [](const char* id, const char* role, const char* text) {
    return Json{{"info", {{"id", id}, {"role", role}}},
                {"parts", {{{"id", std::string("p") + id}, {"type", "text"}, {"text", text}}}}};
  };
  const auto read = [&](const Json& revert) {
    const Json info = {{"id", "ses_1"}, {"revert", revert}};
    return Chat(DumpJson({{"info", info},
                          {"messages",
                           {message("1", "user", "one"), message("2", "assistant", "first"),
                            message("3", "user", "undone"), message("4", "assistant", "undone, too")}}}));
  };
  CHECK(PromptsOf(read({{"messageID", "3"}})) == std::vector<std::string>{"one"});
  CHECK(read({{"messageID", "3"}}).notes == std::vector<std::string>{"left out: 2 x message that was taken back"});
  CHECK(PromptsOf(read({{"messageID", "4"}, {"partID", "p4"}})) == std::vector<std::string>{"one", "undone"});
  CHECK(PromptsOf(read(nullptr)) == std::vector<std::string>{"one", "undone"});
}

TEST_CASE("MovedTurns: of what Claude Code was told while it worked, a person's messages alone are prompts",
          "[moves]") {
  const auto told = [](const Json& attachment) {
    const Json line = {{"type", "attachment"}, {"uuid", "2"}, {"parentUuid", "1"}, {"attachment", attachment}};
    return Chat(ClaudeLine("user", "1", "", R"("go")") + DumpJson(line) + "\n" +
                ClaudeLine("assistant", "3", "2", R"([{"type":"text","text":"ok"}])"));
  };
  const auto queued = [](const Json& prompt, const char* mode, const char* from) {
    return Json{{"type", "queued_command"}, {"prompt", prompt}, {"commandMode", mode}, {"origin", {{"kind", from}}}};
  };
  const ForeignChat person = told(queued("and the back", "prompt", "human"));
  CHECK(PromptsOf(person) == std::vector<std::string>{"go", "and the back"});
  CHECK(person.notes.empty());
  const Json image = {{"type", "image"},
                      {"source", {{"type", "base64"}, {"media_type", "image/png"}, {"data", "iVBORw0KGgo="}}}};
  CHECK(PromptsOf(told(queued(Json::array({image}), "prompt", "human"))).size() == 2);
  const std::vector<std::string> added{"left out: 1 x message that the tool added by itself"};
  for (const Json& each : {queued("It is done.", "task-notification", "task-notification"),
                           queued("I am another session.", "prompt", "peer"),
                           queued("<task-notification>done</task-notification>", "prompt", "human")}) {
    CHECK(PromptsOf(told(each)) == std::vector<std::string>{"go"});
    CHECK(told(each).notes == added);
  }
}

TEST_CASE("ReadGemini: a session of a sub-agent says so", "[moves]") {
  const std::string lines = GeminiLines({{{"$set", {{"kind", "subagent"}}}}, GeminiMessage("1", "user", "hi")});
  CHECK(Chat(lines).notes == std::vector<std::string>{"left out: 1 x session whose sub-agent this is"});
}

TEST_CASE("RecognizeFormat: other programs' forms are not taken for a known one", "[moves]") {
  const Json prompt = {{"role", "user"}, {"content", "weather?"}};
  const Json calls = {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array()}};
  CHECK(ReadText(DumpJson(Json::array({{{"role", "system"}, {"content", "You are"}}, prompt}))).format.empty());
  CHECK(ReadText(DumpJson(Json::array({prompt, calls}))).failure ==
        "the source: it is no session of Cline (docs/moves.md)");
  CHECK(ReadText("PK\x03\x04 and so on").failure ==
        "the source: it is a ZIP archive; unpack it, and import the file in it");
  CHECK(ReadText("\x28\xB5\x2F\xFD and so on").failure ==
        "the source: it is compressed; unpack it (`zstd -d`), and import the file that this makes");
  const Json message = {{"author", {{"role", "user"}}}, {"content", {{"parts", {"hello"}}}}};
  const Json mapping = {{"a", {{"id", "a"}, {"message", message}}}};
  const Json conversation = {{"id", "c"}, {"mapping", mapping}};
  CHECK(Chat("\xEF\xBB\xBF" + DumpJson(Json::array({conversation}))).interactions.size() == 1);
  CHECK(ReadText(DumpJson(conversation) + '\0' + "[]").chats.empty());
}

TEST_CASE("MovedTurns: a chat as deep as it is long, and one that is too deep", "[moves]") {
  const auto nested = [](int messages) {
    std::string text, end;
    for (int i = 0; i < messages; ++i) {
      text += R"({"messageId":"m)" + std::to_string(i) + R"(","isCreatedByUser":)" + (i % 2 == 0 ? "true" : "false") +
              R"(,"text":"t","children":[)";
      end += "]}";
    }
    return R"({"conversationId":"c","messages":[)" + text + end + "]}";
  };
  // Nothing that reads it may call itself for each level: the stack is small here.
  pthread_attr_t small;
  REQUIRE(pthread_attr_init(&small) == 0);
  REQUIRE(pthread_attr_setstacksize(&small, 512 * 1024) == 0);
  ForeignChat alone, listed;
  auto read = [&] { alone = Chat(nested(2'500)), listed = Chat("[" + nested(2'500) + "]"); };
  const auto run = [](void* task) -> void* { return (*static_cast<decltype(read)*>(task))(), nullptr; };
  pthread_t thread{};
  REQUIRE(pthread_create(&thread, &small, run, &read) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  CHECK(alone.interactions.size() == 1'250);
  CHECK(listed.interactions.size() == 1'250);
  CHECK(ReadText(nested(5'000)).failure == "the source: JSON nested deeper than 6000 levels");
}

TEST_CASE("MovedTurns: a source cannot make up any number of notes", "[moves]") {
  Json blocks = Json::array();
  for (int i = 0; i < 3'000; ++i) blocks.push_back({{"type", "X" + std::to_string(i) + std::string(2'000, 'z')}});
  const ForeignChat chat =
      Chat(ClaudeLine("user", "1", "", R"("go")") + ClaudeLine("user", "2", "1", DumpJson(blocks)));
  CHECK(chat.notes.size() == 51);
  CHECK(chat.notes.back() == "left out: 2950 x thing of a further kind");
  for (const std::string& note : chat.notes) CHECK(note.size() < 200);
}

TEST_CASE("MovedTurns: JSON that is almost one, as other programs write it, is mended", "[moves]") {
  // Python writes NaN, and numbers of any size.
  const ForeignChat atif = Chat(
      R"({"schema_version":"ATIF-v1.6","session_id":"s","final_metrics":{"cost":NaN},"steps":[)"
      R"({"source":"user","message":"go","extra":{"reward":-Infinity,"seed":123456789012345678901234567890,"big":1e999}}]})");
  CHECK(PromptsOf(atif) == std::vector<std::string>{"go"});
  CHECK(PromptsOf(Chat(ClaudeLine("user", "1", "", std::string("\"a\0b\tc\"", 7), R"(,"n":1e999)"))) ==
        std::vector<std::string>{std::string("a\0b\tc", 5)});
}

}  // namespace reprise::test::tools_test
