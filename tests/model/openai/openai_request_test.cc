#include "model/openai/openai_request.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "support/test.h"

namespace reprise::openai_request_test {
namespace {

Message Say(Role role, std::optional<std::string> content) {
  Message message;
  message.role = role;
  message.content = std::move(content);
  return message;
}

Json Build(const Messages& messages, const std::vector<ToolSpec>& tools = {}) {
  const auto json = ParseJson(BuildChatCompletionRequest({"gpt", messages, tools}), 2 * kMaxJsonDepth);
  REQUIRE(json);
  return *json;
}

TEST_CASE("OpenAI request: a whole conversation", "[openai]") {
  Message call = Say(Role::kAssistant, std::nullopt);
  call.tool_calls = {{"call_1", "echo", "{\"text\":\"a\\n\"}"}, {"call_2", "time", ""}};
  Message result = Say(Role::kTool, "a\n");
  result.tool_call_id = "call_1";
  result.name = "echo";
  const std::vector<Message> messages{Say(Role::kSystem, "be \"good\""), Say(Role::kUser, "hé\t"), call, result,
                                      Say(Role::kAssistant, "done")};
  CHECK(Build(messages, {{"echo", "Says it", R"({"type":"object","properties":{"text":{"type":"string"}}})"},
                         {"time", "Tells it", ""}}) == Json::parse(R"x({
    "model": "gpt",
    "messages": [
      {"role": "system", "content": "be \"good\""},
      {"role": "user", "content": "hé\t"},
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "echo", "arguments": "{\"text\":\"a\\n\"}"}},
        {"id": "call_2", "type": "function", "function": {"name": "time", "arguments": "{}"}}]},
      {"role": "tool", "content": "a\n", "tool_call_id": "call_1"},
      {"role": "assistant", "content": "done"}],
    "tools": [
      {"type": "function", "function": {"name": "echo", "description": "Says it",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}},
      {"type": "function", "function": {"name": "time", "description": "Tells it",
        "parameters": {"type": "object", "properties": {}}}}],
    "stream": true,
    "stream_options": {"include_usage": true}})x"));
}

TEST_CASE("OpenAI request: the system prompt comes first, joined with the conversation's own", "[openai]") {
  const auto build = [](const Messages& messages) {
    return ParseJson(BuildChatCompletionRequest({"gpt", messages, {}, "be \"brief\""}))->at("messages");
  };
  CHECK(build({Say(Role::kUser, "hi")}) ==
        Json::parse(R"([{"role":"system","content":"be \"brief\""},{"role":"user","content":"hi"}])"));
  CHECK(build({Say(Role::kSystem, "own"), Say(Role::kUser, "hi")}) ==
        Json::parse(R"([{"role":"system","content":"be \"brief\"\n\nown"},{"role":"user","content":"hi"}])"));
  CHECK(build({}).size() == 1);
}

TEST_CASE("OpenAI request: without tools there is no member for them", "[openai]") {
  CHECK_FALSE(Build({Say(Role::kUser, "x")}).contains("tools"));
  CHECK(Build({})["messages"] == Json::array());
}

TEST_CASE("OpenAI request: extras go back unchanged and nothing is repeated", "[openai]") {
  Message message = Say(Role::kAssistant, "text");
  message.extras = R"({"role":"user","content":"other","thinking":[{"signature":"a/b+\u00e9=="}],"n":1})";
  CHECK(BuildChatCompletionRequest({"m", {message}, {}})
            .find(R"({"role":"assistant","content":"text","thinking":[{"signature":"a/b+é=="}],"n":1})") !=
        std::string::npos);
}

TEST_CASE("OpenAI request: blocks of an Anthropic answer and the mark of a failed call are not sent", "[openai]") {
  Message message = Say(Role::kAssistant, "text");
  message.extras = R"({"anthropic_blocks":[{"type":"thinking"}],"n":1})";
  Message result = Say(Role::kTool, "no");
  result.is_error = true;
  const std::string body = BuildChatCompletionRequest({"m", {message, result}, {}});
  CHECK(body.find("anthropic") == std::string::npos);
  CHECK(body.find("is_error") == std::string::npos);
  CHECK(body.find(R"("n":1)") != std::string::npos);
}

TEST_CASE("OpenAI request: a provider's own members go back in their places, only to that provider", "[openai]") {
  Message message = Say(Role::kAssistant, "text");
  message.tool_calls = {{"a", "echo", "{}"}, {"b", "time", "{}"}};
  message.extras = R"({"provider_extras":{"gemini":{"message":{"reasoning_content":"R","role":"user","content":"no"},)"
                   R"("tool_calls":{"a":{"extra_content":{"google":{"thought_signature":"S"}},"id":"no",)"
                   R"("function":{"mode":1,"name":"no"}}}}}})";
  const auto body = [&](std::string_view provider, const std::set<std::string, std::less<>>& refused = {}) {
    return Json::parse(BuildChatCompletionRequest({"m", {message}, {}}, provider, refused))["messages"][0];
  };
  const Json plain = Json::parse(R"({"role":"assistant","content":"text","tool_calls":[
    {"id":"a","type":"function","function":{"name":"echo","arguments":"{}"}},
    {"id":"b","type":"function","function":{"name":"time","arguments":"{}"}}]})");
  Json whole = plain;
  whole["tool_calls"][0]["function"]["mode"] = 1;
  whole["tool_calls"][0]["extra_content"]["google"]["thought_signature"] = "S";
  whole["reasoning_content"] = "R";
  CHECK(body("gemini") == whole);
  CHECK(body("openai") == plain);
  whole.erase("reasoning_content");
  CHECK(body("gemini", {"reasoning_content"}) == whole);
  for (const char* extras : {R"({"provider_extras":5})", R"({"provider_extras":{"gemini":[]}})",
                             R"({"provider_extras":{"gemini":{"message":7,"tool_calls":{"a":7}}}})"}) {
    INFO(extras);
    message.extras = extras;
    CHECK(body("gemini") == plain);
  }
}

TEST_CASE("OpenAI request: arguments that are nested too deeply go back as text", "[openai]") {
  for (const int depth : {60, 100, 3000}) {
    Message call = Say(Role::kAssistant, std::nullopt);
    const std::string arguments = R"({"a":)" + std::string(static_cast<std::size_t>(depth), '[') +
                                  std::string(static_cast<std::size_t>(depth), ']') + "}";
    call.tool_calls = {{"call_1", "echo", arguments}};
    const Json sent = Build({call})["messages"][0]["tool_calls"][0]["function"]["arguments"];
    CHECK(sent == (depth < kMaxJsonDepth ? arguments : DumpJson({{"not_valid_json", arguments}})));
  }
}

TEST_CASE("OpenAI request: a result has its call's id and no name", "[openai]") {
  Message result = Say(Role::kTool, "r");
  result.tool_call_id = "a";
  result.name = "echo";
  CHECK(Build({result})["messages"][0] == Json::parse(R"({"role":"tool","content":"r","tool_call_id":"a"})"));
}

TEST_CASE("OpenAI request: content in parts comes from the extras", "[openai]") {
  Message message = Say(Role::kUser, std::nullopt);
  message.extras = R"({"content":[{"type":"text","text":"x"}]})";
  CHECK(BuildChatCompletionRequest({"m", {message}, {}})
            .find(R"([{"role":"user","content":[{"type":"text","text":"x"}]}])") != std::string::npos);
}

TEST_CASE("OpenAI request: only an assistant that calls tools has null content", "[openai]") {
  for (const Role role : {Role::kSystem, Role::kUser, Role::kAssistant}) {
    CHECK(Build({Say(role, std::nullopt)})["messages"][0]["content"] == "");
  }
  CHECK(Build({Say(Role::kTool, std::nullopt)})["messages"][0]["content"] == "(no output)");
}

TEST_CASE("OpenAI request: invalid UTF-8 is mended", "[openai]") {
  CHECK(Build({Say(Role::kUser, "a\xff\xc3")})["messages"][0]["content"] == "a\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_CASE("OpenAI request: a large conversation is built in one buffer", "[openai]") {
  std::string text;
  while (text.size() < (1 << 20)) text += "an ordinary line of text\n";
  const std::string body = BuildChatCompletionRequest({"m", std::vector<Message>(8, Say(Role::kUser, text)), {}});
  CHECK(body.capacity() < body.size() + body.size() / 8);
}

}  // namespace
}  // namespace reprise::openai_request_test
