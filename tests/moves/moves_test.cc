// Sessions of other tools: what becomes of the text of a source. tests/e2e/test_moves.py has whole samples of each
// tool.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "engine/moves/trees.h"
#include "moves/read_text.h"
#include "support/test.h"

namespace reprise::test::moves_test {
namespace {

using Kind = MovedMessage::Kind;

// Every call of a state has one result, directly after it.
bool IsWellFormed(const Messages& messages) {
  std::size_t open = 0;
  std::vector<std::string> ids;
  for (const Message& message : messages) {
    if (message.role == Role::kTool) {
      if (open == 0 || message.tool_call_id != ids[ids.size() - open]) return false;
      --open;
      continue;
    }
    if (open > 0) return false;
    ids.clear();
    for (const ToolCall& call : message.tool_calls) ids.push_back(call.id);
    open = ids.size();
  }
  return open == 0;
}

}  // namespace

TEST_CASE("MovedTurns: a call without a result gets one, and one of the same id its own", "[moves]") {
  const ForeignChat chat =
      Chat(ClaudeLine("user", "1", "", R"("go")") +
           ClaudeLine("assistant", "2", "1", R"([{"type":"tool_use","id":"a","name":"x","input":{}}])") +
           ClaudeLine("user", "3", "2", R"([{"type":"tool_result","tool_use_id":"a","content":"one"}])") +
           ClaudeLine("assistant", "4", "3", R"([{"type":"tool_use","id":"a","name":"x","input":{}}])") +
           ClaudeLine("user", "5", "4", R"([{"type":"tool_result","tool_use_id":"a","content":"two"}])") +
           ClaudeLine("assistant", "6", "5", R"([{"type":"tool_use","id":"b","name":"x","input":{}}])") +
           ClaudeLine("user", "7", "6", R"([{"type":"tool_result","tool_use_id":"nobody","content":"three"}])"));
  REQUIRE(chat.interactions.size() == 1);
  const Messages& messages = chat.interactions[0].final_agent_state->messages;
  CHECK(IsWellFormed(messages));
  REQUIRE(messages.size() == 7);
  CHECK(messages[2].content == "one");
  CHECK(messages[4].content == "two");
  CHECK(messages[3].tool_calls[0].id == "a_2");
  CHECK(chat.notes == std::vector<std::string>{"left out: 1 x result of a call, which is missing",
                                               "left out: 1 x result without its call"});
}

TEST_CASE("MovedTurns: pieces of an answer are one message, also if a result stands between them", "[moves]") {
  const ForeignChat chat = Chat(
      ClaudeLine("user", "1", "", R"("go")") +
      R"({"type":"assistant","sessionId":"s","uuid":"2","parentUuid":"1","message":{"role":"assistant","id":"m","content":[{"type":"tool_use","id":"a","name":"x","input":{}}],"usage":{"output_tokens":1}}})"
      "\n" +
      ClaudeLine("user", "3", "2", R"([{"type":"tool_result","tool_use_id":"a","content":"one"}])") +
      R"({"type":"assistant","sessionId":"s","uuid":"4","parentUuid":"2","message":{"role":"assistant","id":"m","content":[{"type":"tool_use","id":"b","name":"x","input":{}}],"usage":{"output_tokens":5}}})"
      "\n" +
      ClaudeLine("user", "5", "4", R"([{"type":"tool_result","tool_use_id":"b","content":"two"}])"));
  const Interaction& turn = chat.interactions.at(0);
  const Messages& messages = turn.final_agent_state->messages;
  CHECK(IsWellFormed(messages));
  CHECK(messages.size() == 4);
  CHECK(turn.usage.output_tokens == 5);
}

// The steps of a session that has these nodes as records.
std::vector<MovedMessage> StepsOfTree(std::vector<MessageNode> nodes, LeftOut& left_out) {
  class Reader final : public NodeReader {
   public:
    explicit Reader(std::vector<MessageNode> nodes) : nodes_(std::move(nodes)) {}
    std::vector<MessageNode> Take(const Json&) override { return {nodes_[record]}; }

   private:
    const std::vector<MessageNode> nodes_;
  };
  const std::size_t count = nodes.size();
  const auto session = OpenTree({.count = count, .load = [](std::size_t) -> Result<Json> { return Json(); }},
                                std::make_unique<Reader>(std::move(nodes)));
  auto steps = StepsOf(**session);
  left_out.Add((*session)->left_out());
  return steps;
}

// What the model was told in a turn: "user go|assistant first".
std::string ToldIn(const Interaction& turn) {
  std::string told;
  for (const Message& message : turn.final_agent_state->messages) {
    const char* const role = message.role == Role::kUser   ? "user "
                             : message.role == Role::kTool ? "tool "
                                                           : "assistant ";
    told += (told.empty() ? "" : "|") + std::string(role) + message.content.value_or("(call)");
  }
  return told;
}

TEST_CASE("MovedTurns: an answer that was made again begins a branch, and parallel calls do not", "[moves]") {
  const auto call = [](const char* id) {
    return R"([{"type":"tool_use","id":")" + std::string(id) + R"(","name":"x","input":{}}])";
  };
  const auto result = [](const char* id, const char* text) {
    return R"([{"type":"tool_result","tool_use_id":")" + std::string(id) + R"(","content":")" + text + R"("}])";
  };
  const auto say = [](const char* text) { return R"([{"type":"text","text":")" + std::string(text) + R"("}])"; };
  const std::string head = ClaudeLine("user", "1", "", R"("go")");
  const ForeignChat chat =
      Chat(head + ClaudeLine("assistant", "2", "1", call("a")) + ClaudeLine("user", "3", "2", result("a", "one")) +
           ClaudeLine("system", "s", "3", R"("")") + ClaudeLine("assistant", "4", "s", say("first")) +
           ClaudeLine("assistant", "5", "3", say("second")) + ClaudeLine("user", "6", "4", R"("after first")") +
           ClaudeLine("user", "7", "5", R"("after second")"));
  REQUIRE(chat.interactions.size() == 4);
  CHECK(ToldIn(chat.interactions[0]) == "user go|assistant (call)|tool one|assistant first");
  CHECK(ToldIn(chat.interactions[1]) == "user go|assistant (call)|tool one|assistant second");
  CHECK_FALSE(chat.interactions[1].parent_id);
  CHECK(chat.interactions[1].edited_from == chat.interactions[0].id);
  CHECK(chat.interactions[2].parent_id == chat.interactions[0].id);
  CHECK(chat.interactions[3].parent_id == chat.interactions[1].id);
  CHECK(chat.notes.empty());

  // A message of the person that continues a turn before its last answer.
  const ForeignChat within =
      Chat(head + ClaudeLine("assistant", "2", "1", call("a")) + ClaudeLine("user", "3", "2", result("a", "one")) +
           ClaudeLine("assistant", "4", "3", say("first")) + ClaudeLine("user", "5", "3", R"("rather")"));
  REQUIRE(within.interactions.size() == 3);
  CHECK(ToldIn(within.interactions[0]) == "user go|assistant (call)|tool one|assistant first");
  CHECK(ToldIn(within.interactions[1]) == "user go|assistant (call)|tool one");
  CHECK(within.interactions[2].parent_id == within.interactions[1].id);

  // Two pieces of one answer, each with its result, in any order; the next answer continues one of them.
  const auto piece = [&](const char* uuid, const char* parent, const char* id) {
    std::string line = ClaudeLine("assistant", uuid, parent, call(id));
    const std::string own = R"("id":"m)" + std::string(uuid) + "\"";
    return line.replace(line.find(own), own.size(), R"("id":"both")");
  };
  const ForeignChat parallel =
      Chat(head + piece("2", "1", "a") + piece("3", "2", "b") + ClaudeLine("user", "5", "3", result("b", "two")) +
           ClaudeLine("user", "4", "2", result("a", "one")) + ClaudeLine("assistant", "6", "5", say("end")));
  REQUIRE(parallel.interactions.size() == 1);
  CHECK(ToldIn(parallel.interactions[0]) == "user go|assistant (call)|tool one|tool two|assistant end");

  // Of answers that were made again without end, not all repeat what led to them.
  std::string many = head;
  for (int i = 0; i < 400; ++i) {
    many += ClaudeLine("user", "r" + std::to_string(i), i == 0 ? "1" : "r" + std::to_string(i - 1), result("z", "x"));
  }
  for (int i = 0; i < 400; ++i) many += ClaudeLine("assistant", "e" + std::to_string(i), "r399", say("end"));
  const ForeignChat limited = Chat(many);
  CHECK(limited.interactions.size() == 400);
  CHECK(std::ranges::any_of(limited.notes, [](const std::string& note) { return note.ends_with("may repeat"); }));
}

TEST_CASE("MovedTurns: a message whose line comes after those that continue it is read before them", "[moves]") {
  const auto say = [](const char* text) { return R"([{"type":"text","text":")" + std::string(text) + R"("}])"; };
  const ForeignChat chat =
      Chat(ClaudeLine("user", "1", "", R"("zero")") + ClaudeLine("assistant", "2", "1", say("nought")) +
           ClaudeLine("assistant", "4", "3", say("answer")) + ClaudeLine("user", "3", "2", R"("question")") +
           ClaudeLine("user", "5", "4", R"("third")"));
  REQUIRE(chat.interactions.size() == 3);
  CHECK(ToldIn(chat.interactions[0]) == "user zero|assistant nought");
  CHECK(ToldIn(chat.interactions[1]) == "user question|assistant answer");
  CHECK(chat.interactions[1].parent_id == chat.interactions[0].id);
  CHECK(chat.interactions[2].parent_id == chat.interactions[1].id);
}

TEST_CASE("MovedTurns: hostile links between messages end", "[moves]") {
  // A message that continues itself, one that continues a later one, and one that continues nothing known.
  const ForeignChat lines =
      Chat(ClaudeLine("user", "1", "1", R"("one")") + ClaudeLine("user", "2", "3", R"("two")") +
           ClaudeLine("user", "3", "2", R"("three")") + ClaudeLine("user", "3", "gone", R"("four")"));
  CHECK(lines.interactions.size() == 4);
  for (const Interaction& each : lines.interactions) CHECK((!each.parent_id || *each.parent_id < each.id));

  LeftOut left_out;
  std::vector<MessageNode> nodes;
  for (const char* id : {"a", "b"})
    nodes.push_back({.id = id, .parent = id == std::string("a") ? "b" : "a", .steps = {{.text = id}}});
  CHECK(StepsOfTree(nodes, left_out).empty());
  CHECK(left_out.Notes() == std::vector<std::string>{"left out: 2 x message that no other leads to"});
}

TEST_CASE("MovedTurns: a tree cannot ask for more than a hundred thousand steps", "[moves]") {
  std::vector<MessageNode> nodes{{.id = "p", .parent = "", .steps = {{.text = "go"}}}};
  for (int i = 0; i < 500; ++i) {
    nodes.push_back({.id = "n" + std::to_string(i),
                     .parent = i == 0 ? "p" : "n" + std::to_string(i - 1),
                     .steps = {{.kind = Kind::kAnswer}}});
  }
  for (int i = 0; i < 500; ++i)
    nodes.push_back({.id = "c" + std::to_string(i), .parent = "n499", .steps = {{.kind = Kind::kAnswer}}});
  LeftOut left_out;
  CHECK(StepsOfTree(std::move(nodes), left_out).size() == 100'000);
  CHECK(left_out.Notes().size() == 1);
}

TEST_CASE("MovedTurns: a tree cannot ask for more than 64 MiB of repetitions", "[moves]") {
  constexpr std::size_t kLarge = 1 << 20, kMost = 64;
  std::vector<MessageNode> nodes{{.id = "p", .parent = "", .steps = {{.text = "go"}}}};
  nodes.push_back(
      {.id = "n", .parent = "p", .steps = {{.kind = Kind::kAnswer, .blocks = {{.text = std::string(kLarge, 'x')}}}}});
  for (int i = 0; i < 200; ++i)
    nodes.push_back({.id = "c" + std::to_string(i), .parent = "n", .steps = {{.kind = Kind::kAnswer}}});
  LeftOut left_out;
  const auto steps = StepsOfTree(std::move(nodes), left_out);
  CHECK(std::ranges::count_if(steps, [](const MovedMessage& step) { return !step.blocks.empty(); }) == kMost);
  CHECK(left_out.Notes().size() == 1);
}

TEST_CASE("MovedTurns: a session may have any size, but none of its turns, without files", "[moves]") {
  const auto session = [](int prompts, const std::string& result) {
    std::string text, last;
    for (int i = 0; i < 66; ++i) {
      const std::string id = std::to_string(i);
      if (i % (66 / prompts) == 0) text += ClaudeLine("user", "p" + id, last, "\"begin " + id + "\"");
      const std::string parent = i % (66 / prompts) == 0 ? "p" + id : last;
      text += ClaudeLine("assistant", "c" + id, parent, R"([{"type":"tool_use","id":"t","name":"x","input":{}}])");
      text += ClaudeLine("user", last = "r" + id, "c" + id,
                         R"([{"type":"tool_result","tool_use_id":"t","content":)" + result + "}]");
    }
    return ReadText(text);
  };
  const std::string words = "\"" + std::string(1 << 20, 'x') + "\"";
  CHECK(session(1, words).chats.at(0).error().message == "the turn that begins with \"begin 0\" is larger than 64 MiB");
  CHECK(session(2, words).chats.at(0).value().interactions.size() == 2);
  const std::string image = R"([{"type":"image","source":{"type":"base64","media_type":"image/png","data":")" +
                            std::string(1 << 21, 'A') + R"("}}])";
  CHECK(session(1, image).chats.at(0).value().interactions.size() == 1);
}

TEST_CASE("MovedTurns: sub-agents that name each other are read once", "[moves]") {
  const Json ref = {{"trajectory_id", "t"}};
  const Json result = {{"source_call_id", "c"}, {"content", "done"}, {"subagent_trajectory_ref", Json(40, ref)}};
  const Json step = {{"source", "agent"},
                     {"message", "on"},
                     {"tool_calls", {{{"tool_call_id", "c"}, {"function_name", "delegate"}}}},
                     {"observation", {{"results", {result}}}}};
  const Json sub_agent = {{"trajectory_id", "t"}, {"steps", {step}}};
  const Json root = {{"schema_version", "ATIF-v1.7"}, {"steps", {step}}, {"subagent_trajectories", {sub_agent}}};
  const ForeignChat chat = Chat(DumpJson(root));
  CHECK(chat.interactions.size() == 1);
  CHECK(chat.notes == std::vector<std::string>{"left out: 79 x sub-agent that is named twice"});
}

TEST_CASE("ReadAtif: a reference names one sub-agent of its session, nearest first", "[moves]") {
  const auto agent = [](const char* id, const char* word, Json more = Json::object()) {
    const Json step = {{"source", "agent"}, {"message", word}};
    Json made = {{"trajectory_id", id}, {"session_id", "one"}, {"steps", {step}}};
    made.update(more);
    return made;
  };
  const auto step = [](const char* call, Json refs) {
    return Json{{"source", "agent"},
                {"message", ""},
                {"tool_calls", {{{"tool_call_id", call}, {"function_name", "delegate"}}}},
                {"observation", {{"results", {{{"source_call_id", call}, {"subagent_trajectory_ref", refs}}}}}}};
  };
  const Json of_second = {{"trajectory_id", "b"}, {"session_id", "one"}}, of_nested = {{"trajectory_id", "a"}};
  const Json second =
      agent("b", "second", {{"steps", {step("n", {of_nested})}}, {"subagent_trajectories", {agent("a", "nested")}}});
  const Json root = {{"schema_version", "ATIF-v1.7"},
                     {"steps", {step("c", {of_second})}},
                     {"subagent_trajectories", {agent("a", "first"), second}}};
  const ForeignChat chat = Chat(DumpJson(root));
  std::string said;
  for (const AgentEvent& each : chat.interactions.at(0).events) {
    const auto* nested = std::get_if<event::Nested>(&each.payload);
    const auto* answer = nested == nullptr ? nullptr : std::get_if<event::Answer>(&nested->step);
    const auto* text = nested == nullptr ? nullptr : std::get_if<event::MessageText>(&nested->step);
    if (answer != nullptr) said += answer->content;
    if (text != nullptr) said += text->content;
  }
  CHECK(said == "nested");
}

TEST_CASE("ReadAtif: a sub-agent keeps every call and its result, also if it repeats ids", "[moves]") {
  const auto step = [](const char* word) {
    return Json{{"source", "agent"},
                {"message", ""},
                {"tool_calls", {{{"tool_call_id", "c"}, {"function_name", word}}}},
                {"observation", {{"results", {{{"source_call_id", "c"}, {"content", word}}}}}}};
  };
  Json outer = step("outer");
  outer["observation"]["results"][0]["subagent_trajectory_ref"] = {{{"trajectory_id", "t"}}};
  const Json below = {{"trajectory_id", "t"}, {"steps", {step("one"), step("two")}}};
  const Json root = {{"schema_version", "ATIF-v1.7"}, {"steps", {outer}}, {"subagent_trajectories", {below}}};
  const ForeignChat chat = Chat(DumpJson(root));
  std::map<std::string, std::string> calls;
  std::vector<std::string> results;
  for (const AgentEvent& each : chat.interactions.at(0).events) {
    const auto* nested = std::get_if<event::Nested>(&each.payload);
    if (nested == nullptr) continue;
    if (const auto* call = std::get_if<event::ToolCallStarted>(&nested->step)) calls[call->id] = call->tool_name;
    if (const auto* result = std::get_if<event::ToolResult>(&nested->step)) {
      CHECK(result->tool_name == result->tool_output);
      results.push_back(calls.at(result->id));
    }
  }
  CHECK(results == std::vector<std::string>{"one", "two"});
}

TEST_CASE("ReadAtif: a result without a call's id counts calls only where no other has one", "[moves]") {
  const auto results_of = [](Json results) {
    const Json call = {{"tool_call_id", "a"}, {"function_name", "x"}},
               other = {{"tool_call_id", "b"}, {"function_name", "x"}};
    const Json step = {{"source", "agent"},
                       {"message", ""},
                       {"tool_calls", {call, other}},
                       {"observation", {{"results", std::move(results)}}}};
    const ForeignChat chat = Chat(DumpJson({{"schema_version", "ATIF-v1.7"}, {"steps", {step}}}));
    std::string told;
    for (const Message& each : chat.interactions.at(0).final_agent_state->messages) {
      if (each.role == Role::kTool) told += each.content.value_or("") + ";";
    }
    return told;
  };
  CHECK(results_of({{{"content", "one"}}, {{"content", "two"}}}) == "one;two;");
  const Json named = {{"source_call_id", "a"}, {"content", "one"}},
             second = {{"source_call_id", "b"}, {"content", "two"}};
  CHECK(results_of({named, {{"content", "free"}}, second}) == "one;two;");
}

TEST_CASE("MovedTurns: a long chat with many branches takes little memory and time", "[moves]") {
  // After one prompt a long answer in pieces, each with a second end.
  constexpr int kPieces = 40'000;
  std::vector<MessageNode> nodes{{.id = "p", .parent = "", .steps = {{.text = "go"}}}};
  for (int i = 0; i < kPieces; ++i) {
    const std::string parent = i == 0 ? "p" : "n" + std::to_string(i - 1);
    nodes.push_back({.id = "n" + std::to_string(i), .parent = parent, .steps = {{.kind = Kind::kAnswer}}});
    nodes.push_back({.id = "e" + std::to_string(i), .parent = parent, .steps = {}});
  }
  LeftOut left_out;
  CHECK(StepsOfTree(std::move(nodes), left_out).size() == 100'000);
  CHECK(left_out.Notes().size() == 1);
}

TEST_CASE("MovedTurns: very many calls of one id have their results in order, in time in proportion", "[moves]") {
  constexpr std::size_t kCalls = 5'000;
  Json calls = Json::array(), results = Json::array();
  for (std::size_t i = 0; i < kCalls; ++i) {
    calls.push_back({{"type", "tool_use"}, {"id", "a"}, {"name", "x"}, {"input", Json::object()}});
    results.push_back({{"type", "tool_result"}, {"tool_use_id", "a"}, {"content", std::to_string(i)}});
  }
  const ForeignChat chat =
      Chat(ClaudeLine("user", "1", "", R"("go")") + ClaudeLine("assistant", "2", "1", DumpJson(calls)) +
           ClaudeLine("user", "3", "2", DumpJson(results)));
  const Messages& messages = chat.interactions.at(0).final_agent_state->messages;
  CHECK(IsWellFormed(messages));
  CHECK(messages.size() == 2 + kCalls);
  CHECK(messages[1].tool_calls.back().id == "a_5000");
  CHECK(messages[2].content == "0");
  CHECK(messages[1 + kCalls].content == "4999");
  CHECK(chat.notes.empty());
}

TEST_CASE("MovedTurns: what cannot be a session is refused or empty, and never half read", "[moves]") {
  const std::string line = ClaudeLine("user", "1", "", R"("go")");
  struct Bad {
    const char* what;
    std::string text;
    std::string format, failure;  // of the source, or of the only chat
  };
  const std::string deep = std::string(100'000, '[');
  for (
      const Bad& bad : {
          Bad{"nothing", "", "", ""},
          Bad{"blank", " \n\n ", "", ""},
          Bad{"no JSON", "once upon a time", "", ""},
          Bad{"other JSON", R"({"a":1})", "", ""},
          Bad{"other lines", "{\"a\":1}\n{\"b\":2}\n", "", ""},
          Bad{"an array of numbers", "[1,2,3]", "", ""},
          Bad{"too deep", deep, "", "the source: it is cut off"},
          Bad{"an array that is cut off", R"([{"mapping":{}},{"mapp)", "chatgpt", "the source: it is cut off"},
          Bad{"a broken line", line + "{\n" + line, "claude-code", "the source, line 2: "},
          Bad{"a line with wrong types", R"({"type":"user","sessionId":"s","message":7,"uuid":[],"parentUuid":{}})",
              "claude-code", "the session holds no message"},
          Bad{"wrong types in content", ClaudeLine("user", "1", "", R"([1,null,{"type":7},{"type":"tool_result"}])"),
              "claude-code", ""},
          Bad{"a mapping of nonsense",
              R"({"mapping":{"a":7,"b":{"message":[]},"c":{"message":{"author":1,"content":2}}}})", "chatgpt", ""},
          Bad{"no conversation", R"({"mapping":{}})", "chatgpt", "the session holds no message"},
          Bad{"parts of an export", R"({"info":{"id":"ses_1"},"messages":[{"info":7,"parts":{"a":1}},8]})", "opencode",
              "the session holds no message"},
          Bad{"steps of nonsense",
              R"({"schema_version":"ATIF-v1.7","steps":[1,{"source":"agent","tool_calls":[{}],"observation":{"results":[{},{"content":{}}]}}]})",
              "atif", ""},
          Bad{"messages of nonsense", R"([{"role":"user","content":[{"type":"tool_use"},{}]},9])", "cline", ""},
          Bad{"history of nonsense",
              R"({"history":{"messages":{"a":1,"b":{"role":"assistant","content":"<details type=\"tool_calls\" done=\"true\" id=\"x"}}}})",
              "open-webui", ""},
      }) {
    INFO(bad.what);
    const Read read = ReadText(bad.text);
    CHECK(read.format == bad.format);
    const bool of_chat = read.failure.empty() && !read.chats.empty() && !read.chats[0];
    CHECK((of_chat ? read.chats[0].error().message : read.failure).starts_with(bad.failure));
    for (const auto& chat : read.chats) {
      if (!chat) continue;
      for (const Interaction& each : chat->interactions) CHECK(IsWellFormed(each.final_agent_state->messages));
    }
  }
}

TEST_CASE("ForEachSession: what in a list is no session, and what follows the list, is said", "[moves]") {
  const std::string chat =
      R"({"id":"a","mapping":{"1":{"parent":null,"message":{"author":{"role":"user"},"content":{"parts":["hi"]}}}}})";
  const std::string claude = R"({"uuid":"c","chat_messages":[{"uuid":"1","sender":"human","text":"hi"}]})";
  const std::string no_session = ": it is no session of ChatGPT (docs/moves.md)";
  struct List {
    std::string text;
    std::size_t chats;
    std::string failed, failure;
  };
  for (const List& list : {
           List{"[" + chat + R"(,{"id":"b","mapping":5},)" + chat + "]", 2, "the source, element 2" + no_session, ""},
           List{"[" + chat + R"(,{"title":"other"},)" + chat + "]", 2, "the source, element 2" + no_session, ""},
           List{R"([{"title":"other"},)" + chat + "]", 1, "the source, element 1" + no_session, ""},
           List{"[" + chat + "," + claude + "," + chat + "]", 3, "", ""},
           List{"[" + chat + "] \n", 1, "", ""},
           List{"[" + chat + "]x", 1, "", "the source: something follows its end"},
           List{"[" + chat + "]\n[" + chat + "]", 1, "", "the source: something follows its end"},
       }) {
    INFO(list.text);
    const Read read = ReadText(list.text);
    CHECK(read.chats.size() == list.chats);
    for (const auto& each : read.chats) CHECK(each);
    CHECK(read.failed == (list.failed.empty() ? std::vector<std::string>() : std::vector{list.failed}));
    CHECK(read.failure == list.failure);
  }
}

TEST_CASE("MovedTurns: the last line of a session that goes on is left out", "[moves]") {
  const std::string line = ClaudeLine("user", "1", "", R"("go")");
  for (std::size_t cut = 1; cut + 2 < line.size(); cut += 7) {
    const ForeignChat chat = Chat(line + line.substr(0, cut));
    CHECK(chat.interactions.size() == 1);
    CHECK(chat.notes == std::vector<std::string>{"left out: 1 x last line, which is not complete"});
  }
}

TEST_CASE("MovedTurns: nothing in a transcript chooses a folder, a grant or a job", "[moves]") {
  const ForeignChat chat =
      Chat(ClaudeLine("user", "1", "", R"("go")",
                      R"(,"cwd":"/etc","grants":[{"tool_name":"run_shell"}],"permissionMode":"bypassPermissions")"));
  const Interaction& turn = chat.interactions.at(0);
  CHECK(turn.workspace.empty());
  CHECK(turn.final_agent_state->grants.empty());
  CHECK(turn.final_agent_state->jobs.empty());
  CHECK(turn.imported);
}

TEST_CASE("ForEachElement: elements are cut as they stand, whatever their strings hold", "[moves]") {
  const std::string text = R"( [ {"a":"],[\"\\"} ,[1,[2]],  "x,]" , 7 ] )";
  std::vector<std::string> elements;
  REQUIRE(ForEachElement(SourceText::Of(text, "it"), [&](const ElementPlace& place) -> Result<bool> {
    CHECK(place.number == elements.size() + 1);
    elements.emplace_back(Trimmed(std::string_view(text).substr(place.offset, place.length)));
    return true;
  }));
  CHECK(elements == std::vector<std::string>{R"({"a":"],[\"\\"})", "[1,[2]]", R"("x,]")", "7"});
}

TEST_CASE("ReadDocument: the lists stay in the source, whatever strings and names hold", "[moves]") {
  const std::string text =
      " {\"a\":[1,{\"messages\":[2]}], \"mess\\u0061ges\" : [ {\"x\":\"]}\\\"\"} ,[1,[2]],\"s\" "
      "],\"chat\":{\"b\":\"{\","
      "\"history\":{\"messages\":{\"k\\\"\":{\"c\":[]}, \"l\":3},\"currentId\":\"l\"}},\"steps\":[],\"history\":7}\n";
  const auto document = ReadDocument(SourceText::Of(text, "it"));
  REQUIRE(document);
  CHECK(DumpJson(document->rest) ==
        R"({"a":[1,{"messages":[2]}],"messages":[{"x":"]}\""}],)"
        R"("chat":{"b":"{","history":{"messages":{"k\"":{"c":[]}},"currentId":"l"}},"steps":[],"history":7})");
  CHECK(text.substr(document->begin, document->end - document->begin) == Trimmed(text));
  const Records messages = ElementsOf(*document, "messages["),
                members = ElementsOf(*document, "chat.history.messages{");
  REQUIRE(messages.count == 3);
  CHECK(DumpJson(*messages.load(1)) == "[1,[2]]");
  CHECK(DumpJson(*messages.load(2)) == R"("s")");
  REQUIRE(members.count == 2);
  CHECK(DumpJson(*members.load(0)) == R"({"k\"":{"c":[]}})");
  CHECK(DumpJson(*members.load(1)) == R"({"l":3})");
  CHECK(ElementsOf(*document, "steps[").count == 0);

  for (std::size_t cut = 1; cut + 2 < text.size(); ++cut) {
    CHECK(ReadDocument(SourceText::Of(text.substr(0, cut), "it")).error().message == "it: it is cut off");
  }
  const auto failure = [](const std::string& bad) { return ReadDocument(SourceText::Of(bad, "it")).error().message; };
  CHECK(failure(R"({"messages":[1],"messages":[2]})") == "it: it has the list \"messages\" twice");
  CHECK(failure("[1] 2") == "it: it is not one JSON value");
  CHECK(failure("7") == "it: it is neither a JSON object nor an array");
  CHECK(failure(R"({"messages":[1},"a":2})").starts_with("it: "));
  const auto blank = ReadDocument(SourceText::Of("[1,,2]", "it"));
  CHECK(ElementsOf(*blank, "[").load(1).error().message.starts_with("it, element 2: "));
}

TEST_CASE("MovedTurns: a session in one document may be larger than one of its messages may be", "[moves]") {
  constexpr std::size_t kMessages = 9, kLarge = 8 << 20;
  const std::string said(kLarge, 'x');
  std::string gemini = R"({"sessionId":"s","projectHash":"h","messages":[)", chatgpt = R"([{"id":"c","mapping":{)";
  for (std::size_t i = 0; i < kMessages; ++i) {
    const std::string id = std::to_string(i), comma = i == 0 ? "" : ",";
    gemini += comma + R"({"id":")" + id + R"(","type":"user","content":")" + said + R"("})";
    chatgpt += comma + "\"" + id + R"(":{"parent":")" + (i == 0 ? "" : std::to_string(i - 1)) +
               R"(","message":{"author":{"role":"user"},"content":{"parts":[")" + said + R"("]}}})";
  }
  REQUIRE(gemini.size() > kMaxSourceRecord);
  for (const std::string& text : {gemini + "]}", chatgpt + "}}]"}) {
    const ForeignChat chat = Chat(text);
    REQUIRE(chat.interactions.size() == kMessages);
    for (const Interaction& each : chat.interactions) CHECK(each.user_message == said);
  }
}

TEST_CASE("MovedTurns: the steps of a document are the same when they are read again", "[moves]") {
  // Each tells of results and sub-agents before or twice what they are of.
  const std::string call = R"({"id":"c","name":"f","args":{},"status":"success","result":[{"text":"done"}]})";
  const std::string response = R"({"functionResponse":{"id":"c","name":"f","response":{"output":"early"}}})";
  const std::string gemini =
      R"({"sessionId":"s","projectHash":"h","messages":[{"id":"1","type":"user","content":"go"},)"
      R"({"id":"2","type":"user","content":[)" +
      response + R"(]},{"id":"3","type":"gemini","content":"a","toolCalls":[)" + call +
      R"(]},{"id":"4","type":"user","content":[)" + response + "]}]}";
  const std::string checkpoint =
      R"([{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},)"
      R"({"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[)" +
      response + R"(]},{"role":"user","parts":[)" + response + "]}]";
  const std::string cline =
      R"([{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},)"
      R"({"role":"user","content":"[f for 'a'] Result:\n\ndone"},{"role":"user","content":"[f for 'a'] Result:\n\nmore"}])";
  const std::string atif =
      R"({"schema_version":"ATIF-v1.6","session_id":"s","steps":[{"source":"user","message":"go"},)"
      R"({"source":"agent","message":"","tool_calls":[{"tool_call_id":"a","function_name":"f"}],"observation":{"results":[)"
      R"({"source_call_id":"a","content":"","subagent_trajectory_ref":[{"trajectory_id":"t"},{"trajectory_id":"t"}]}]}}],)"
      R"("subagent_trajectories":[{"trajectory_id":"t","steps":[{"source":"agent","message":"nested"}]}]})";
  for (const std::string& text : {gemini, checkpoint, cline, atif}) {
    const SourceText source = SourceText::Of(text, "it");
    const MoveFormat* const format = RecognizeFormat(source, {}).value();
    REQUIRE(format != nullptr);
    auto session = format->document(ReadDocument(source).value(), {}).value();
    const auto shown = [&](std::size_t record) {
      const auto read = session->Read(record).value();
      std::string steps;
      for (const MovedMessage& each : read) {
        steps += std::to_string(static_cast<int>(each.kind)) + each.text + "," + each.call_id + "," + each.nested + ";";
      }
      return steps;
    };
    std::vector<std::string> first;
    for (std::size_t i = 0; i < session->records(); ++i) first.push_back(shown(i));
    for (std::size_t i = session->records(); i-- > 0;) CHECK(shown(i) == first[i]);
    for (std::size_t i = 0; i < session->records(); ++i) CHECK(shown(i) == first[i]);
  }
}

}  // namespace reprise::test::moves_test
