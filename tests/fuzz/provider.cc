// Answers of model providers: server-sent events, a document or an error, of OpenAI's and of Anthropic's kind.

#include <memory>

#include "base/text.h"
#include "fuzz/driver.h"
#include "model/anthropic/anthropic_response.h"
#include "model/openai/openai_response.h"
#include "model/provider_response.h"

namespace reprise::fuzz {
namespace {

constexpr std::string_view kKey = "sk-fuzz-1234567890";

// Collects what a client would be shown.
struct Heard : ModelStream {
  void OnThinking(std::string_view delta) override {
    Expect(IsUtf8(delta), "thinking that is not UTF-8");
    thinking += delta;
  }
  void OnText(std::string_view delta) override {
    Expect(IsUtf8(delta), "text that is not UTF-8");
    text += delta;
  }
  void OnBatchEnd() override {}
  std::string text, thinking;
};

struct Form {
  bool anthropic;
  int status;
  const char* type;
};
// The first byte of an input chooses one.
constexpr Form kForms[] = {{false, 200, "text/event-stream"}, {true, 200, "text/event-stream"},
                           {false, 200, "application/json"},  {true, 200, "application/json"},
                           {false, 400, "application/json"},  {true, 529, "text/html"}};

std::string Outcome(const Form& form, std::string_view bytes, bool cut) {
  Heard heard;
  const ProviderResponse::Source source{.api_key = kKey, .provider = "fuzzed"};
  std::unique_ptr<ProviderResponse> response;
  if (form.anthropic) {
    response = std::make_unique<AnthropicResponse>(heard, source);
  } else {
    response = std::make_unique<OpenAiResponse>(heard, source);
  }
  ResponseReader reader(std::move(response), kKey, std::chrono::hours(1));
  reader.OnHead(form.status, {{"content-type", form.type}, {"retry-after", "1"}});
  if (cut) {
    for (Cutter pieces(bytes); !pieces.done();) {
      if (!reader.OnData(pieces.Next())) break;
      reader.OnBatchEnd();
    }
  } else {
    (void)reader.OnData(bytes);
    reader.OnBatchEnd();
  }
  const auto answer = reader.Take({});
  std::string told = heard.text + "|" + heard.thinking + "|";
  if (!answer) {
    Expect(IsUtf8(answer.error().message), "an error that is not UTF-8");
    Expect(answer.error().message.find(kKey) == std::string::npos, "an error that shows the key");
    return told + answer.error().reason;
  }
  Expect(heard.text.size() + heard.thinking.size() <= 8 * bytes.size() + 64, "more text than was sent");
  Expect(IsUtf8(answer->extras), "extras that are not UTF-8");
  for (const ToolCall& call : answer->tool_calls) {
    Expect(IsUtf8(call.id) && IsUtf8(call.name) && IsUtf8(call.arguments), "a call that is not UTF-8");
    told += call.id + "|" + call.name + "|" + call.arguments + "|";
  }
  told += answer->extras;
  // Removes the random ids of calls that had none.
  for (const ToolCall& call : answer->tool_calls) {
    const bool made = !call.id.empty() && told.find(call.id) != std::string::npos && bytes.find(call.id) == bytes.npos;
    for (std::size_t at; made && (at = told.find(call.id)) != std::string::npos;) told.erase(at, call.id.size());
  }
  return told;
}

void Run(std::string_view input) {
  if (input.empty()) return;
  const Form& form = kForms[static_cast<unsigned char>(input.front()) % std::size(kForms)];
  const std::string_view bytes = input.substr(1);
  Expect(Outcome(form, bytes, false) == Outcome(form, bytes, true),
         "the same bytes are another answer when they are cut");
}

std::string Events(char form, const std::vector<std::string>& events) {
  std::string text(1, form);
  for (const std::string& event : events) text += "data: " + event + "\n\n";
  return text;
}

Target MakeTarget() {
  Target target{.name = "provider", .seeds = {}, .words = {}, .run = Run};
  const std::string message =
      R"({"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hi \u00e9","reasoning_content":"why","refusal":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"echo","arguments":"{\"text\":\"a\"}"},"extra_content":{"google":{"thought_signature":"s"}}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":1}}})";
  target.seeds = {
      Events(
          '\0',
          {R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})",
           R"({"choices":[{"index":0,"delta":{"reasoning_content":"th","reasoning_details":[{"type":"reasoning.text","text":"x"}]}}]})",
           R"({"choices":[{"index":0,"delta":{"content":"Hel\ud83d\ude42"}}]})",
           R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"echo","arguments":""}}]}}]})",
           R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}}]})",
           R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}},{"index":1,"id":"c2","function":{"name":"time","arguments":"{}"}}]}}]})",
           R"({"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]})",
           R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}})", "[DONE]"}),
      Events('\0', {R"({"choices":[{"delta":{"content":"cut"},"finish_reason":"length"}]})", "[DONE]"}),
      Events('\0', {R"({"error":{"message":"overloaded sk-fuzz-1234567890","code":"server_error","type":"x"}})"}),
      Events(
          '\1',
          {R"({"type":"message_start","message":{"usage":{"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":1}}})",
           R"({"type":"ping"})",
           R"({"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}})",
           R"({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}})",
           R"({"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"S1"}})",
           R"({"type":"content_block_stop","index":0})",
           R"({"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"zz"}})",
           R"({"type":"content_block_stop","index":1})",
           R"({"type":"content_block_start","index":2,"content_block":{"type":"text","text":"a"}})",
           R"({"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"\u00e9"}})",
           R"({"type":"content_block_stop","index":2})",
           R"({"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t1","name":"echo","input":{}}})",
           R"({"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}})",
           R"({"type":"content_block_stop","index":3})",
           R"({"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}})",
           R"({"type":"message_stop"})"}),
      Events('\1', {R"({"type":"error","error":{"type":"overloaded_error","message":"no"}})"}),
      std::string(1, '\2') + message,
      std::string(1, '\3') +
          R"({"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"b"},{"type":"text","text":"hi"},{"type":"tool_use","id":"t","name":"n","input":{"a":1}}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}})",
      std::string(1, '\4') + R"({"error":{"message":"bad","type":"invalid_request_error","code":"x"}})",
      std::string(1, '\5') + "<html>503</html>",
      std::string(1, '\0') + ": comment\r\nevent: x\r\nid: 1\r\ndata: {\"choices\":\r\ndata: []}\r\n\r\n\xef\xbb\xbf",
  };
  target.words = {"data: ",
                  "\n\n",
                  "\r\n",
                  "\r",
                  "event: ",
                  ": ping\n",
                  "[DONE]",
                  "{",
                  "}",
                  "[",
                  "]",
                  ",",
                  ":",
                  "\"",
                  "\\u0000",
                  "\\ud83d",
                  "\\ude42",
                  "\xff",
                  "\xc3",
                  "\xf0\x9f",
                  "null",
                  "true",
                  "\"index\":",
                  "\"delta\":",
                  "\"choices\":",
                  "\"tool_calls\":",
                  "\"arguments\":",
                  "\"content\":",
                  "\"finish_reason\":\"stop\"",
                  "\"stop_reason\":\"max_tokens\"",
                  "\"usage\":",
                  "\"type\":\"content_block_start\"",
                  "\"type\":\"content_block_delta\"",
                  "\"type\":\"text_delta\"",
                  "\"error\":",
                  std::string(1, '\0'),
                  "\\",
                  "{\"a\":",
                  "[["};
  return target;
}

}  // namespace
}  // namespace reprise::fuzz

int main(int argc, char** argv) { return reprise::fuzz::Main(argc, argv, reprise::fuzz::MakeTarget()); }
