#include "model/realtime/realtime_response.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "model/event_json.h"
#include "model/provider_error.h"

namespace reprise {

using simdjson::dom::element;

struct RealtimeResponse::Json {
  static void TakeItem(RealtimeResponse& self, element item);
  static void TakeEnd(RealtimeResponse& self, element response);
  static bool IsText(std::string_view type);
  static bool IsSound(std::string_view type);
};

bool RealtimeResponse::Json::IsText(std::string_view type) {
  return type == "response.output_audio_transcript.delta" || type == "response.output_text.delta" ||
         type == "response.audio_transcript.delta" || type == "response.text.delta";
}

bool RealtimeResponse::Json::IsSound(std::string_view type) {
  return type == "response.output_audio.delta" || type == "response.audio.delta";
}

void RealtimeResponse::TakeObject(const EventJson& json, bool is_whole) {
  const element root = json.root();
  const std::string_view type = StringOr(root["type"], {});
  element value;
  if (type == "error") {
    ProviderFault fault = ReadErrorBody(0, json.text());
    if (StringOr(root["error"]["type"], {}) == "invalid_request_error") fault.status = 400;
    Reject(MakeProviderError(fault, api_key()));
  } else if (is_whole || type.empty()) {
    CheckForFailure(json.text(), /*is_known=*/false);
    if (!failed()) Reject(ProtocolError("The model provider sent an event of another form than agreed"));
  } else if (Json::IsText(type)) {
    const std::string_view words = StringOr(root["delta"], {});
    has_words_ = has_words_ || !words.empty();
    AddText(words);
  } else if (Json::IsSound(type)) {
    const auto sound = DecodeBase64(StringOr(root["delta"], {}));
    if (!sound) return Reject(ProtocolError("The model provider sent sound that is no base64"));
    AddSound(*sound);
  } else if (type == "response.function_call_arguments.delta") {
    Progressed();
  } else if (type == "response.output_item.done" && root["item"].get(value) == simdjson::SUCCESS) {
    Json::TakeItem(*this, value);
  } else if (type == "response.done") {
    if (root["response"].get(value) != simdjson::SUCCESS) {
      return Reject(ProtocolError("The model provider sent an event of another form than agreed"));
    }
    Json::TakeEnd(*this, value);
  }  // the others tell of the session, or what is known
}

// Comes twice: at the item's end, and in the whole response.
void RealtimeResponse::Json::TakeItem(RealtimeResponse& self, element item) {
  const std::string_view type = StringOr(item["type"], {});
  if (type == "function_call") {
    const std::string_view id = StringOr(item["call_id"], {});
    const auto arguments = ArgumentsIn(item["arguments"]);
    if (!arguments) return self.Reject(ProtocolError("The model provider sent a call of another form than agreed"));
    if (!self.seen_calls_.insert(std::string(id)).second || !self.HasRoomFor(id.size() + arguments->size())) return;
    const ToolCallDelta call{.index = static_cast<std::int64_t>(self.tool_calls_.size()),
                             .id = id,
                             .name = StringOr(item["name"], {}),
                             .arguments = *arguments};
    if (!self.tool_calls_.Add(call)) self.Reject(TooLargeError());
    return;
  }
  simdjson::dom::array content;
  if (self.has_words_ || item["content"].get(content) != simdjson::SUCCESS) return;
  for (const element part : content) self.AddText(StringOr(part["transcript"], StringOr(part["text"], {})));
}

void RealtimeResponse::Json::TakeEnd(RealtimeResponse& self, element response) {
  self.CheckForFailure(ErrorIn(response["status_details"]), /*is_known=*/true);
  simdjson::dom::array output;
  if (response["output"].get(output) == simdjson::SUCCESS) {
    for (const element item : output) TakeItem(self, item);
  }
  const auto usage = response["usage"];
  RaiseTo(self.usage_.input_tokens, usage["input_tokens"]);
  RaiseTo(self.usage_.output_tokens, usage["output_tokens"]);
  RaiseTo(self.usage_.cache_read_tokens, usage["input_token_details"]["cached_tokens"]);
  self.usage_.cache_read_tokens = std::min(self.usage_.cache_read_tokens, self.usage_.input_tokens);
  self.status_ = OwnWord(StringOr(response["status"], "completed"));
  self.reason_ = OwnWord(StringOr(response["status_details"]["reason"], {}));
}

Result<ModelResponse> RealtimeResponse::Take() {
  if (failed()) return Fail(*error());
  if (!complete()) {
    return Fail(ProtocolError("The model provider's answer ended before it was complete", /*retryable=*/true));
  }
  if (status_ == "failed") return Fail(MakeProviderError({.code = reason_, .message = "the answer failed"}, api_key()));
  std::string truncated = status_ == "completed" ? "" : reason_.empty() ? status_ : reason_;
  if (truncated == "max_output_tokens") truncated = "length";
  ModelResponse response;
  response.tool_calls = TRY(TakeCalls(
      tool_calls_,
      {.by_itself = truncated.empty(), .truncated = truncated, .word = reason_, .setting = "max_output_tokens"}));
  TRY(CheckSaid(!response.tool_calls.empty(), truncated));
  response.usage = usage_;
  response.truncated = std::move(truncated);
  return response;
}

}  // namespace reprise
