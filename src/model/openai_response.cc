#include "model/openai_response.h"

#include <utility>

#include "model/event_json.h"
#include "model/provider_error.h"

namespace reprise {
namespace {

using simdjson::dom::element;

Error WrongForm() { return ProtocolError("The model provider sent an event of another form than agreed"); }

}  // namespace

struct OpenAiResponse::Json {
  static void TakeRoot(OpenAiResponse& self, element root);
  static void TakeError(OpenAiResponse& self, element error);
  static void TakeUsage(OpenAiResponse& self, element usage);
  static void TakeChoice(OpenAiResponse& self, element choice);
  static void TakeDelta(OpenAiResponse& self, simdjson::dom::object delta);
  static void TakeContent(OpenAiResponse& self, element content);
  static void TakeToolCalls(OpenAiResponse& self, element calls);
};

bool OpenAiResponse::TakeEvent(std::string_view data) {
  if (data == "[DONE]") {
    done_ = true;
    return false;
  }
  if (data.empty()) return true;
  if (!Parse(data)) Reject(ProtocolError("The model provider sent an event that is not valid JSON"));
  return !failed();
}

void OpenAiResponse::TakeDocument(std::string_view json) {
  if (!Parse(json)) {
    Reject(ProtocolError("The model provider's answer is not valid JSON"));
  } else {
    done_ = done_ || has_text() || !tool_calls_.empty();
  }
}

bool OpenAiResponse::Parse(std::string_view json) {
  const EventJson event(json);
  if (event.valid()) Json::TakeRoot(*this, event.root());
  return event.valid();
}

void OpenAiResponse::Json::TakeRoot(OpenAiResponse& self, element root) {
  for (const auto& [key, value] : simdjson::dom::object(root)) {
    if (key == "choices") {
      if (value.is_null()) continue;
      if (!value.is_array()) return self.Reject(WrongForm());
      for (const element choice : simdjson::dom::array(value)) TakeChoice(self, choice);
    } else if (key == "usage") {
      TakeUsage(self, value);
    } else if (key == "error" && !value.is_null()) {
      TakeError(self, value);
    }
  }
}

void OpenAiResponse::Json::TakeError(OpenAiResponse& self, element error) {
  ProviderFault fault;
  if (error.is_string()) {
    fault.message = StringOr(error, {});
  } else {
    fault.message = StringOr(error["message"], {});
    fault.code = StringOr(error["code"], StringOr(error["type"], {}));
    if (const auto status = IntegerOr(error["code"], 0); status != 0) fault.code = std::to_string(status);
  }
  self.Reject(MakeProviderError(fault, self.api_key()));
}

void OpenAiResponse::Json::TakeUsage(OpenAiResponse& self, element usage) {
  TokenUsage& tokens = self.response_.usage;
  tokens.input_tokens = IntegerOr(usage["prompt_tokens"], tokens.input_tokens);
  tokens.output_tokens = IntegerOr(usage["completion_tokens"], tokens.output_tokens);
  tokens.cache_read_tokens = IntegerOr(usage["prompt_tokens_details"]["cached_tokens"], tokens.cache_read_tokens);
}

void OpenAiResponse::Json::TakeChoice(OpenAiResponse& self, element choice) {
  if (!choice.is_object() || IntegerOr(choice["index"], 0) != 0) return;
  for (const auto& [key, value] : simdjson::dom::object(choice)) {
    if (key == "delta" || key == "message") {
      if (value.is_object()) TakeDelta(self, simdjson::dom::object(value));
      if (!value.is_object() && !value.is_null()) self.Reject(WrongForm());
    } else if (key == "finish_reason") {
      if (value.is_string()) self.finish_reason_ = StringOr(value, {});
    }
  }
}

void OpenAiResponse::Json::TakeDelta(OpenAiResponse& self, simdjson::dom::object delta) {
  bool has_thinking = false;  // some send both names with the same text
  for (const auto& [key, value] : delta) {
    if (key == "content") {
      TakeContent(self, value);
    } else if (key == "reasoning_content" || key == "reasoning") {
      if (!has_thinking) self.AddThinking(StringOr(value, {}));
      has_thinking = has_thinking || value.is_string();
    } else if (key == "refusal") {
      self.AddText(StringOr(value, {}));
    } else if (key == "tool_calls") {
      TakeToolCalls(self, value);
    }
  }
}

// A text, or parts of which the text parts are taken.
void OpenAiResponse::Json::TakeContent(OpenAiResponse& self, element content) {
  if (content.is_null()) return;
  if (content.is_string()) return self.AddText(StringOr(content, {}));
  if (!content.is_array()) return self.Reject(WrongForm());
  for (const element part : simdjson::dom::array(content)) self.AddText(StringOr(part["text"], {}));
}

void OpenAiResponse::Json::TakeToolCalls(OpenAiResponse& self, element calls) {
  if (calls.is_null()) return;
  if (!calls.is_array()) return self.Reject(WrongForm());
  for (const element call : simdjson::dom::array(calls)) {
    ToolCallDelta delta;
    if (std::int64_t index = 0; call["index"].get(index) == simdjson::SUCCESS) delta.index = index;
    delta.id = StringOr(call["id"], {});
    const auto function = call["function"];
    delta.name = StringOr(function["name"], {});
    // Some send an object where a text is agreed.
    std::string object_text;
    if (element arguments; function["arguments"].get(arguments) == simdjson::SUCCESS) {
      if (arguments.is_object()) object_text = simdjson::minify(arguments);
      delta.arguments = arguments.is_object() ? object_text : StringOr(arguments, {});
    }
    if (!self.tool_calls_.Add(delta)) {
      self.Reject(ProtocolError("The model provider sent more tool calls or longer ones than allowed"));
    }
  }
}

Result<ModelResponse> OpenAiResponse::Take() {
  if (error()) return Fail(*error());
  if (!complete()) return Fail(ProtocolError("The model provider's answer was cut off", /*retryable=*/true));
  if (finish_reason_ == "error") return Fail(MakeProviderError({}, api_key()));
  // Unless the provider says that the model came to its end, arguments may have been cut.
  const bool ended_by_itself =
      finish_reason_ == "tool_calls" || finish_reason_ == "stop" || finish_reason_ == "function_call";
  auto calls = tool_calls_.Take(/*must_be_whole=*/!ended_by_itself);
  if (!calls) return Fail(calls.error());
  response_.tool_calls = *std::move(calls);
  if (finish_reason_ == "content_filter" && !has_text() && response_.tool_calls.empty()) {
    return Fail(MakeProviderError({.status = 400, .message = "stopped by the content filter"}, api_key()));
  }
  return std::move(response_);
}

}  // namespace reprise
