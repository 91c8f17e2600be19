#include "model/openai/openai_response.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "model/event_json.h"
#include "model/openai/kept_members.h"
#include "model/provider_error.h"
#include "model/provider_extras.h"

namespace reprise {
namespace {

using simdjson::dom::element;

Error WrongChunkForm() { return ProtocolError("The model provider sent an event of another form than agreed"); }

// The names of https://platform.openai.com/docs/api-reference/chat/object, and what others say in their place.
std::string_view OpenAiTruncation(std::string_view finish_reason) {
  if (finish_reason == "length" || finish_reason == "max_tokens" || finish_reason == "MAX_TOKENS") return "length";
  if (finish_reason == "model_length") return "context_window";  // Mistral
  if (finish_reason == "content_filter" || finish_reason == "safety" || finish_reason == "SAFETY" ||
      finish_reason == "recitation" || finish_reason == "RECITATION") {
    return "content_filter";
  }
  if (finish_reason == "refusal") return "refusal";
  return {};
}

bool SaysNothing(element value) {
  return value.is_null() || (value.is_string() && StringOr(value, {}).empty()) ||
         (value.is_array() && simdjson::dom::array(value).size() == 0) ||
         (value.is_object() && simdjson::dom::object(value).size() == 0);
}

}  // namespace

struct OpenAiResponse::Json {
  static void TakeRoot(OpenAiResponse& self, element root);
  static void TakeError(OpenAiResponse& self, element error);
  static void TakeUsage(OpenAiResponse& self, element usage);
  static void TakeChoice(OpenAiResponse& self, element choice);
  static void TakeDelta(OpenAiResponse& self, simdjson::dom::object delta);
  static void Keep(OpenAiResponse& self, reprise::Json& members, std::string_view name, element value, bool is_charged);
  static void KeepOfCall(OpenAiResponse& self, element call);
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
  is_document_ = true;
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
      if (!value.is_array()) return self.Reject(WrongChunkForm());
      for (const element choice : simdjson::dom::array(value)) TakeChoice(self, choice);
    } else if (key == "model") {
      if (self.response_.model.empty()) self.response_.model = NameOfModel(value);
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
  tokens.input_tokens = CountOr(usage["prompt_tokens"], tokens.input_tokens);
  tokens.output_tokens = CountOr(usage["completion_tokens"], tokens.output_tokens);
  const auto details = usage["prompt_tokens_details"];
  tokens.cache_read_tokens = CountOr(details["cached_tokens"], tokens.cache_read_tokens);
  tokens.cache_write_tokens = CountOr(details["cache_write_tokens"], tokens.cache_write_tokens);
  // DeepSeek's, and Kimi's.
  for (const char* other : {"prompt_cache_hit_tokens", "cached_tokens"}) {
    if (tokens.cache_read_tokens == 0) tokens.cache_read_tokens = CountOr(usage[other], 0);
  }
}

void OpenAiResponse::Json::TakeChoice(OpenAiResponse& self, element choice) {
  if (!choice.is_object() || IntegerOr(choice["index"], 0) != 0) return;
  for (const auto& [key, value] : simdjson::dom::object(choice)) {
    if (key == "delta" || key == "message") {
      if (value.is_object()) TakeDelta(self, simdjson::dom::object(value));
      if (!value.is_object() && !value.is_null()) self.Reject(WrongChunkForm());
    } else if (key == "finish_reason") {
      const std::string_view reason = StringOr(value, {});
      if (reason.empty() || reason == self.finish_reason_) continue;
      if (self.finish_reason_.empty()) self.Progressed();
      self.finish_reason_ = reason;
    }
  }
}

void OpenAiResponse::Json::TakeDelta(OpenAiResponse& self, simdjson::dom::object delta) {
  bool has_thinking = false;  // some send both names with the same text
  for (const auto& [key, value] : delta) {
    if (key == "content") {
      TakeContent(self, value);
    } else if (key == "reasoning_content" || key == "reasoning") {
      const bool is_charged = value.is_string() && !has_thinking;
      if (is_charged && !self.AddThinking(StringOr(value, {}))) return;
      has_thinking = has_thinking || value.is_string();
      Keep(self, self.members(), key, value, is_charged);
    } else if (key == "refusal") {
      self.AddText(StringOr(value, {}));
    } else if (key == "tool_calls") {
      TakeToolCalls(self, value);
    } else if (!IsKnownMessageMember(key)) {
      Keep(self, self.members(), key, value, /*is_charged=*/false);
    }
  }
}

void OpenAiResponse::Json::Keep(OpenAiResponse& self, reprise::Json& members, std::string_view name, element value,
                                bool is_charged) {
  if (SaysNothing(value)) {
    // Once it is worth knowing: some want it back empty.
    if (value.is_string() && !members.contains(name)) members[std::string(name)] = "";
    return;
  }
  if (!is_charged && !self.HasRoomFor(name.size() + CostOf(value))) return;
  if (self.is_document_) {
    members[std::string(name)] = reprise::ToJson(value);
  } else {
    MergeMember(members, name, value);
  }
}

void OpenAiResponse::Json::KeepOfCall(OpenAiResponse& self, element call) {
  for (const auto& [key, value] : simdjson::dom::object(call)) {
    if (!IsKnownCallMember(key)) Keep(self, self.tool_calls_.members(), key, value, /*is_charged=*/false);
  }
  simdjson::dom::object function;
  if (call["function"].get(function) != simdjson::SUCCESS) return;
  for (const auto& [key, value] : function) {
    if (IsKnownFunctionMember(key) || SaysNothing(value)) continue;
    Keep(self, self.tool_calls_.members()["function"], key, value, /*is_charged=*/false);
  }
}

// A text, or parts of which the text parts are taken.
void OpenAiResponse::Json::TakeContent(OpenAiResponse& self, element content) {
  if (content.is_null()) return;
  if (content.is_string()) return self.AddText(StringOr(content, {}));
  if (!content.is_array()) return self.Reject(WrongChunkForm());
  for (const element part : simdjson::dom::array(content)) self.AddText(StringOr(part["text"], {}));
}

void OpenAiResponse::Json::TakeToolCalls(OpenAiResponse& self, element calls) {
  if (calls.is_null()) return;
  if (!calls.is_array()) return self.Reject(WrongChunkForm());
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
    if (!self.HasRoomFor(delta.id.size() + delta.name.size() + delta.arguments.size())) return;
    if (!self.tool_calls_.Add(delta)) {
      return self.Reject(ProtocolError("The model provider sent more tool calls or longer ones than allowed"));
    }
    if (call.is_object()) KeepOfCall(self, call);
  }
}

Result<ModelResponse> OpenAiResponse::Take() {
  if (error()) return Fail(*error());
  if (!complete()) return Fail(ProtocolError("The model provider's answer was cut off", /*retryable=*/true));
  if (finish_reason_ == "error") return Fail(MakeProviderError({}, api_key()));
  // DeepSeek's word for a model that was stopped because others need its place.
  if (finish_reason_ == "insufficient_system_resource") {
    return Fail(MakeProviderError({.status = 503, .code = finish_reason_}, api_key()));
  }
  const std::string_view truncated = OpenAiTruncation(finish_reason_);
  // Unless the provider says that the model came to its end, arguments may have been cut.
  const bool ended_by_itself =
      finish_reason_ == "tool_calls" || finish_reason_ == "stop" || finish_reason_ == "function_call";
  auto calls = tool_calls_.Take(/*must_be_whole=*/!ended_by_itself, used_call_ids());
  // A last call without arguments may have been cut before its first.
  const bool by_limit = truncated == "length" || truncated == "context_window";
  const bool cut = calls ? !calls->empty() && calls->back().arguments.empty() : tool_calls_.cut_off();
  if (by_limit && cut) {
    return Fail(OutputLimitError("The limit is the provider's own (finish_reason " + finish_reason_ +
                                 "): raise it there, or ask for less at once"));
  }
  if (!calls) return Fail(calls.error());
  response_.tool_calls = *std::move(calls);
  if (finish_reason_ == "content_filter" && !has_text() && response_.tool_calls.empty()) {
    return Fail(MakeProviderError({.status = 400, .message = "stopped by the content filter"}, api_key()));
  }
  response_.extras = TakeExtras();
  response_.truncated = truncated;
  return std::move(response_);
}

reprise::Json& OpenAiResponse::members() {
  if (!members_) members_ = std::make_shared<reprise::Json>(reprise::Json::object());
  return *members_;
}

std::string OpenAiResponse::TakeExtras() {
  reprise::Json kept = reprise::Json::object();
  if (members_ && !members_->empty()) kept["message"] = std::move(*members_);
  if (reprise::Json calls = tool_calls_.TakeMembers(); !calls.empty()) kept["tool_calls"] = std::move(calls);
  return MakeProviderExtras(provider(), std::move(kept));
}

}  // namespace reprise
