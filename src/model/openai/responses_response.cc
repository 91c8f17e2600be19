#include "model/openai/responses_response.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "model/event_json.h"
#include "model/openai/kept_members.h"
#include "model/openai/response_items.h"
#include "model/provider_error.h"
#include "model/provider_extras.h"

namespace reprise {
namespace {

using simdjson::dom::element;

constexpr std::int64_t kMostItems = 1024;

Error WrongEventForm() { return ProtocolError("The model provider sent an event of another form than agreed"); }

std::string_view ResponsesTruncation(std::string_view reason) {
  if (reason == "max_output_tokens") return "length";
  if (reason == "content_filter") return "content_filter";
  return {};
}

}  // namespace

struct ResponsesResponse::Json {
  static void TakeRoot(ResponsesResponse& self, element root);
  static void TakeError(ResponsesResponse& self, element error);
  static void TakeDelta(ResponsesResponse& self, std::string_view type, element root);
  static void TakeItem(ResponsesResponse& self, std::int64_t place, element item);
  static void TakeCall(ResponsesResponse& self, std::int64_t place, element item);
  static void TakeMessage(ResponsesResponse& self, std::int64_t place, element item, reprise::Json& kept);
  static void TakeThinking(ResponsesResponse& self, element item);
  static void TakeEnd(ResponsesResponse& self, element response);
};

bool ResponsesResponse::TakeEvent(std::string_view data) {
  if (data.empty() || data == "[DONE]") return true;
  const EventJson event(data);
  if (event.valid()) {
    Json::TakeRoot(*this, event.root());
  } else {
    Reject(ProtocolError("The model provider sent an event that is not valid JSON"));
  }
  return !failed() && !complete();
}

void ResponsesResponse::TakeDocument(std::string_view json) {
  const EventJson document(json);
  if (!document.valid()) return Reject(ProtocolError("The model provider's answer is not valid JSON"));
  Json::TakeEnd(*this, document.root());
}

void ResponsesResponse::Json::TakeRoot(ResponsesResponse& self, element root) {
  const std::string_view type = StringOr(root["type"], {});
  const std::int64_t place = IntegerOr(root["output_index"], 0);
  element value;
  if (type.ends_with(".delta")) return TakeDelta(self, type, root);
  if (type == "response.output_item.added" && root["item"].get(value) == simdjson::SUCCESS) {
    if (StringOr(value["type"], {}) == "function_call") ++self.open_calls_;
    self.Progressed();
  } else if (type == "response.output_item.done" && root["item"].get(value) == simdjson::SUCCESS) {
    TakeItem(self, place, value);
    if (StringOr(value["type"], {}) == "function_call" && self.open_calls_ > 0) --self.open_calls_;
  } else if (type == "response.completed" || type == "response.incomplete" || type == "response.failed") {
    if (root["response"].get(value) != simdjson::SUCCESS) return self.Reject(WrongEventForm());
    TakeEnd(self, value);
  } else if (type == "error") {
    TakeError(self, root["error"].get(value) == simdjson::SUCCESS ? value : root);
  } else if (type.empty()) {
    if (root["error"].get(value) == simdjson::SUCCESS) return TakeError(self, value);
    self.Reject(WrongEventForm());
  }  // else what tells nothing more, and what is not known yet
}

void ResponsesResponse::Json::TakeError(ResponsesResponse& self, element error) {
  ProviderFault fault{.code = std::string(StringOr(error["code"], StringOr(error["type"], {}))),
                      .message = std::string(StringOr(error["message"], StringOr(error, {})))};
  self.Reject(MakeProviderError(fault, self.api_key()));
}

void ResponsesResponse::Json::TakeDelta(ResponsesResponse& self, std::string_view type, element root) {
  const std::string_view delta = StringOr(root["delta"], {});
  if (type == "response.output_text.delta" || type == "response.refusal.delta") {
    self.text_bytes_[IntegerOr(root["output_index"], 0)] += delta.size();
    self.AddText(delta);
  } else if (type == "response.reasoning_summary_text.delta" || type == "response.reasoning_text.delta") {
    self.has_thinking_ = self.has_thinking_ || !delta.empty();
    self.AddThinking(delta);
  } else if (!delta.empty()) {
    self.Progressed();  // a call's arguments: they come again as a whole
  }
}

void ResponsesResponse::Json::TakeItem(ResponsesResponse& self, std::int64_t place, element item) {
  if (!item.is_object() || place < 0 || place > kMostItems) return self.Reject(WrongEventForm());
  if (self.items_.contains(place)) return;
  const std::string_view type = StringOr(item["type"], {});
  if (!self.HasRoomFor(CostOf(item))) return;
  auto whole = std::make_shared<reprise::Json>(reprise::ToJson(item));
  if (type == "function_call") TakeCall(self, place, item);
  if (type == "reasoning") TakeThinking(self, item);
  auto kept = std::make_shared<reprise::Json>(KeptItem(*whole));
  if (type == "message") TakeMessage(self, place, item, *kept);
  self.items_.emplace(place, std::move(kept));
}

void ResponsesResponse::Json::TakeCall(ResponsesResponse& self, std::int64_t place, element item) {
  std::string object_text;  // some send an object where a text is agreed
  element arguments;
  const bool is_object = item["arguments"].get(arguments) == simdjson::SUCCESS && arguments.is_object();
  if (is_object) object_text = simdjson::minify(arguments);
  const ToolCallDelta call{.index = place,
                           .id = StringOr(item["call_id"], StringOr(item["id"], {})),
                           .name = StringOr(item["name"], {}),
                           .arguments = is_object ? std::string_view(object_text) : StringOr(item["arguments"], {})};
  if (!self.tool_calls_.Add(call)) {
    self.Reject(ProtocolError("The model provider sent more tool calls or longer ones than allowed"));
  }
}

// The text has been streamed, or comes now.
void ResponsesResponse::Json::TakeMessage(ResponsesResponse& self, std::int64_t place, element item,
                                          reprise::Json& kept) {
  simdjson::dom::array content;
  if (item["content"].get(content) != simdjson::SUCCESS) return;
  const auto streamed = self.text_bytes_.find(place);
  if (streamed == self.text_bytes_.end()) {
    for (const element part : content) self.AddText(StringOr(part["text"], StringOr(part["refusal"], {})));
  } else if (kept["content"].size() == 1 && kept["content"][0].contains("bytes")) {
    kept["content"][0]["bytes"] = streamed->second;  // what was shown is what the message has
  }
}

void ResponsesResponse::Json::TakeThinking(ResponsesResponse& self, element item) {
  if (self.has_thinking_) return;
  for (const char* name : {"summary", "content"}) {
    simdjson::dom::array parts;
    if (item[name].get(parts) != simdjson::SUCCESS) continue;
    for (const element part : parts) {
      if (!self.AddThinking(StringOr(part["text"], {}))) return;
    }
  }
}

void ResponsesResponse::Json::TakeEnd(ResponsesResponse& self, element response) {
  const std::string_view status = StringOr(response["status"], {});
  if (element error; response["error"].get(error) == simdjson::SUCCESS && !error.is_null()) {
    return TakeError(self, error);
  }
  if (status == "failed" || status == "cancelled") return self.Reject(MakeProviderError({}, self.api_key()));
  if (simdjson::dom::array output; response["output"].get(output) == simdjson::SUCCESS) {
    std::int64_t place = 0;
    for (const element item : output) {  // those that have not come one by one
      // What was cut off is not one of them.
      if (self.open_calls_ == 0 || StringOr(item["status"], {}) != "incomplete") TakeItem(self, place, item);
      ++place;
    }
  }
  self.model_ = NameOfModel(response["model"]);
  const auto usage = response["usage"];
  self.usage_.input_tokens = CountOr(usage["input_tokens"], 0);
  self.usage_.output_tokens = CountOr(usage["output_tokens"], 0);
  self.usage_.cache_read_tokens = CountOr(usage["input_tokens_details"]["cached_tokens"], 0);
  self.usage_.cache_write_tokens = CountOr(usage["input_tokens_details"]["cache_write_tokens"], 0);
  self.incomplete_reason_ = StringOr(response["incomplete_details"]["reason"], {});
  self.status_ = status.empty() ? "completed" : status;
  self.Progressed();
}

Result<ModelResponse> ResponsesResponse::Take() {
  if (error()) return Fail(*error());
  if (!complete()) return Fail(ProtocolError("The model provider's answer was cut off", /*retryable=*/true));
  const std::string_view truncated = ResponsesTruncation(incomplete_reason_);
  auto calls = tool_calls_.Take(/*must_be_whole=*/status_ != "completed", used_call_ids());
  if (open_calls_ > 0 || (!calls && tool_calls_.cut_off())) {
    return Fail(OutputLimitError("The limit is max_output_tokens of the model, or the provider's own"));
  }
  if (!calls) return Fail(calls.error());
  if (truncated == "content_filter" && !has_text() && calls->empty()) {
    return Fail(MakeProviderError({.status = 400, .message = "stopped by the content filter"}, api_key()));
  }
  reprise::Json kept = reprise::Json::array();
  bool says_more = false;  // than a text and calls
  for (const auto& [place, item] : items_) {
    if (item->is_null()) continue;
    says_more = says_more || item->size() > 1;
    kept.push_back(std::move(*item));
  }
  ModelResponse response{.tool_calls = *std::move(calls), .usage = usage_, .extras = {}};
  if (says_more) response.extras = MakeProviderExtras(provider(), {{std::string(kResponseItems), std::move(kept)}});
  response.truncated = truncated;
  response.model = std::move(model_);
  return response;
}

}  // namespace reprise
