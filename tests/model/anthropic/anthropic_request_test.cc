#include "model/anthropic/anthropic_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/request_parts.h"
#include "support/test.h"

namespace reprise::anthropic_request_test {
namespace {

Message Say(Role role, std::optional<std::string> content) { return {.role = role, .content = std::move(content)}; }

Message Calls(std::vector<ToolCall> calls, std::optional<std::string> content = {}) {
  return {.role = Role::kAssistant, .content = std::move(content), .tool_calls = std::move(calls)};
}

Message ResultOf(std::string id, std::string text, bool is_error = false) {
  Message message = Say(Role::kTool, std::move(text));
  message.tool_call_id = std::move(id);
  message.is_error = is_error;
  return message;
}

Json Build(const Messages& messages, const std::vector<ToolSpec>& tools = {}, const ModelFacts& facts = {}) {
  const auto json = ParseJson(BuildMessagesRequest({"claude", messages, tools}, facts), 2 * kMaxJsonDepth);
  REQUIRE(json);
  return *json;
}

TEST_CASE("Anthropic request: what it leaves out of the wishes is told, and nothing else is left out", "[anthropic]") {
  const std::vector<ToolSpec> tools{{.name = "f", .description = "", .parameters = "", .strict = true}};
  const ModelWishes all{.temperature = 0.5,
                        .top_p = 0.5,
                        .max_output_tokens = 100,
                        .stop = {"END"},
                        .format = ModelWishes::Format::kSchema,
                        .schema = R"({"type":"object"})",
                        .schema_name = "n",
                        .must_call = true};
  const auto built = [&](const ModelWishes& wishes, const ModelFacts& facts) {
    ModelRequest request{"claude", {}, tools};
    request.wishes = &wishes;
    return *ParseJson(BuildMessagesRequest(request, facts));
  };
  for (const ThinkingMode thinking : {ThinkingMode::kOff, ThinkingMode::kAdaptive, ThinkingMode::kBudget}) {
    const ModelFacts facts{.thinking = thinking, .thinking_budget = 1000, .effort = Effort::kLow};
    const Json body = built(all, facts);
    const auto left_out = LeftOutOfMessages(all, facts);
    const auto is_told = [&](Wish wish) { return std::find(left_out.begin(), left_out.end(), wish) != left_out.end(); };
    CHECK(body.contains("temperature") != is_told(Wish::kTemperature));
    CHECK(body.contains("top_p") != is_told(Wish::kTopP));
    CHECK((body["max_tokens"] == 100) != is_told(Wish::kMaxOutputTokens));
    CHECK(is_told(Wish::kForcedCall) == (thinking != ThinkingMode::kOff));
    CHECK_FALSE(is_told(Wish::kStop));
    CHECK_FALSE(is_told(Wish::kFormat));
    CHECK(body["output_config"]["format"] == Json::parse(R"({"type":"json_schema","schema":{"type":"object"}})"));
    CHECK(body["output_config"].contains("effort") == (thinking == ThinkingMode::kAdaptive));
    CHECK(body["tools"][0]["strict"] == true);
  }
  CHECK(LeftOutOfMessages({.stop = {"END", " \n"}}, {}) == std::vector{Wish::kStop});
  CHECK(LeftOutOfMessages({.format = ModelWishes::Format::kJson}, {}) == std::vector{Wish::kFormat});
  CHECK(LeftOutOfMessages({.temperature = 0.5, .must_call = true}, {}, {.says_off = true}) ==
        std::vector{Wish::kTemperature});
}

TEST_CASE("Anthropic request: a whole conversation", "[anthropic]") {
  const std::vector<Message> messages{
      Say(Role::kSystem, "be \"good\""),
      Say(Role::kUser, "hé\t"),
      Calls({{"call_1", "echo", R"({ "text" : "a" })"}, {"call_2", "time", ""}}, "on it"),
      ResultOf("call_1", "a\n"),
      ResultOf("call_2", "", true),
      Say(Role::kAssistant, "done"),
      Say(Role::kUser, "more")};
  CHECK(Build(messages,
              {{"echo", "Says it", R"({"type":"object","properties":{"text":{"type":"string"}}})"}, {"time", "", ""}},
              {.max_output_tokens = 500}) == Json::parse(R"x({
    "model": "claude",
    "max_tokens": 500,
    "tools": [
      {"name": "echo", "description": "Says it",
       "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}},
      {"name": "time", "description": "", "input_schema": {"type": "object", "properties": {}},
       "cache_control": {"type": "ephemeral"}}],
    "system": [{"type": "text", "text": "be \"good\"", "cache_control": {"type": "ephemeral"}}],
    "messages": [
      {"role": "user", "content": [{"type": "text", "text": "hé\t"}]},
      {"role": "assistant", "content": [
        {"type": "text", "text": "on it"},
        {"type": "tool_use", "id": "call_1", "name": "echo", "input": {"text": "a"}},
        {"type": "tool_use", "id": "call_2", "name": "time", "input": {}}]},
      {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "call_1", "content": "a\n"},
        {"type": "tool_result", "tool_use_id": "call_2", "is_error": true, "cache_control": {"type": "ephemeral"}}]},
      {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
      {"role": "user", "content": [{"type": "text", "text": "more", "cache_control": {"type": "ephemeral"}}]}],
    "stream": true})x"));
}

TEST_CASE("Anthropic request: our system prompt precedes the conversation's, and the last has the cache mark",
          "[anthropic]") {
  const auto build = [](const Messages& messages, std::string_view system) {
    return *ParseJson(BuildMessagesRequest({"claude", messages, {}, system}, {}));
  };
  Message own, user;
  own.role = Role::kSystem;
  own.content = "own";
  user.content = "hi";
  CHECK(build({user}, "brief")["system"] ==
        Json::parse(R"([{"type":"text","text":"brief","cache_control":{"type":"ephemeral"}}])"));
  CHECK(build({own, user}, "brief")["system"] ==
        Json::parse(
            R"([{"type":"text","text":"brief"},{"type":"text","text":"own","cache_control":{"type":"ephemeral"}}])"));
  CHECK_FALSE(build({user}, " ").contains("system"));
}

TEST_CASE("Anthropic request: arguments go back byte for byte", "[anthropic]") {
  const std::string body =
      BuildMessagesRequest({"m", {Calls({{"1", "echo", R"({ "n":1.50, "a":"\u00e9" })"}})}, {}}, {});
  CHECK(body.find(R"("input":{ "n":1.50, "a":"\u00e9" }})") != std::string::npos);
}

TEST_CASE("Anthropic request: content that the API rejects is mended", "[anthropic]") {
  const Json messages = Build({Say(Role::kUser, "a"), Say(Role::kAssistant, " \n"), Say(Role::kUser, "\xff"),
                               Calls({{"functions.x:0", "a.b", "not json"}, {"", "", "[1]"}}),
                               ResultOf("functions.x:0", "r"), ResultOf("", " ")})["messages"];
  REQUIRE(messages.size() == 3);  // two user messages became one
  CHECK(messages[0]["content"].size() == 2);
  CHECK(messages[0]["content"][1]["text"] == "\xEF\xBF\xBD");
  CHECK(messages[1]["content"][0] == Json::parse(R"({"type":"tool_use","id":"functions_x_0","name":"a_b",
                                                   "input":{"not_valid_json":"not json"}})"));
  CHECK(messages[1]["content"][1]["input"] == Json::parse(R"({"not_valid_json":"[1]"})"));
  CHECK(messages[2]["content"][0]["tool_use_id"] == "functions_x_0");
  CHECK_FALSE(messages[2]["content"][1].contains("content"));
}

TEST_CASE("Anthropic request: results come before the text of the same turn", "[anthropic]") {
  const Json messages = Build(
      {Say(Role::kUser, "a"), Calls({{"1", "x", "{}"}}), ResultOf("1", "r"), Say(Role::kUser, "and")})["messages"];
  CHECK(messages[2]["content"][0]["type"] == "tool_result");
  CHECK(messages[2]["content"][1]["type"] == "text");
}

TEST_CASE("Anthropic request: thinking", "[anthropic]") {
  CHECK_FALSE(Build({Say(Role::kUser, "x")}).contains("thinking"));
  CHECK_FALSE(Build({Say(Role::kUser, "x")}, {}, {.thinking = ThinkingMode::kOff}).contains("thinking"));
  CHECK(Build({Say(Role::kUser, "x")}, {}, {.thinking = ThinkingMode::kAdaptive})["thinking"]["type"] == "adaptive");
  const Json body = Build({Say(Role::kUser, "x")}, {},
                          {.max_output_tokens = 100, .thinking = ThinkingMode::kBudget, .thinking_budget = 5000});
  CHECK(body["thinking"] == Json::parse(R"({"type":"enabled","budget_tokens":5000})"));
  CHECK(body["max_tokens"] > 5000);
}

const std::string kThinking = R"({"type":"thinking","thinking":"hm \"é\"","signature":"a/b+=="})";

TEST_CASE("Anthropic request: blocks come back in their places", "[anthropic]") {
  Message answer = Calls({{"1", "x", "{}"}}, "onetwo");
  answer.extras = R"({"anthropic_blocks":[)" + kThinking +
                  R"(,{"type":"text","bytes":3},{"type":"redacted_thinking","data":"zz"},{"type":"text","bytes":3},)" +
                  R"({"type":"tool_use"}]})";
  const Json content = Build({Say(Role::kUser, "a"), answer, ResultOf("1", "r")})["messages"][1]["content"];
  REQUIRE(content.size() == 5);
  CHECK(content[0] == Json::parse(kThinking));
  CHECK(content[1]["text"] == "one");
  CHECK(content[2] == Json::parse(R"({"type":"redacted_thinking","data":"zz"})"));
  CHECK(content[3]["text"] == "two");
  CHECK(content[4]["id"] == "1");
}

TEST_CASE("Anthropic request: thinking that nobody has signed stays here, where signatures are wanted", "[anthropic]") {
  for (const char* block :
       {R"({"type":"thinking","thinking":"hm"})", R"({"type":"thinking","thinking":"hm","signature":""})"}) {
    Message answer = Say(Role::kAssistant, "text");
    answer.extras = R"({"anthropic_blocks":[)" + std::string(block) + "]}";
    const Messages messages(std::vector<Message>{Say(Role::kUser, "a"), answer});
    const auto json = ParseJson(BuildMessagesRequest({"claude", messages, {}}, {}, {}, {.sends_unsigned = false}));
    REQUIRE(json);
    CHECK((*json)["messages"][1]["content"] == Json::parse(R"([{"type":"text","text":"text"}])"));
  }
}

TEST_CASE("Anthropic request: blocks that no longer fit leave the message complete", "[anthropic]") {
  for (const char* rest : {R"({"type":"text","bytes":2})", R"({"type":"text","bytes":99})", R"({"type":"tool_use"})",
                           R"({"type":"text","bytes":-1})", R"({"type":"text"})", "5", "{}"}) {
    INFO(rest);
    Message answer = Say(Role::kAssistant, "text");
    answer.extras = R"({"anthropic_blocks":[)" + kThinking + "," + rest + "]}";
    const Json content = Build({Say(Role::kUser, "a"), answer})["messages"][1]["content"];
    REQUIRE(content.size() == 2);
    CHECK(content[0] == Json::parse(kThinking));
    CHECK(content[1]["text"] == "text");
  }
  for (const char* extras : {"nonsense", "[]", R"({"anthropic_blocks":5})", R"({"reasoning":"x"})"}) {
    Message answer = Say(Role::kAssistant, "text");
    answer.extras = extras;
    CHECK(Build({Say(Role::kUser, "a"), answer})["messages"][1]["content"] ==
          Json::parse(R"([{"type":"text","text":"text"}])"));
  }
}

TEST_CASE("Anthropic blocks: an answer without thinking needs no extras", "[anthropic]") {
  using Kind = AnthropicBlock::Kind;
  CHECK(ExtrasOf({{.kind = Kind::kText, .text_bytes = 4}, {.kind = Kind::kToolUse}}, "claude").empty());
  CHECK(ExtrasOf({}, "claude").empty());
  CHECK(ExtrasOf({{.kind = Kind::kVerbatim, .json = kThinking}, {.kind = Kind::kText, .text_bytes = 4}}, "claude") ==
        R"({"provider_extras":{"claude":{"blocks":[)" + kThinking + R"(,{"type":"text","bytes":4}]}}})");
}

TEST_CASE("Anthropic request: blocks go back only to their provider", "[anthropic]") {
  Message answer = Say(Role::kAssistant, "text");
  answer.extras = ExtrasOf({{.kind = AnthropicBlock::Kind::kVerbatim, .json = kThinking},
                            {.kind = AnthropicBlock::Kind::kText, .text_bytes = 4}},
                           "claude");
  const Messages messages(std::vector<Message>{Say(Role::kUser, "a"), answer});
  const auto content_for = [&](std::string_view provider) {
    return Json::parse(BuildMessagesRequest({"m", messages, {}}, {}, provider))["messages"][1]["content"];
  };
  REQUIRE(content_for("claude").size() == 2);
  CHECK(content_for("claude")[0] == Json::parse(kThinking));
  CHECK(content_for("gateway") == Json::parse(R"([{"type":"text","text":"text"}])"));
}

TEST_CASE("Anthropic request: content in parts comes from the extras", "[anthropic]") {
  Message message = Say(Role::kUser, std::nullopt);
  message.extras = R"({"content":[{"type":"text","text":"x"},{"type":"image_url"},{"type":"text","text":"y"}]})";
  CHECK(Build({message})["messages"][0]["content"][0]["text"] == "xy");
  message.role = Role::kAssistant;
  CHECK(Build({Say(Role::kUser, "a"), message})["messages"][1]["content"][0]["text"] == "xy");
}

Message Answer(std::string text, std::string_view blocks) {
  Message message = Say(Role::kAssistant, std::move(text));
  message.extras = R"({"provider_extras":{"claude":{"blocks":)" + std::string(blocks) + "}}}";
  return message;
}

std::string Assistant(const Messages& messages, const SearchWays& search) {
  const auto json = ParseJson(BuildMessagesRequest({"claude", messages, {}}, {}, "claude", {}, search));
  REQUIRE(json);
  std::string all;
  for (const Json& message : (*json)["messages"]) {
    if (message["role"] != "assistant") continue;
    all += all.empty() ? "" : " | ";
    for (const Json& block : message["content"]) {
      const std::string type = TextMember(block, "type");
      all += type + (type == "text" ? "=" + TextMember(block, "text") : "") + (block.contains("citations") ? "*" : "") +
             " ";
    }
  }
  return all;
}

constexpr std::string_view kSearched =
    R"([{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},)"
    R"({"type":"web_search_tool_result","tool_use_id":"s1","content":[]},{"type":"text","bytes":2,"citations":[{}]}])";
constexpr std::string_view kOpen =
    R"([{"type":"text","bytes":2},{"type":"server_tool_use","id":"s2","name":"web_search","input":{}}])";
constexpr std::string_view kLater = R"([{"type":"web_search_tool_result","tool_use_id":"s2","content":[]}])";

TEST_CASE("Anthropic request: blocks of a search go back where the search is offered", "[anthropic]") {
  const WebSearchOptions on{.is_on = true, .max_uses = 2, .allowed_domains = {"a.example", "b.example"}};
  const Message user = Say(Role::kUser, "go");
  const SearchWays offered{.offered = &on};
  CHECK(Assistant({user, Answer("hi", kSearched), user}, offered) ==
        "server_tool_use web_search_tool_result text=hi* ");
  CHECK(Assistant({user, Answer("hi", kSearched), user}, {}) == "text=hi ");
  CHECK(Assistant({user, Answer("hi", kSearched), user}, {.offered = &on, .sends_searches = false}) == "text=hi ");
  // Text that no longer fits its blocks has no citations.
  CHECK(Assistant({user, Answer("changed", kSearched), user}, offered) ==
        "server_tool_use web_search_tool_result text=changed ");
  const auto json = ParseJson(BuildMessagesRequest({"claude", {user}, {}}, {}, "claude", {}, offered));
  CHECK((*json)["tools"] == Json::parse(R"([{"type":"web_search_20250305","name":"web_search","max_uses":2,)"
                                        R"("allowed_domains":["a.example","b.example"],)"
                                        R"("cache_control":{"type":"ephemeral"}}])"));
}

TEST_CASE("Anthropic request: a call of the provider without its result", "[anthropic]") {
  const WebSearchOptions on{.is_on = true};
  const SearchWays offered{.offered = &on};
  const Message user = Say(Role::kUser, "go"), open = Answer("hi", kOpen);
  CHECK(Assistant({user, open}, offered) == "text=hi server_tool_use ");  // it was paused
  CHECK(Assistant({user, open, user}, offered) == "text=hi ");
  CHECK(Assistant({user, open, user, Say(Role::kAssistant, "a")}, offered) == "text=hi  | text=a ");
  CHECK(Assistant({user, open, Answer("", kLater), user}, offered) ==
        "text=hi server_tool_use web_search_tool_result ");
  CHECK(Assistant({user, Answer("", kLater), user}, offered).empty());  // a summary has taken its call
  CHECK(Assistant({user, open, Answer("", kLater), user}, {}) == "text=hi ");
  Message calling =
      Answer("hi", R"([{"type":"text","bytes":2},{"type":"server_tool_use","id":"s2"},{"type":"tool_use"}])");
  calling.tool_calls = {{"c", "echo", "{}"}};
  CHECK(Assistant({user, calling, ResultOf("c", "x")}, offered) == "text=hi server_tool_use tool_use ");
}

}  // namespace
}  // namespace reprise::anthropic_request_test
