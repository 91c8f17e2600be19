// How an answer may end, at each of the three interfaces: what was said x what came then.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "model/anthropic/anthropic_response.h"
#include "model/openai/openai_response.h"
#include "model/provider_response.h"
#include "support/test.h"

namespace reprise::endings_test {
namespace {

constexpr std::string_view kKey = "sk-ending-123456";

struct Heard : ModelStream {
  void OnThinking(std::string_view delta) override { thinking += delta; }
  void OnText(std::string_view delta) override { text += delta; }
  void OnBatchEnd() override {}
  std::string text, thinking;
};

enum class Kind { kChat, kMessages, kResponses };

std::unique_ptr<ProviderResponse> ResponseOf(Kind kind, ModelStream& stream) {
  const ProviderResponse::Source source{.api_key = kKey, .provider = "p"};
  if (kind == Kind::kChat) return std::make_unique<OpenAiResponse>(stream, source);
  if (kind == Kind::kMessages) return std::make_unique<AnthropicResponse>(stream, source);
  return std::make_unique<ResponsesResponse>(stream, source);
}

// "whole", "truncated REASON", or "REASON" of the error with " retryable" behind it; `said`: what was shown and called.
struct Outcome {
  std::string ending, said, message;
  bool operator==(const Outcome&) const = default;
};
Outcome Read(Kind kind, std::string_view bytes, std::string_view type = "text/event-stream") {
  Heard heard;
  ResponseReader reader(ResponseOf(kind, heard), kKey, std::chrono::hours(1));
  reader.OnHead(200, {{"content-type", std::string(type)}});
  if (reader.OnData(bytes)) reader.OnBatchEnd();
  const auto response = reader.Take({});
  Outcome outcome{.ending = "whole", .said = heard.thinking + "|" + heard.text + "|", .message = {}};
  if (response) {
    for (const ToolCall& call : response->tool_calls) outcome.said += call.name + call.arguments;
    if (!response->truncated.empty()) outcome.ending = "truncated " + response->truncated;
  } else {
    outcome.ending = response.error().reason + (response.error().retryable ? " retryable" : "");
    outcome.message = response.error().message;
  }
  return outcome;
}

std::string Event(std::string_view data) { return "data: " + std::string(data) + "\n\n"; }

// --- what was said ---------------------------------------------------------------------------------------------------

std::string Delta(std::string_view delta) {
  return Event(R"({"object":"chat.completion.chunk","choices":[{"index":0,"delta":)" + std::string(delta) + "}]}");
}
std::string Finish(std::string_view reason) {
  return Event(R"({"choices":[{"index":0,"delta":{},"finish_reason":")" + std::string(reason) + "\"}]}");
}
const std::string kDone = Event("[DONE]");
const std::string kText = Delta(R"({"content":"hi"})");
const std::string kThought = Delta(R"({"reasoning_content":"hm"})");
const std::string kCall =
    Delta(R"({"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\":1}"}}]})");
const std::string kHalfCall =
    Delta(R"({"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\":"}}]})");

std::string Block(int index, std::string_view block, std::string_view delta, bool closed = true) {
  const std::string at = std::to_string(index);
  return Event(R"({"type":"content_block_start","index":)" + at + R"(,"content_block":)" + std::string(block) + "}") +
         Event(R"({"type":"content_block_delta","index":)" + at + R"(,"delta":)" + std::string(delta) + "}") +
         (closed ? Event(R"({"type":"content_block_stop","index":)" + at + "}") : "");
}
const std::string kStart = Event(R"({"type":"message_start","message":{"usage":{"input_tokens":1}}})");
const std::string kTextBlock = Block(0, R"({"type":"text","text":""})", R"({"type":"text_delta","text":"hi"})");
const std::string kThoughtBlock =
    Block(0, R"({"type":"thinking","thinking":""})", R"({"type":"thinking_delta","thinking":"hm"})");
const std::string kUse = R"({"type":"tool_use","id":"c","name":"f","input":{}})";
const std::string kCallBlock = Block(0, kUse, R"({"type":"input_json_delta","partial_json":"{\"a\":1}"})");
const std::string kHalfBlock = Block(0, kUse, R"({"type":"input_json_delta","partial_json":"{\"a\":"})", false);
std::string Stop(std::string_view reason) {
  return Event(R"({"type":"message_delta","delta":{"stop_reason":")" + std::string(reason) + "\"}}") +
         Event(R"({"type":"message_stop"})");
}

const std::string kTextItem =
    Event(R"({"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","content":[]}})") +
    Event(R"({"type":"response.output_text.delta","output_index":0,"item_id":"m","delta":"hi"})");
const std::string kThoughtItem =
    Event(R"({"type":"response.reasoning_summary_text.delta","output_index":0,"item_id":"r","delta":"hm"})");
const std::string kHalfItem =
    Event(
        R"({"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"i","name":"f"}})") +
    Event(R"({"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a\":"})");
const std::string kCallItem =
    kHalfItem +
    Event(
        R"({"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"i","call_id":"c",)"
        R"("name":"f","arguments":"{\"a\":1}"}})");
std::string End(std::string_view status, std::string_view more = R"("output":[])") {
  return Event(R"({"type":"response.)" + std::string(status) + R"(","response":{"status":")" + std::string(status) +
               R"(",)" + std::string(more) + "}}");
}

struct Row {
  Kind kind;
  std::string bytes, ending;
};
constexpr Kind C = Kind::kChat, M = Kind::kMessages, R = Kind::kResponses;
const std::string kCut = "provider_protocol retryable", kFailed = "provider_error retryable";

std::vector<Row> Rows() {
  return {
      // nothing
      {C, "", kCut},
      {C, kDone, kCut},
      {C, Finish("stop") + kDone, kCut},
      {C, Event(R"({"choices":[{}]})") + kDone, kCut},
      {C, Event(R"({"choices":[]})") + kDone, kCut},
      {C, Event(R"({"choices":null})") + kDone, kCut},
      {C, Delta(R"({"role":"assistant","content":""})") + Finish("stop"), kCut},
      {C, Finish("tool_calls") + kDone, kCut},
      {C, Finish("malformed_function_call") + kDone, kCut},
      {C, Finish("network_error") + kDone, kCut},
      {C, Finish("length") + kDone, "provider_output_limit"},
      {C, Finish("content_filter") + kDone, "provider_bad_request"},
      {C, Event("keep-alive") + kDone, kCut},
      {M, kStart + Stop("end_turn"), kCut},
      {M, kStart + Stop("tool_use"), kCut},
      {M, kStart + Stop("max_tokens"), "provider_output_limit"},
      {M, kStart + Stop("refusal"), "provider_bad_request"},
      {M, Event(R"({"type":"message_stop"})"), kCut},
      {R, End("completed"), kCut},
      {R, Event(R"({"type":"response.completed","response":{}})"), kCut},
      {R, End("incomplete", R"("incomplete_details":{"reason":"max_output_tokens"})"), "provider_output_limit"},
      {R, kDone, kCut},
      // a text, and its end
      {C, kText + Finish("stop") + kDone, "whole"},
      {C, kText + kDone, "whole"},
      {C, kText + Event("[DONE] "), "whole"},
      {C, kText + Finish("STOP"), "whole"},
      {C, kText + Finish("length"), "truncated length"},
      {C, kText + Finish("MAX_TOKENS"), "truncated length"},
      {C, kText + Finish("content_filter"), "truncated content_filter"},
      {C, kText + Finish("malformed_function_call"), "truncated malformed_function_call"},
      {C, kText + Finish("network_error"), "truncated network_error"},
      {C, kText + Finish("abort"), "truncated abort"},
      {C, kText + Finish("error"), kFailed},
      {C, kText + Finish("tool_calls"), kCut},
      {C, kText, kCut},
      {M, kStart + kTextBlock + Stop("end_turn"), "whole"},
      {M, kStart + kTextBlock + Stop("max_tokens"), "truncated length"},
      {M, kStart + kTextBlock + Stop("pause_turn"), "truncated pause"},
      {M, kStart + kTextBlock + Stop("overheated"), "truncated overheated"},
      {M, kStart + kTextBlock + Stop("tool_use"), kCut},
      {M, kStart + kTextBlock, kCut},
      {M, kStart + kTextBlock + kDone, kCut},
      {R, kTextItem + End("completed"), "whole"},
      {R, kTextItem + End("incomplete"), "truncated incomplete"},
      {R, kTextItem + End("incomplete", R"("incomplete_details":null)"), "truncated incomplete"},
      {R, kTextItem + End("incomplete", R"("incomplete_details":{"reason":"max_output_tokens"})"), "truncated length"},
      {R, kTextItem + End("incomplete", R"("incomplete_details":{"reason":"sunset"})"), "truncated sunset"},
      {R, kTextItem + End("failed"), kFailed},
      {R, kTextItem + End("cancelled"), kCut},
      {R, kTextItem + kDone, kCut},
      {R, kTextItem, kCut},
      // only a thought
      {C, kThought + Finish("stop"), "whole"},
      {C, kThought + Finish("length"), "truncated length"},
      {C, kThought, kCut},
      {M, kStart + kThoughtBlock + Stop("end_turn"), "whole"},
      {M, kStart + kThoughtBlock, kCut},
      {R, kThoughtItem + End("completed"), "whole"},
      {R, kThoughtItem, kCut},
      // a call, or half of one
      {C, kCall + Finish("tool_calls"), "whole"},
      {C, kCall + kDone, "whole"},
      {C, kCall + Finish("eos"), "whole"},
      {C, kCall + Finish("abort"), kCut},
      {C, kHalfCall + Finish("length"), "provider_output_limit"},
      {C, kHalfCall + kDone, "provider_protocol"},
      {C, kHalfCall, kCut},
      {M, kStart + kCallBlock + Stop("tool_use"), "whole"},
      {M, kStart + kCallBlock + Stop("overheated"), kCut},
      {M, kStart + kHalfBlock + Stop("max_tokens"), "provider_output_limit"},
      {M, kStart + kHalfBlock, kCut},
      {R, kCallItem + End("completed"), "whole"},
      {R, kHalfItem + End("completed"), kCut},
      {R, kHalfItem + End("incomplete"), "provider_output_limit"},
      {R, kHalfItem, kCut},
      // errors, after half an answer and after an end
      {C, kText + Event(R"({"object":"error","message":"gone"})") + kDone, kFailed},
      {C, kText + Event(R"({"detail":"gone"})") + kDone, kFailed},
      {C, kText + Event(R"({"errors":[{"message":"gone"}]})") + kDone, kFailed},
      {C, kText + Event(R"({"fault":{"faultstring":"gone"}})") + kDone, kFailed},
      {C, kText + Event(R"({"whatever":{"deep":["gone"]}})") + kDone, kFailed},
      {C, kText + Event(R"({"code":500,"msg":"gone"})") + kDone, kFailed},
      {C, kText + Event(R"([{"error":{"message":"gone"}}])") + kDone, kFailed},
      {C, kText + Event(R"("gone")") + kDone, kFailed},
      {C, kText + Event("upstream error") + kDone, kFailed},
      {C, kText + R"({"error":{"message":"gone"}})" + "\n\n" + kDone, kFailed},
      {C, kText + "event: error\ndata: {\"text\":\"gone\"}\n\n" + kDone, kFailed},
      {C, kText + "event: error\ndata: gone\n\n" + kDone, kFailed},
      {C, kText + Finish("stop") + Event(R"({"error":{"message":"gone"}})"), kFailed},
      {C, kText + Event(R"({"choices":[{"index":0,"delta":{},"error":{"message":"gone","code":502}}]})") + kDone,
       kFailed},
      {M, kStart + kTextBlock + Event(R"({"detail":"gone"})") + Stop("end_turn"), kFailed},
      {M, kStart + kTextBlock + "event: error\ndata: gone\n\n" + Stop("end_turn"), kFailed},
      {M, kStart + kTextBlock + Event(R"({"type":"error","error":{"type":"overloaded_error"}})"),
       "provider_overloaded retryable"},
      {R, kTextItem + Event(R"({"object":"error","message":"gone"})") + End("completed"), kFailed},
      {R, kTextItem + Event(R"({"type":"error","message":"gone"})") + End("completed"), kFailed},
      {R, kTextItem + End("completed", R"("error":{"message":"gone"})"), kFailed},
      // and no errors
      {C, Event(R"({"choices":[{"index":0,"delta":{"content":"hi"}}],"error":null})") + kDone, "whole"},
      {C, Event(R"({"choices":[{"index":0,"delta":{"content":"hi"}}],"error":{}})") + kDone, "whole"},
      {C, Event(R"({"choices":[{"index":0,"delta":{"content":"hi"}}],"error":""})") + kDone, "whole"},
      {C, Event(R"({"choices":[{"index":0,"delta":{"content":"hi"}}],"error":{"message":"","code":0}})") + kDone,
       "whole"},
      {C,
       Event(
           R"({"choices":[{"index":0,"delta":{"content":"hi"}}],"base_resp":{"status_code":0,"status_msg":"success"}})") +
           kDone,
       "whole"},
      {C, kText + Event(R"({"type":"ping"})") + Event("keep-alive") + kDone, "whole"},
      {M, kStart + kTextBlock + Event(R"({"type":"ping"})") + Stop("end_turn"), "whole"},
      {R, kTextItem + End("completed", R"("error":null)"), "whole"},
      {R, kTextItem + Event(R"({"type":"response.not_known_yet","text":"x"})") + End("completed"), "whole"},
  };
}

TEST_CASE("Endings: an answer is a success only if it is understood", "[model]") {
  const std::vector<Row> rows = Rows();
  CHECK(rows.size() >= 60);
  for (const Row& row : rows) {
    INFO(row.bytes);
    const Outcome outcome = Read(row.kind, row.bytes);
    CHECK(outcome.ending == row.ending);
    if (row.ending == kFailed && row.bytes.find("gone") != std::string::npos) {
      CHECK(outcome.message.find("gone") != std::string::npos);
    }
  }
}

TEST_CASE("Endings: a stream cut at any byte gives the whole answer or an error", "[model]") {
  const std::vector<std::pair<Kind, std::string>> answers{{C, kThought + kText + kCall + Finish("tool_calls") + kDone},
                                                          {C, kText + Finish("length") + kDone},
                                                          {M, kStart + kCallBlock + Stop("tool_use")},
                                                          {M, kStart + kTextBlock + Stop("max_tokens")},
                                                          {R, kCallItem + End("completed")},
                                                          {R, kTextItem + End("incomplete")}};
  for (const auto& [kind, bytes] : answers) {
    const Outcome whole = Read(kind, bytes);
    for (std::size_t end = 0; end < bytes.size(); ++end) {
      INFO(bytes.substr(0, end));
      const Outcome cut = Read(kind, bytes.substr(0, end));
      CHECK((cut == whole || cut.ending == kCut));
    }
  }
}

// The bytes say what it is, and not its label.
TEST_CASE("Endings: a wrong media type changes nothing", "[model]") {
  const std::string stream = kText + Finish("stop") + kDone;
  const std::string document = R"({"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]})";
  const std::string lines = R"({"choices":[{"index":0,"delta":{"content":"hi"}}]})"
                            "\n"
                            R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})"
                            "\n";
  for (const char* type : {"text/event-stream", "Text/Event-Stream", "application/json", "application/x-ndjson", "x"}) {
    INFO(type);
    for (const std::string& bytes : {stream, document, lines, "\n" + stream, "\xEF\xBB\xBF" + stream}) {
      CHECK(Read(C, bytes, type) == Outcome{"whole", "|hi|", ""});
    }
    CHECK(Read(C, "<html>no</html>", type).ending == "provider_protocol");
  }
}

TEST_CASE("Endings: an error's innermost message is reported", "[model]") {
  struct Words {
    std::string body, words, reason;
  };
  for (
      const auto& [body, words, reason] : std::vector<Words>{
          {R"([{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}])", "slow down",
           "provider_rate_limited retryable"},
          {R"({"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}})", "insufficient balance",
           "provider_rate_limited"},
          {R"({"code":"1113","msg":"quota exhausted"})", "quota exhausted", "provider_rate_limited"},
          {R"({"choices":null,"base_resp":{"status_code":1004,"status_msg":"login fail"}})", "login fail",
           "provider_auth"},
          {R"({"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"{\"error\":{\"message\":\"no room\"}}"}}})",
           "no room", "provider_error retryable"},
          {R"({"message":"{\"error\":{\"message\":\"deep\"}}"})", "deep", "provider_error retryable"},
          {R"({"success":false,"result":"went wrong"})", "went wrong", "provider_error retryable"}}) {
    INFO(body);
    for (const Kind kind : {C, M, R}) {
      const Outcome outcome = Read(kind, body, "application/json");
      CHECK(outcome.ending == reason);
      CHECK(outcome.message.find(words) != std::string::npos);
    }
  }
}

TEST_CASE("Endings: a streamed answer that is repeated as a whole counts once", "[model]") {
  const std::string whole = R"("message":{"role":"assistant","content":"hi","reasoning_content":"hm","tool_calls":)"
                            R"([{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]})";
  const Outcome expected{"whole", "hm|hi|f{\"a\":1}", ""};
  const std::string streamed = kThought + kText + kCall;
  CHECK(Read(C, streamed + Event(R"({"choices":[{"index":0,"delta":{},)" + whole + R"(,"finish_reason":"stop"}]})")) ==
        expected);
  CHECK(Read(C, streamed + Event(R"({"choices":[{"index":0,)" + whole + R"(,"finish_reason":"stop"}]})")) == expected);
  const auto piece = [](std::string_view arguments) {
    return Delta(R"({"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":")" + std::string(arguments) +
                 "\"}}]}");
  };
  const std::string half = R"({\"a\")", rest = ":1}", all = R"({\"a\":1})";
  for (const std::string& pieces : {piece(half) + piece(rest) + piece(all), piece("{}") + piece(half) + piece(rest),
                                    piece(all) + piece(all), piece("{}") + piece(all), piece("") + piece(all)}) {
    CHECK(Read(C, pieces + Finish("tool_calls")).said == "||f{\"a\":1}");
  }
  CHECK(Read(C, piece(all) + piece(R"({\"a\":2})") + Finish("tool_calls")).said == R"(||f{"a":1}{"a":2})");
  const std::string twice = Event(R"({"choices":[{"index":0,"delta":{"content":"hi"},"message":{"content":"hi"}}]})");
  CHECK(Read(C, twice + kDone).said == "|hi|");
}

TEST_CASE("Endings: older and other forms are read", "[model]") {
  const auto said = [](const std::string& events) { return Read(C, events + kDone).said; };
  CHECK(said(Delta(R"({"function_call":{"name":"f","arguments":"{\"a\""}})") +
             Delta(R"({"function_call":{"arguments":":1}"}})")) == "||f{\"a\":1}");
  CHECK(said(Delta(R"({"audio":{"transcript":"hi"}})")) == "|hi|");
  CHECK(said(Delta(R"({"content":"<thi"})") + Delta(R"({"content":"nk>hm</th"})") + Delta(R"({"content":"ink>\n"})") +
             Delta(R"({"content":"\nhi"})")) == "hm|hi|");
  CHECK(said(Delta(R"({"content":"<thin"})") + Delta(R"({"content":" ice"})")) == "|<thin ice|");
  CHECK(said(Delta(R"({"content":"<th"})")) == "|<th|");
  CHECK(said(Delta(R"({"content":"a <think>b</think>"})")) == "|a <think>b</think>|");
  CHECK(said(Delta(R"({"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]})") + kText) ==
        "hm|hi|");
  CHECK(said(Event(R"({"choices":[{"index":0,"delta":{"content":"NaN"},"logprobs":NaN,"x":-Infinity}]})")) == "|NaN|");
}

TEST_CASE("Endings: items of the Responses API without an index are kept apart", "[model]") {
  const auto added = [](std::string_view item) {
    return Event(R"({"type":"response.output_item.added","item":)" + std::string(item) + "}");
  };
  const auto done = [](std::string_view item) {
    return Event(R"({"type":"response.output_item.done","item":)" + std::string(item) + "}");
  };
  const std::string text = R"({"type":"message","id":"m","content":[{"type":"output_text","text":"hi"}]})";
  const std::string first = R"({"type":"function_call","id":"i","call_id":"c","name":"f","arguments":"{}"})";
  const std::string second = R"({"type":"function_call","id":"j","call_id":"d","name":"g","arguments":"{}"})";
  const std::string plain = R"({"type":"message","content":[{"type":"output_text","text":"hi"}]})";
  const std::string nameless = R"({"type":"function_call","call_id":"c","name":"f","arguments":"{}"})";
  const std::string delta = R"({"type":"response.output_text.delta","delta":"hi")";
  const std::string output = R"("output":[)" + text + "," + first + "," + second + "]";
  CHECK(Read(R, added(text) + Event(delta + R"(,"item_id":"m"})") + done(text) + added(first) + done(first) +
                    added(second) + done(second) + End("completed", output)) == Outcome{"whole", "|hi|f{}g{}", ""});
  CHECK(Read(R, Event(delta + R"(,"item_id":"other"})") + done(text) + done(first) + End("completed", R"("output":[])"))
            .said == "|hi|f{}");
  CHECK(Read(R, added(plain) + Event(delta + "}") + done(plain) + added(nameless) + done(nameless) +
                    End("completed", R"("output":[)" + plain + "," + nameless + "]")) ==
        Outcome{"whole", "|hi|f{}", ""});
}

TEST_CASE("Endings: a large answer may come in one piece", "[model]") {
  const std::string words(100'000, 'x');
  CHECK(Read(C, Delta(R"({"content":")" + words + "\"}") + Finish("stop") + kDone) ==
        Outcome{"whole", "|" + words + "|", ""});
  CHECK(Read(C, R"({"choices":[{"message":{"content":")" + words + R"("},"finish_reason":"stop"}]})") ==
        Outcome{"whole", "|" + words + "|", ""});
  CHECK(Read(C, std::string(100'000, '\n')).ending == "provider_protocol");
}

TEST_CASE("Endings: token counts are read in every place", "[model]") {
  const auto tokens = [](const std::string& events) {
    Heard heard;
    OpenAiResponse response(heard, {});
    for (const std::string& event :
         {std::string(R"({"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]})"), events,
          std::string(R"({"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}})")}) {
      response.TakeEvent(event);
    }
    const auto taken = response.Take();
    REQUIRE(taken);
    return std::pair(taken->usage.input_tokens, taken->usage.output_tokens);
  };
  const auto expected = std::pair<std::int64_t, std::int64_t>(19, 3);
  CHECK(tokens(R"({"choices":[],"usage":{"prompt_tokens":19.0,"completion_tokens":3}})") == expected);
  CHECK(tokens(R"({"choices":[{"index":0,"delta":{},"usage":{"prompt_tokens":19,"completion_tokens":3}}]})") ==
        expected);
  CHECK(tokens(R"({"choices":[],"x_groq":{"usage":{"prompt_tokens":19,"completion_tokens":3}}})") == expected);
}

}  // namespace
}  // namespace reprise::endings_test
