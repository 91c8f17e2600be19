#include "model/anthropic/anthropic_response.h"

#include <string>
#include <vector>

#include "model/request_parts.h"
#include "support/test.h"

namespace reprise::anthropic_response_test {
namespace {

struct Heard : ModelStream {
  void OnThinking(std::string_view delta) override { thinking += delta; }
  void OnText(std::string_view delta) override { text += delta; }
  void OnBatchEnd() override {}
  std::string text, thinking;
};

const std::string kStart =
    R"({"type":"message_start","message":{"usage":{"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":1}}})";

std::string Begin(int index, std::string_view block) {
  return R"({"type":"content_block_start","index":)" + std::to_string(index) + R"(,"content_block":)" +
         std::string(block) + "}";
}
std::string Delta(int index, std::string_view delta) {
  return R"({"type":"content_block_delta","index":)" + std::to_string(index) + R"(,"delta":)" + std::string(delta) +
         "}";
}
std::string Stop(int index) { return R"({"type":"content_block_stop","index":)" + std::to_string(index) + "}"; }
std::string End(std::string_view reason) {
  return R"({"type":"message_delta","delta":{"stop_reason":")" + std::string(reason) +
         R"("},"usage":{"output_tokens":7}})";
}
const std::string kMessageStop = R"({"type":"message_stop"})";
const std::string kTool = R"({"type":"tool_use","id":"toolu_1","name":"echo","input":{}})";
const std::string kHalf = R"({"type":"input_json_delta","partial_json":"{\"a\":"})";

Result<ModelResponse> Answer(const std::vector<std::string>& events, Heard& heard) {
  AnthropicResponse response(heard, {.api_key = "sk-key-1234567", .provider = "claude"});
  for (const std::string& event : events) {
    if (!response.TakeEvent(event)) break;
  }
  return response.Take();
}

std::string Outcome(const std::vector<std::string>& events) {
  Heard heard;
  const auto response = Answer(events, heard);
  if (!response) return response.error().reason + (response.error().retryable ? " retryable" : "");
  return "ok " + heard.text;
}

TEST_CASE("Anthropic response: thinking, text, calls and usage", "[anthropic]") {
  Heard heard;
  const auto response = Answer({kStart,
                                R"({"type":"ping"})",
                                Begin(0, R"({"type":"thinking","thinking":"","signature":""})"),
                                Delta(0, R"({"type":"thinking_delta","thinking":"h"})"),
                                Delta(0, R"({"type":"thinking_delta","thinking":"m"})"),
                                Delta(0, R"({"type":"signature_delta","signature":"S1"})"),
                                Delta(0, R"({"type":"signature_delta","signature":"S2"})"),
                                Stop(0),
                                Begin(1, R"({"type":"redacted_thinking","data":"zz"})"),
                                Stop(1),
                                Begin(2, R"({"type":"text","text":"a"})"),
                                Delta(2, R"({"type":"text_delta","text":"\u00e9"})"),
                                Delta(2, R"({"type":"citations_delta","citation":{}})"),
                                Stop(2),
                                Begin(3, kTool),
                                Delta(3, kHalf),
                                Begin(4, R"({"type":"tool_use","id":"toolu_2","name":"time","input":{"zone":"UTC"}})"),
                                Delta(3, R"({"type":"input_json_delta","partial_json":"1}"})"),
                                Stop(3),
                                Stop(4),
                                Begin(5, R"({"type":"tool_use","id":"toolu_3","name":"now","input":{}})"),
                                Stop(5),
                                R"({"type":"not_known_yet"})",
                                End("tool_use"),
                                kMessageStop},
                               heard);
  REQUIRE(response);
  CHECK(heard.thinking == "hm");
  CHECK(heard.text == "a\xC3\xA9");
  CHECK(response->tool_calls == std::vector<ToolCall>{{"toolu_1", "echo", R"({"a":1})"},
                                                      {"toolu_2", "time", R"({"zone":"UTC"})"},
                                                      {"toolu_3", "now", ""}});
  CHECK(response->usage == TokenUsage{110, 7, 100, 0});
  CHECK(response->extras ==
        R"({"provider_extras":{"claude":{"blocks":[{"type":"thinking","thinking":"hm","signature":"S1S2"},)"
        R"({"type":"redacted_thinking","data":"zz"},{"type":"text","bytes":3},)"
        R"({"type":"tool_use"},{"type":"tool_use"},{"type":"tool_use"}]}}})");
}

TEST_CASE("Anthropic response: the events that end it", "[anthropic]") {
  const std::string text = Begin(0, R"({"type":"text","text":"x"})");
  CHECK(Outcome({kStart, text, Stop(0), End("end_turn"), kMessageStop}) == "ok x");
  CHECK(Outcome({kStart, text, End("max_tokens")}) == "ok x");
  CHECK(Outcome({kStart, text, kMessageStop}) == "ok x");
  CHECK(Outcome({text, End("end_turn"), "[DONE]"}) == "ok x");
  CHECK(Outcome({kStart, text, Stop(0)}) == "provider_protocol retryable");
  CHECK(Outcome({kStart, text, "[DONE]"}) == "provider_protocol retryable");
  CHECK(Outcome({}) == "provider_protocol retryable");
  CHECK(Outcome({kStart, End("refusal")}) == "provider_bad_request");
  CHECK(Outcome({kStart, End("model_context_window_exceeded")}) == "provider_context_length");
}

TEST_CASE("Anthropic response: an answer that was cut off says why", "[anthropic]") {
  const std::string text = Begin(0, R"({"type":"text","text":"half a sen"})");
  for (const auto& [stop_reason, truncated] :
       {std::pair("max_tokens", "length"), std::pair("refusal", "refusal"),
        std::pair("model_context_window_exceeded", "context_window"), std::pair("pause_turn", "pause"),
        std::pair("end_turn", ""), std::pair("stop_sequence", "")}) {
    INFO(stop_reason);
    Heard heard;
    const auto response = Answer({kStart, text, Stop(0), End(stop_reason), kMessageStop}, heard);
    REQUIRE(response);
    CHECK(response->truncated == truncated);
  }
}

TEST_CASE("Anthropic response: pings and empty pieces are no progress", "[anthropic]") {
  Heard heard;
  AnthropicResponse response(heard, {});
  const auto progresses = [&](const std::string& event) {
    response.TakeEvent(event);
    return response.TakeProgress();
  };
  CHECK_FALSE(progresses(R"({"type":"ping"})"));
  CHECK_FALSE(progresses(Begin(0, R"({"type":"text","text":""})")));
  CHECK_FALSE(progresses(Delta(0, R"({"type":"text_delta","text":""})")));
  CHECK(progresses(Delta(0, R"({"type":"text_delta","text":"x"})")));
  CHECK_FALSE(response.TakeProgress());
  CHECK_FALSE(progresses(R"({"type":"not_known_yet","text":"x"})"));
  CHECK(progresses(End("end_turn")));
  CHECK_FALSE(progresses(End("end_turn")));
}

TEST_CASE("Anthropic response: half of a call is never returned", "[anthropic]") {
  CHECK(Outcome({kStart, Begin(0, kTool), Delta(0, kHalf)}) == "provider_protocol retryable");
  CHECK(Outcome({kStart, Begin(0, kTool), Delta(0, kHalf), kMessageStop}) == "provider_protocol");
  CHECK(Outcome({kStart, Begin(0, kTool), Delta(0, kHalf), End("tool_use"), kMessageStop}) == "provider_protocol");
  CHECK(Outcome({kStart, Begin(0, kTool), Delta(0, kHalf), Stop(0), End("max_tokens")}) == "provider_output_limit");
  CHECK(Outcome({kStart, Begin(0, kTool), Delta(0, kHalf), End("model_context_window_exceeded")}) ==
        "provider_output_limit");
  // The model's own mistake, which the agent reports to it.
  CHECK(Outcome({kStart, Begin(0, kTool), Delta(0, kHalf), Stop(0), End("tool_use")}) == "ok ");
}

TEST_CASE("Anthropic response: nonsense is a protocol error", "[anthropic]") {
  for (const char* event :
       {"{nonsense", "[1]", "{}", R"({"choices":[]})", R"({"type":7})", R"({"type":"content_block_start","index":0})",
        R"({"type":"content_block_start","index":0,"content_block":null})",
        R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}})"}) {
    INFO(event);
    CHECK(Outcome({kStart, event, End("end_turn")}) == "provider_protocol");
  }
  const std::string text = Begin(0, R"({"type":"text","text":""})");
  CHECK(Outcome({text, Stop(0), Delta(0, R"({"type":"text_delta","text":"x"})"), End("end_turn")}) ==
        "provider_protocol");
  CHECK(Outcome({text, R"({"type":"content_block_delta","index":0,"delta":null})", End("end_turn")}) ==
        "provider_protocol retryable");
}

TEST_CASE("Anthropic response: errors inside the stream", "[anthropic]") {
  CHECK(Outcome({kStart, R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})"}) ==
        "provider_overloaded retryable");
  CHECK(Outcome({R"({"type":"error","error":{"type":"api_error","message":"m"}})"}) == "provider_error retryable");
  CHECK(Outcome({R"({"type":"error","error":{"type":"invalid_request_error","message":"m"}})"}) ==
        "provider_bad_request");
  CHECK(Outcome({R"({"error":"plain words"})"}) == "provider_error retryable");
}

TEST_CASE("Anthropic response: limits", "[anthropic]") {
  std::vector<std::string> blocks{kStart};
  for (std::size_t i = 0; i <= AnthropicResponse::kMaxBlocks; ++i) {
    blocks.push_back(Begin(static_cast<int>(i), R"({"type":"text","text":""})"));
  }
  CHECK(Outcome(blocks) == "provider_protocol");
  const std::string signature =
      Delta(0, R"({"type":"signature_delta","signature":")" + std::string(1 << 20, 's') + R"("})");
  std::vector<std::string> endless{kStart, Begin(0, R"({"type":"thinking","thinking":""})")};
  endless.resize(endless.size() + 9, signature);
  CHECK(Outcome(endless) == "response_too_large");
  // Thinking, text and calls together.
  const std::string thought =
      Delta(0, R"({"type":"thinking_delta","thinking":")" + std::string(3 << 20, 't') + R"("})");
  const std::string said = Delta(1, R"({"type":"text_delta","text":")" + std::string(3 << 20, 't') + R"("})");
  const std::string argument =
      Delta(2, R"({"type":"input_json_delta","partial_json":")" + std::string(3 << 20, 't') + R"("})");
  CHECK(Outcome({kStart, Begin(0, R"({"type":"thinking","thinking":""})"), thought, Stop(0),
                 Begin(1, R"({"type":"text","text":""})"), said, Stop(1), Begin(2, kTool), argument}) ==
        "response_too_large");
}

TEST_CASE("Anthropic response: thinking without a signature is kept unchanged", "[anthropic]") {
  Heard heard;
  const auto response = Answer({Begin(0, R"({"type":"thinking","thinking":"hm"})"), Stop(0),
                                Begin(1, R"({"type":"text","text":"x"})"), Stop(1), End("end_turn")},
                               heard);
  REQUIRE(response);
  CHECK(heard.thinking == "hm");
  CHECK(response->extras ==
        R"({"provider_extras":{"claude":{"blocks":[{"type":"thinking","thinking":"hm"},{"type":"text","bytes":1}]}}})");
}

TEST_CASE("Anthropic response: a server that does not stream", "[anthropic]") {
  Heard heard;
  AnthropicResponse response(heard, {.provider = "claude"});
  response.TakeDocument(R"({"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"S"},
    {"type":"text","text":"x"},{"type":"tool_use","id":"1","name":"echo","input":{"a":1}}],
    "stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}})");
  const auto taken = response.Take();
  REQUIRE(taken);
  CHECK(heard.text == "x");
  CHECK(taken->tool_calls == std::vector<ToolCall>{{"1", "echo", R"({"a":1})"}});
  CHECK(taken->usage == TokenUsage{3, 4});
  CHECK(taken->extras.find(R"("signature":"S")") != std::string::npos);
}

const std::string kSearch = R"({"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}})";
const std::string kQuery = R"({"type":"input_json_delta","partial_json":"{\"query\": \"cats\"}"})";
const std::string kFound =
    R"({"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result",)"
    R"("url":"https://a.example/","title":"A","encrypted_content":"x+/=","page_age":null}]})";
const std::string kCitation =
    R"({"type":"web_search_result_location","url":"https://a.example/","title":"A","encrypted_index":"i","cited_text":"c"})";

std::vector<std::string> Searching(const std::vector<std::string>& rest) {
  std::vector<std::string> events{kStart, Begin(0, kSearch), Delta(0, kQuery), Stop(0), Begin(1, kFound), Stop(1)};
  events.insert(events.end(), rest.begin(), rest.end());
  return events;
}

TEST_CASE("Anthropic response: a web search is told, and kept unchanged", "[anthropic]") {
  Heard heard;
  const auto response = Answer(
      Searching(
          {Begin(2, R"({"type":"text","text":"\u00e9 "})"), Stop(2), Begin(3, R"({"type":"text","text":""})"),
           Delta(3, R"({"type":"text_delta","text":"cats"})"),
           Delta(3, R"({"type":"citations_delta","citation":)" + kCitation + "}"), Stop(3),
           R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"server_tool_use":{"web_search_requests":1}}})",
           kMessageStop}),
      heard);
  REQUIRE(response);
  REQUIRE(response->searches.size() == 1);
  CHECK(response->searches[0] == event::WebSearch{"cats", {{"https://a.example/", "A"}}});
  CHECK(response->citations == std::vector<Citation>{{{"https://a.example/", "A"}, 2, 6}});
  CHECK(response->usage.web_searches == 1);
  CHECK_FALSE(response->pauses);
  const Message message{.role = Role::kAssistant, .content = heard.text, .extras = response->extras};
  const auto blocks = BlocksOf(message, "claude");
  REQUIRE(blocks.size() == 4);
  CHECK(blocks[0].json ==
        R"({"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"cats"}})");
  CHECK(blocks[1].json == kFound);
  CHECK((blocks[0].own_call == "srvtoolu_1" && blocks[1].own_result == "srvtoolu_1"));
  CHECK((blocks[2].json.empty() && blocks[3].json == "[" + kCitation + "]"));
  CHECK(HasOwnCalls(message, "claude"));
  CHECK_FALSE(HasOwnCalls(message, "other"));
}

TEST_CASE("Anthropic response: a pause is one only with a call of the provider", "[anthropic]") {
  Heard heard;
  const auto paused = Answer(Searching({End("pause_turn"), kMessageStop}), heard);
  REQUIRE(paused);
  CHECK((paused->pauses && paused->truncated == "pause"));
  CHECK(Outcome({kStart, End("pause_turn"), kMessageStop}) == "provider_protocol retryable");
  CHECK(Outcome(Searching({End("end_turn"), kMessageStop})) == "provider_protocol retryable");
  CHECK(Outcome(Searching({})) == "provider_protocol retryable");
  CHECK(Outcome({kStart, Begin(0, kSearch), Delta(0, kQuery)}) == "provider_protocol retryable");
}

TEST_CASE("Anthropic response: whatever a search returns, the answer stands", "[anthropic]") {
  for (const char* content : {"null", "7", "[]", "[7, null, {}, [[]]]", R"({"type":"web_search_tool_result_error"})",
                              R"([{"url":7,"title":{}}])", R"("text")"}) {
    INFO(content);
    Heard heard;
    const auto response = Answer({kStart,
                                  Begin(0, R"({"type":"web_search_tool_result","tool_use_id":"srvtoolu_9","content":)" +
                                               std::string(content) + "}"),
                                  Begin(1, R"({"type":"text","text":"ok"})"), End("end_turn"), kMessageStop},
                                 heard);
    REQUIRE(response);
    REQUIRE(response->searches.size() == 1);
    CHECK(response->searches[0].results.empty());
  }
}

}  // namespace
}  // namespace reprise::anthropic_response_test
