// How an answer may end, at each of the three interfaces: what was said x what came then.
#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
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
  void OnRefusal(std::string_view delta) override { text += "[refuses: " + std::string(delta) + "]"; }
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

// A call of `f` as each interface begins and ends it; `arguments` are JSON.
std::string ChatCall(std::string_view arguments, int index = 0) {
  const std::string at = std::to_string(index);
  return Delta(R"({"tool_calls":[{"index":)" + at + R"(,"id":"c)" + at + R"(","function":{"name":"f","arguments":)" +
               std::string(arguments) + "}}]}");
}
std::string BlockStart(std::string_view block, int index = 0) {
  return Event(R"({"type":"content_block_start","index":)" + std::to_string(index) + R"(,"content_block":)" +
               std::string(block) + "}");
}
std::string UseWith(std::string_view input) {
  return R"({"type":"tool_use","id":"c","name":"f","input":)" + std::string(input) + "}";
}
std::string Piece(std::string_view json, int index = 0) {
  return Event(R"({"type":"content_block_delta","index":)" + std::to_string(index) +
               R"(,"delta":{"type":"input_json_delta","partial_json":)" + std::string(json) + "}}");
}
const std::string kBlockEnd = Event(R"({"type":"content_block_stop","index":0})");
const std::string kEmptyBlock = BlockStart(UseWith("{}"));
std::string CallJson(std::string_view arguments, std::string_view status, std::string_view id = "i") {
  return R"({"type":"function_call","id":")" + std::string(id) + R"(","call_id":"c)" + std::string(id) +
         R"(","name":"f","arguments":)" + std::string(arguments) + R"(,"status":")" + std::string(status) + "\"}";
}
std::string ItemDone(std::string_view item, int index = 0) {
  return Event(R"({"type":"response.output_item.done","output_index":)" + std::to_string(index) + R"(,"item":)" +
               std::string(item) + "}");
}
std::string ItemAdded(std::string_view item, int index = 0) {
  return Event(R"({"type":"response.output_item.added","output_index":)" + std::to_string(index) + R"(,"item":)" +
               std::string(item) + "}");
}
std::string Incomplete(std::string_view reason, std::string_view output = "") {
  return R"("output":[)" + std::string(output) + R"(],"incomplete_details":{"reason":")" + std::string(reason) + "\"}";
}
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

// Calls that may be cut off: none runs.
std::vector<Row> CutCalls() {
  const std::string whole = R"("{\"a\":1}")", limit = "provider_output_limit", filter = "provider_bad_request";
  std::vector<Row> rows{
      {C, ChatCall(R"("")", 0) + ChatCall(whole, 1) + Finish("length"), limit},
      {C, ChatCall(whole, 0) + ChatCall(R"("")", 1) + Finish("length"), limit},
      {C, ChatCall(R"("")") + Finish("model_length"), limit},
      {C, ChatCall(R"("7")") + Finish("length"), limit},
      {C, ChatCall(R"("")") + kDone, "provider_protocol"},
      {C, kCall + Finish("content_filter"), filter},
      {M, kStart + kEmptyBlock + Event(R"({"type":"message_stop"})"), "provider_protocol"},
      {M, kStart + kEmptyBlock + Stop("tool_use"), "provider_protocol"},
      {M, kStart + kEmptyBlock + Stop("end_turn"), "provider_protocol"},
      {M, kStart + kCallBlock + BlockStart(UseWith("{}"), 1) + Stop("max_tokens"), limit},
      {M, kStart + kCallBlock + Stop("refusal"), filter},
      {R, ItemDone(CallJson(R"("")", "incomplete")) + End("completed"), kCut},
      {R, ItemDone(CallJson(R"("{}")", "incomplete")) + End("completed"), kCut},
      {R, ItemDone(CallJson(R"("{}")", "in_progress")) + End("completed"), kCut},
      {R,
       ItemDone(CallJson(R"("{}")", "completed")) + ItemDone(CallJson(R"("")", "incomplete", "j"), 1) +
           End("incomplete", Incomplete("max_output_tokens")),
       limit},
      {R, ItemDone(CallJson(R"("")", "completed")) + End("incomplete", Incomplete("max_output_tokens")), limit},
      {R, End("incomplete", Incomplete("max_output_tokens", CallJson(R"("")", "incomplete"))), limit},
      {R, End("incomplete", Incomplete("content_filter", CallJson(R"("")", "incomplete"))), filter},
      {R, kCallItem + End("incomplete", Incomplete("content_filter")), filter},
      {R, kCallItem + End("completed", Incomplete("sunset")), kCut},
      {R,
       Event(R"({"type":"response.function_call_arguments.done","output_index":1,"arguments":"{}"})") + kTextItem +
           End("completed"),
       kCut},
  };
  for (const std::string& ended : {std::string(), kBlockEnd}) {
    for (const auto& [reason, ending] :
         {std::pair("max_tokens", limit), std::pair("model_context_window_exceeded", limit),
          std::pair("refusal", filter), std::pair("pause_turn", std::string("provider_protocol"))}) {
      rows.push_back({M, kStart + kEmptyBlock + ended + Stop(reason), ending});
      rows.push_back({M, kStart + kEmptyBlock + Piece(R"("")") + ended + Stop(reason), ending});
    }
  }
  return rows;
}

// Arguments of another form: they are taken, or the answer fails.
const std::string kCalls = "||f{\"a\":1}";
struct Form {
  Kind kind;
  std::string bytes, said;  // empty: it fails
};
std::vector<Form> Forms() {
  const std::string empty = R"("")", whole = R"("{\"a\":1}")", completed = "completed";
  const std::string done = Event(
      R"({"type":"response.function_call_arguments.done","output_index":0,"item_id":"i","arguments":)" + whole + "}");
  const std::string added = ItemAdded(CallJson(empty, "in_progress"));
  std::vector<Form> forms{
      {C, ChatCall(R"({"a":1})") + Finish("tool_calls"), kCalls},
      {M, kStart + BlockStart(UseWith(whole)) + kBlockEnd + Stop("tool_use"), kCalls},
      {M, kStart + BlockStart(UseWith(R"({"a":1})")) + kBlockEnd + Stop("tool_use"), kCalls},
      {M, kStart + BlockStart(UseWith(R"({"a":1})")) + Piece(whole) + kBlockEnd + Stop("tool_use"), kCalls},
      {M, kStart + BlockStart(UseWith(R"({"a":1})")) + Piece(R"("{}")") + kBlockEnd + Stop("tool_use"), kCalls},
      {M, kStart + kEmptyBlock + Piece(R"({"a":1})") + kBlockEnd + Stop("tool_use"), kCalls},
      {R, ItemDone(CallJson(R"({"a":1})", completed)) + End(completed), kCalls},
      {R, added + done + ItemDone(CallJson(empty, completed)) + End(completed), kCalls},
      {R, added + done + ItemDone(CallJson(R"("{}")", completed)) + End(completed), kCalls},
      {R, added + done + End(completed, R"("output":[)" + CallJson(empty, completed) + "]"), kCalls},
      {R,
       kHalfItem + Event(R"({"type":"response.function_call_arguments.delta","output_index":0,"delta":"1}"})") +
           ItemDone(CallJson("null", completed)) + End(completed),
       kCalls},
      // none at all, as for a tool without parameters
      {C, Delta(R"({"tool_calls":[{"index":0,"id":"c","function":{"name":"f"}}]})") + Finish("tool_calls"), "||f"},
      {M, kStart + kEmptyBlock + kBlockEnd + Stop("tool_use"), "||f"},
      {M, kStart + kEmptyBlock + Piece(empty) + kBlockEnd + Stop("tool_use"), "||f"},
      {M, R"({"type":"message","content":[)" + UseWith("{}") + R"(],"stop_reason":"tool_use"})", "||f"},
      {R, ItemDone(CallJson(empty, completed)) + End(completed), "||f"},
  };
  for (const char* none : {R"("")", "null", "[]"}) {
    forms.push_back({C, ChatCall(none) + Finish("tool_calls"), "||f"});
    forms.push_back({C, ChatCall(none) + Finish("stop"), "||f"});
  }
  for (const char* other : {R"(["a=1"])", "7", "true", "1.5"}) {
    forms.push_back({C, ChatCall(other) + Finish("tool_calls"), ""});
    forms.push_back({M, kStart + BlockStart(UseWith(other)) + kBlockEnd + Stop("tool_use"), ""});
    forms.push_back({M, kStart + kEmptyBlock + Piece(other) + kBlockEnd + Stop("tool_use"), ""});
    forms.push_back({R, ItemDone(CallJson(other, completed)) + End(completed), ""});
    forms.push_back({R,
                     Event(R"({"type":"response.function_call_arguments.delta","output_index":0,"delta":)" +
                           std::string(other) + "}") +
                         ItemDone(CallJson(empty, completed)) + End(completed),
                     ""});
  }
  return forms;
}

// Ends that are not understood, or that contradict each other.
std::vector<Row> StrangeEnds() {
  const auto finish = [](std::string_view reason) {
    return Event(R"({"choices":[{"index":0,"delta":{},"finish_reason":)" + std::string(reason) + "}]}");
  };
  const auto stop = [](std::string_view members) {
    return kStart + kTextBlock + Event(R"({"type":"message_delta",)" + std::string(members) + "}") +
           Event(R"({"type":"message_stop"})");
  };
  const auto completed = [](std::string_view response) {
    return kTextItem + Event(R"({"type":"response.completed","response":)" + std::string(response) + "}");
  };
  const std::string half =
      R"({"type":"message","id":"m","status":"incomplete","content":[{"type":"output_text","text":"hi"}]})";
  return {
      {C, kText + finish("2") + kDone, "truncated 2"},
      {C, kText + finish(R"({"reason":"error"})") + kDone, R"(truncated {"reason":"error"})"},
      {C, kText + finish(R"(["length"])") + kDone, R"(truncated ["length"])"},
      {C, kCall + finish("2") + kDone, kCut},
      {C, kText + finish("null") + finish("[]") + kDone, "whole"},
      {C, kText + Finish("length") + Finish("stop") + kDone, "truncated length"},
      {C, kText + Finish("stop") + Finish("length") + kDone, "truncated length"},
      {C, kText + Finish("length") + Finish("content_filter") + kDone, "truncated content_filter"},
      {C, kText + Finish("error") + Finish("stop") + kDone, kFailed},
      {C, kHalfCall + Finish("length") + Finish("tool_calls"), "provider_output_limit"},
      {M, stop(R"("delta":{"stop_reason":3})"), "truncated 3"},
      {M, stop(R"("stop_reason":"max_tokens")"), "truncated length"},
      {M, stop(R"("delta":{"stop_reason":"end_turn"},"stop_reason":"max_tokens")"), "truncated length"},
      {M,
       kStart + kTextBlock + Event(R"({"type":"message_delta","delta":{"stop_reason":"max_tokens"}})") +
           Stop("end_turn"),
       "truncated length"},
      {M,
       kStart + kCallBlock + Event(R"({"type":"message_delta","delta":{"stop_reason":"refusal"}})") + Stop("tool_use"),
       "provider_bad_request"},
      {R, kTextItem + End("completed", Incomplete("max_output_tokens")), "truncated length"},
      {R, kTextItem + End("completed", R"("incomplete_details":"sunset")"), "truncated sunset"},
      {R, kTextItem + End("completed", R"("incomplete_details":{"reason":null})"), "whole"},
      {R, completed("null"), "provider_protocol"},
      {R, completed(R"("ok")"), "provider_protocol"},
      {R, completed(R"({"status":5})"), "truncated 5"},
      {R, completed(R"({"status":"failed"})"), kFailed},
      {R, kTextItem + Event(R"({"type":"response.incomplete","response":{"status":"completed"}})"),
       "truncated incomplete"},
      {R, kTextItem + Event(R"({"type":"response.failed","response":{"status":"completed"}})"), kFailed},
      {R, kTextItem + ItemDone(half) + End("completed"), "truncated incomplete"},
  };
}

// Errors that stand where none is expected.
std::vector<Row> HiddenErrors() {
  const std::string gone = R"("error":{"message":"gone"})", page = "<html><body>502 Bad Gateway</body></html>";
  return {
      {C, kText + Delta("{" + gone + "}") + kDone, kFailed},
      {C, kText + Delta(R"({"content":"x",)" + gone + "}") + Finish("stop"), kFailed},
      {C, R"({"choices":[{"message":{"content":"hi",)" + gone + R"(},"finish_reason":"stop"}]})", kFailed},
      {C, kText + Delta(R"({"error":null})") + kDone, "whole"},
      {C, kText + Event(R"({"choices":[null]})") + kDone, "provider_protocol"},
      {C, kText + Event(R"({"choices":[5]})") + kDone, "provider_protocol"},
      {M, kStart + kTextBlock + Event(R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},)" + gone + "}"),
       kFailed},
      {M, kStart + kTextBlock + Event(R"({"type":"message_delta","delta":{)" + gone + "}}") + Stop("end_turn"),
       kFailed},
      {M, kStart + kTextBlock + Event(R"({"type":"message_stop",)" + gone + "}"), kFailed},
      {R,
       kTextItem + Event(R"({"type":"response.output_text.delta","output_index":0,"delta":"x",)" + gone + "}") +
           End("completed"),
       kFailed},
      {C, kText + Event(page) + kDone, kCut},
      {C, kText + page + "\n\n" + kDone, kCut},
      {M, kStart + kTextBlock + page + "\n\n" + Stop("end_turn"), kCut},
      {R, kTextItem + page + "\n\n" + End("completed"), kCut},
      {C, "gone", kFailed},
      {M, "gone away", kFailed},
      {R, "\ngone\n", kFailed},
      {C, "service unavailable", "provider_overloaded retryable"},
      {C, std::string("\1\2\3", 3), kCut},
      {C, ": a comment\n\n", kCut},
  };
}

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
  std::vector<Row> rows = Rows();
  for (const auto& more : {CutCalls(), StrangeEnds(), HiddenErrors()})
    rows.insert(rows.end(), more.begin(), more.end());
  CHECK(rows.size() >= 160);
  for (const Row& row : rows) {
    INFO(row.bytes);
    const Outcome outcome = Read(row.kind, row.bytes);
    CHECK(outcome.ending == row.ending);
    if (row.ending == kFailed && row.bytes.find("gone") != std::string::npos) {
      CHECK(outcome.message.find("gone") != std::string::npos);
    }
  }
}

TEST_CASE("Endings: arguments of another form are taken, or the answer fails", "[model]") {
  for (const Form& form : Forms()) {
    INFO(form.bytes);
    const Outcome outcome = Read(form.kind, form.bytes);
    CHECK(outcome.ending == (form.said.empty() ? "provider_protocol" : "whole"));
    if (!form.said.empty()) CHECK(outcome.said == form.said);
  }
}

TEST_CASE("Endings: nothing that was sent is lost", "[model]") {
  const std::string first = CallJson(R"("{}")", "completed"), second = CallJson(R"("{}")", "completed", "j");
  const std::string both = "||f{}f{}";
  const auto said = [](const std::string& events) { return Read(R, events).said; };
  const auto output = [](const std::string& items) { return End("completed", R"("output":[)" + items + "]"); };
  CHECK(said(ItemDone(first) + ItemDone(second) + End("completed")) == both);
  CHECK(said(ItemAdded(first) + ItemDone(first) + ItemAdded(second) + ItemDone(second) + output("")) == both);
  CHECK(said(ItemAdded(first) + ItemAdded(second) + ItemDone(first) + ItemDone(second) + output("")) == both);
  CHECK(said(ItemDone(first) + ItemDone(second) + output(first + "," + second)) == both);
  CHECK(said(ItemDone(first) + output(first + "," + second)) == both);
  CHECK(said(ItemDone(first) + ItemDone(first) + output(first)) == "||f{}");
  // All have one id, or other ids in the whole response.
  const std::string same = R"({"type":"function_call","id":"x","call_id":"d","name":"f","arguments":"{}"})";
  const std::string third = R"({"type":"function_call","id":"x","call_id":"e","name":"f","arguments":"{}"})";
  CHECK(said(ItemDone(same, 0) + ItemDone(third, 1) + output(same + "," + third)) == both);
  CHECK(said(ItemDone(same, 0) + ItemDone(third, 0) + output(same + "," + third)) == both);
  CHECK(said(ItemDone(R"({"type":"reasoning","id":"r"})") + ItemDone(first, 1) + output(second)) == "||f{}");
  const auto text = [](std::string_view words, std::string_view id = "m") {
    return R"({"type":"message","id":")" + std::string(id) + R"(","content":[{"type":"output_text","text":")" +
           std::string(words) + "\"}]}";
  };
  const std::string done = Event(R"({"type":"response.output_text.done","output_index":0,"text":"hi there"})");
  CHECK(said(kTextItem + ItemDone(text("hi there")) + End("completed")) == "|hi there|");
  CHECK(said(kTextItem + done + End("completed")) == "|hi there|");
  CHECK(said(kTextItem + done + ItemDone(text("hi there")) + output(text("hi there"))) == "|hi there|");
  CHECK(said(done + ItemDone(text("hi there")) + End("completed")) == "|hi there|");
  CHECK(said(kTextItem + ItemDone(text("hi")) + ItemDone(text(" you", "n")) + End("completed")) == "|hi you|");
  CHECK(Read(R, kTextItem + ItemDone(text("something else")) + End("completed")).ending == "provider_protocol");
  // Blocks of Anthropic's protocol that are not known.
  for (const char* block : {R"({"type":"output_text","text":""})", R"({"type":"new"})", R"({"type":"text"})"}) {
    CHECK(Read(M, kStart + Block(0, block, R"({"type":"text_delta","text":"hi"})") + Stop("end_turn")).said == "|hi|");
  }
  CHECK(Read(M, kStart + BlockStart(R"({"type":"output_text","text":"hi"})") + kBlockEnd + Stop("end_turn")).said ==
        "|hi|");
  CHECK(Read(M, kStart + Block(0, UseWith("{}"), R"({"type":"text_delta","text":"hi"})") + Stop("tool_use")).ending ==
        "provider_protocol");
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

TEST_CASE("Endings: a character in two halves, each in its own delta, is one character", "[endings]") {
  const auto chat = [](std::string_view text) { return Delta(R"({"content":")" + std::string(text) + "\"}"); };
  const auto block = [](std::string_view type, std::string_view name, std::string_view text) {
    return Event(R"({"type":"content_block_delta","index":0,"delta":{"type":")" + std::string(type) + R"(",")" +
                 std::string(name) + "\":\"" + std::string(text) + "\"}}");
  };
  const auto item = [](std::string_view type, std::string_view text, int number) {
    return Event(R"({"type":"response.)" + std::string(type) +
                 R"(.delta","output_index":0,"item_id":"m","sequence_number":)" + std::to_string(number) +
                 R"(,"delta":")" + std::string(text) + "\"}");
  };
  const std::string smile = "\xF0\x9F\x98\x80", none = "\xEF\xBF\xBD";
  const std::string begun = BlockStart(R"({"type":"text","text":""})"), end = kBlockEnd + Stop("end_turn");
  const std::string done = Event(R"({"type":"response.completed","response":{"status":"completed","output":[]}})");
  const std::string ping = Event(R"({"type":"ping"})");
  const std::vector<std::tuple<Kind, std::string, std::string>> cases{
      {Kind::kChat, chat(R"(a\ud83d)") + chat(R"(\ude00b)") + Finish("stop"), "|a" + smile + "b|"},
      {Kind::kChat, chat(R"(\ud83d)") + chat(R"(\ude00\ud83d)") + chat(R"(\ude00)") + Finish("stop"),
       "|" + smile + smile + "|"},
      {Kind::kChat, chat(R"(a\ud83d)") + chat("b") + Finish("stop"), "|a" + none + "b|"},
      {Kind::kChat, chat(R"(a\ud83d)") + Finish("stop"), "|a" + none + "|"},
      {Kind::kChat, chat(R"(a\ud83d)") + kDone, "|a" + none + "|"},
      {Kind::kChat, chat(R"(a\\ud83d)") + chat("b") + Finish("stop"), R"(|a\ud83db|)"},
      {Kind::kChat,
       Delta(R"({"reasoning_content":"\ud83d"})") + Delta(R"({"reasoning_content":"\ude00"})") + kText + Finish("stop"),
       smile + "|hi|"},
      {Kind::kChat, ChatCall(R"("{\"a\":\"\ud83d")") + ChatCall(R"("\ude00\"}")") + Finish("tool_calls"),
       "||f{\"a\":\"" + smile + "\"}"},
      {Kind::kChat,
       ChatCall(R"("{\"a\":\"\ud83d")") + ChatCall(R"("{\"b\":1}")", 1) + ChatCall(R"("\ude00\"}")") +
           Finish("tool_calls"),
       "||f{\"a\":\"" + smile + "\"}f{\"b\":1}"},
      {Kind::kMessages,
       kStart + begun + block("text_delta", "text", R"(\ud83d)") + ping + block("text_delta", "text", R"(\ude00)") +
           end,
       "|" + smile + "|"},
      {Kind::kMessages,
       kStart + kEmptyBlock + block("input_json_delta", "partial_json", R"({\"a\":\"\ud83d)") +
           block("input_json_delta", "partial_json", R"(\ude00\"})") + kBlockEnd + Stop("tool_use"),
       "||f{\"a\":\"" + smile + "\"}"},
      {Kind::kMessages, kStart + begun + block("text_delta", "text", R"(a\ud83d)") + end, "|a" + none + "|"},
      {Kind::kResponses, item("output_text", R"(\ud83d)", 1) + item("output_text", R"(\ude00)", 2) + done,
       "|" + smile + "|"},
      {Kind::kResponses, item("output_text", R"(\ud83d)", 1) + done, "|" + none + "|"}};
  for (const auto& [kind, bytes, said] : cases) {
    INFO(bytes);
    const Outcome outcome = Read(kind, bytes);
    CHECK(outcome.ending == "whole");
    CHECK(outcome.said == said);
  }
}

TEST_CASE("Endings: a refusal in the model's words is told as one", "[endings]") {
  const Outcome chat =
      Read(Kind::kChat, Delta(R"({"refusal":"I "})") + Delta(R"({"refusal":"won't"})") + Finish("stop"));
  CHECK(chat.said == "|[refuses: I ][refuses: won't]|");
  CHECK(chat.ending == "truncated refusal");
  const std::string part =
      R"({"type":"message","id":"m","status":"completed","content":[{"type":"refusal","refusal":"No."}]})";
  const std::string done =
      Event(R"({"type":"response.completed","response":{"status":"completed","output":[)" + part + "]}}");
  const std::string delta = Event(R"({"type":"response.refusal.delta","output_index":0,"item_id":"m","delta":"No."})");
  for (const std::string& events : {done, ItemDone(part) + done, delta + ItemDone(part) + done, delta + done}) {
    INFO(events);
    const Outcome outcome = Read(Kind::kResponses, events);
    CHECK(outcome.said == "|[refuses: No.]|");
    CHECK(outcome.ending == "truncated refusal");
  }
}

TEST_CASE("Endings: an answer that was stopped has no HTTP status in its error", "[endings]") {
  const std::vector<std::pair<Kind, std::string>> cases{
      {Kind::kChat, Finish("content_filter")},
      {Kind::kChat, Finish("model_length")},
      {Kind::kChat, Finish("insufficient_system_resource")},
      {Kind::kMessages, kStart + Stop("refusal")},
      {Kind::kMessages, kStart + Stop("model_context_window_exceeded")},
      {Kind::kResponses,
       Event(R"({"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}})")}};
  for (const auto& [kind, bytes] : cases) {
    INFO(bytes);
    const Outcome outcome = Read(kind, bytes);
    CHECK_FALSE(outcome.message.empty());
    CHECK(outcome.message.find("HTTP") == std::string::npos);
  }
}

TEST_CASE("Endings: one event may be as long as an answer", "[endings]") {
  const std::string text(5'000'000, 'z');
  CHECK(Read(Kind::kChat, Delta(R"({"content":")" + text + "\"}") + Finish("stop")).said == "|" + text + "|");
  const Outcome outcome =
      Read(Kind::kChat, Delta(R"({"content":")" + std::string(9 << 20, 'z') + "\"}") + Finish("stop"));
  CHECK(outcome.ending == "response_too_large");
}

}  // namespace
}  // namespace reprise::endings_test
