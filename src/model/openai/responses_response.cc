#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "model/event_json.h"
#include "model/openai/kept_members.h"
#include "model/openai/openai_response.h"
#include "model/provider_error.h"
#include "model/request_parts.h"
#include "model/web_search.h"

namespace reprise {
namespace {

using simdjson::dom::element;

constexpr std::int64_t kMostItems = 1024;

Error WrongEventForm() { return ProtocolError("The model provider sent an event of another form than agreed"); }

// Why an answer with this status is incomplete. Unknown reasons are kept as they are.
std::string ResponsesTruncation(const std::string& status, const std::string& reason) {
  if (reason == "max_output_tokens" || reason == "max_tokens") return "length";
  if (!reason.empty()) return reason;
  return status == "completed" ? std::string() : status;
}

std::string TextIn(element message) {
  std::string text;
  simdjson::dom::array content;
  if (message["content"].get(content) != simdjson::SUCCESS) return text;
  for (const element part : content) text += StringOr(part["text"], StringOr(part["refusal"], {}));
  return text;
}

// What tells an item from another one: its text, or the name and arguments of a call.
std::string SaidIn(element item) {
  if (StringOr(item["type"], {}) != "function_call") return TextIn(item);
  return std::string(StringOr(item["name"], {})) + "(" + ArgumentsIn(item["arguments"]).value_or(std::string()) + ")";
}

bool Differ(std::string_view id, std::string_view other) { return !id.empty() && !other.empty() && id != other; }

}  // namespace

struct ResponsesResponse::Json {
  static void TakeRoot(ResponsesResponse& self, const EventJson& json);
  static void TakeDelta(ResponsesResponse& self, std::string_view type, element root);
  static std::int64_t PlaceOf(ResponsesResponse& self, element root, std::string_view id_of_item = {},
                              bool begins = false);
  static void AddSaid(ResponsesResponse& self, const Item& known, std::string_view text);
  static void CompleteText(ResponsesResponse& self, Item& known, std::string_view text);
  static bool IsOther(const Item& known, element item, const Digest& said, bool is_repeat);
  static bool IsSaid(const ResponsesResponse& self, const Digest& text);
  static void BeginItem(ResponsesResponse& self, element root, element item);
  static void TakeItem(ResponsesResponse& self, std::int64_t place, element item, bool is_repeat);
  static void TakeCall(ResponsesResponse& self, std::int64_t place, Item& known, element item);
  static void TakeMessage(ResponsesResponse& self, Item& known, element item, reprise::Json& kept);
  static void TakeAnnotations(Item& known, element part, std::int64_t start);
  static void TakeThinking(ResponsesResponse& self, element item);
  static void TakeOutput(ResponsesResponse& self, simdjson::dom::array output);
  static void TakeEnd(ResponsesResponse& self, element response, std::string_view status);
};

void ResponsesResponse::TakeObject(const EventJson& json, bool is_whole) {
  if (!is_whole) return Json::TakeRoot(*this, json);
  element output;
  if (json.root()["output"].get(output) != simdjson::SUCCESS) CheckForFailure(json.text(), /*is_known=*/false);
  Json::TakeEnd(*this, json.root(), "completed");
}

void ResponsesResponse::Json::TakeRoot(ResponsesResponse& self, const EventJson& json) {
  const element root = json.root();
  const std::string_view type = StringOr(root["type"], {});
  element value;
  if (type.starts_with("response.")) self.CheckForFailure(ErrorIn(root), /*is_known=*/true);
  if (type.ends_with(".delta")) return TakeDelta(self, type, root);
  if (type == "response.output_item.added" && root["item"].get(value) == simdjson::SUCCESS) {
    BeginItem(self, root, value);
  } else if (type == "response.output_item.done" && root["item"].get(value) == simdjson::SUCCESS) {
    TakeItem(self, PlaceOf(self, root, StringOr(value["id"], {})), value, /*is_repeat=*/false);
  } else if (type == "response.function_call_arguments.done") {
    auto arguments = ArgumentsIn(root["arguments"]);
    if (!arguments) return self.Reject(WrongEventForm());
    Item& known = self.items_[PlaceOf(self, root)];
    known.is_call = true;
    if (!arguments->empty() && self.HasRoomFor(arguments->size())) known.arguments = *std::move(arguments);
  } else if (type == "response.output_text.done" || type == "response.refusal.done") {
    if (IntegerOr(root["content_index"], 0) != 0) return;  // the item's end has all its parts
    const std::string_view text = StringOr(root["text"], StringOr(root["refusal"], {}));
    if (IsSaid(self, Digest::Of(text))) return;
    Item& known = self.items_[PlaceOf(self, root)];
    known.is_refusal = known.is_refusal || type == "response.refusal.done";
    CompleteText(self, known, text);
  } else if (type == "response.completed" || type == "response.incomplete" || type == "response.failed" ||
             type == "response.done") {
    if (root["response"].get(value) != simdjson::SUCCESS) return self.Reject(WrongEventForm());
    const std::string_view status = type.substr(std::string_view("response.").size());
    TakeEnd(self, value, status == "done" ? "completed" : status);
  } else if (!type.starts_with("response.") || type == "response.error") {
    const bool is_of_others = root["choices"].error() == simdjson::SUCCESS;
    self.CheckForFailure(json.text(), /*is_known=*/!type.empty() || is_of_others);
    if (type.empty() && !self.failed()) self.Reject(WrongEventForm());
  }  // other events are unknown or add nothing
}

void ResponsesResponse::Json::TakeDelta(ResponsesResponse& self, std::string_view type, element root) {
  const std::string_view delta = StringOr(root["delta"], {});
  if (type == "response.output_text.delta" || type == "response.refusal.delta") {
    Item& known = self.items_[PlaceOf(self, root)];
    known.is_refusal = known.is_refusal || type == "response.refusal.delta";
    known.text.Add(delta);
    AddSaid(self, known, delta);
  } else if (type == "response.reasoning_summary_text.delta" || type == "response.reasoning_text.delta") {
    self.has_streamed_thinking_ = self.has_streamed_thinking_ || !delta.empty();
    self.AddThinking(delta);
  } else if (type == "response.function_call_arguments.delta") {
    const auto piece = ArgumentsIn(root["delta"]);
    if (!piece) return self.Reject(WrongEventForm());
    Item& known = self.items_[PlaceOf(self, root)];
    known.is_call = true;
    if (self.HasRoomFor(piece->size())) known.arguments += *piece;
  } else if (!delta.empty()) {
    self.Progressed();
  }
}

// The index of an event's item.
std::int64_t ResponsesResponse::Json::PlaceOf(ResponsesResponse& self, element root, std::string_view id_of_item,
                                              bool begins) {
  const std::string_view id = StringOr(root["item_id"], id_of_item);
  std::int64_t told = -1;
  if (root["output_index"].get(told) == simdjson::SUCCESS) {
    if (told < 0 || told > kMostItems) {
      self.Reject(WrongEventForm());
      return 0;
    }
    const auto at = self.items_.find(told);
    if (at == self.items_.end() || !Differ(at->second.id, id)) return told;
  }
  std::int64_t open = -1, next = 0;
  for (auto& [place, known] : self.items_) {
    if (!id.empty() && known.id == id) return place;
    if (known.whole == nullptr && (known.id.empty() || id.empty())) open = place;
    next = place + 1;
  }
  // Some servers name an item differently in its pieces and at its end.
  if (const auto at = self.items_.find(told); at != self.items_.end() && at->second.whole == nullptr && !begins) {
    return told;
  }
  const std::int64_t place = open >= 0 ? open : next;
  Item& found = self.items_[place];
  if (found.id.empty()) found.id = id;
  return place;
}

void ResponsesResponse::Json::BeginItem(ResponsesResponse& self, element root, element item) {
  const std::string id(item.is_object() ? StringOr(item["id"], {}) : std::string_view());
  std::int64_t place = self.items_.empty() ? 0 : self.items_.rbegin()->first + 1;
  const bool has_place = root["output_index"].error() == simdjson::SUCCESS;
  if (has_place || !id.empty()) place = PlaceOf(self, root, id, /*begins=*/true);
  if (place > kMostItems) return self.Reject(WrongEventForm());
  Item& begun = self.items_[place];
  if (begun.id.empty()) begun.id = id;
  begun.is_call = StringOr(item["type"], {}) == "function_call";
  self.Progressed();
}

// Whether an item at the place of `known`, which has ended, is not the same once more.
bool ResponsesResponse::Json::IsOther(const Item& known, element item, const Digest& said, bool is_repeat) {
  const std::string_view id = StringOr(item["id"], {}), call_id = StringOr(item["call_id"], {});
  const bool is_other_call = Differ(call_id, known.call_id);
  if (is_other_call && !is_repeat) return true;
  const bool is_named = (!call_id.empty() && call_id == known.call_id) || (!id.empty() && id == known.id);
  if (said == known.said || (is_named && !is_other_call)) return false;
  return !is_repeat || StringOr(item["type"], {}) == "function_call";
}

// `is_repeat`: it stands in the whole response, where items may have other ids.
void ResponsesResponse::Json::TakeItem(ResponsesResponse& self, std::int64_t place, element item, bool is_repeat) {
  if (!item.is_object() || place < 0 || place > kMostItems) return self.Reject(WrongEventForm());
  const Digest said = Digest::Of(SaidIn(item));
  if (self.items_[place].whole != nullptr) {
    if (!IsOther(self.items_[place], item, said, is_repeat)) return;
    place = self.items_.rbegin()->first + 1;
    if (place > kMostItems) return self.Reject(WrongEventForm());
  }
  Item& known = self.items_[place];
  const std::string_view type = StringOr(item["type"], {}), status = StringOr(item["status"], {});
  if (!self.HasRoomFor(CostOf(item))) return;
  if (known.id.empty()) known.id = StringOr(item["id"], {});
  known.call_id = StringOr(item["call_id"], {});
  known.said = said;
  known.is_call = type == "function_call";
  if (known.is_call && !status.empty() && status != "completed") return;  // it was cut off
  if (status == "incomplete") self.incomplete_reason_ = status;
  const reprise::Json whole = reprise::ToJson(item);
  if (known.is_call) TakeCall(self, place, known, item);
  if (type == "reasoning") TakeThinking(self, item);
  auto kept = std::make_shared<reprise::Json>(KeptItem(whole));
  if (type == "message") TakeMessage(self, known, item, *kept);
  known.whole = std::move(kept);
}

void ResponsesResponse::Json::TakeCall(ResponsesResponse& self, std::int64_t place, Item& known, element item) {
  auto arguments = ArgumentsIn(item["arguments"]);
  if (!arguments) return self.Reject(WrongEventForm());
  const bool is_empty = arguments->empty() || Trimmed(*arguments) == "{}";
  if (is_empty && !known.arguments.empty()) arguments = std::move(known.arguments);
  const ToolCallDelta call{.index = place,
                           .id = StringOr(item["call_id"], StringOr(item["id"], {})),
                           .name = StringOr(item["name"], {}),
                           .arguments = *arguments};
  if (!self.tool_calls_.Add(call)) {
    self.Reject(ProtocolError("The model provider sent more tool calls or longer ones than allowed"));
  }
}

// Whether this text was already streamed for an item that has not ended, because some servers name the item differently
// in its pieces and at its end.
bool ResponsesResponse::Json::IsSaid(const ResponsesResponse& self, const Digest& text) {
  return text.bytes > 0 && std::any_of(self.items_.begin(), self.items_.end(), [&](const auto& each) {
           return each.second.whole == nullptr && each.second.text == text;
         });
}

// Passes on what the pieces of an item's text lacked.
void ResponsesResponse::Json::CompleteText(ResponsesResponse& self, Item& known, std::string_view text) {
  const std::size_t bytes = known.text.bytes;
  if (text.size() <= bytes || Digest::Of(text.substr(0, bytes)) != known.text) return;
  known.text.Add(text.substr(bytes));
  AddSaid(self, known, text.substr(bytes));
}

void ResponsesResponse::Json::AddSaid(ResponsesResponse& self, const Item& known, std::string_view text) {
  known.is_refusal ? self.AddRefusal(text) : self.AddText(text);
}

// The text was streamed before, or arrives now.
void ResponsesResponse::Json::TakeMessage(ResponsesResponse& self, Item& known, element item, reprise::Json& kept) {
  simdjson::dom::array content;
  if (item["content"].get(content) != simdjson::SUCCESS) return;
  for (const element part : content) {
    known.is_refusal = known.is_refusal || StringOr(part["type"], {}) == "refusal";
    TakeAnnotations(known, part, known.characters);
    known.characters += CharactersIn(StringOr(part["text"], StringOr(part["refusal"], {})));
  }
  const std::string text = TextIn(item);
  const bool is_said = known.text.bytes == 0 && IsSaid(self, Digest::Of(text));
  if (!is_said) CompleteText(self, known, text);
  if (text.size() > known.text.bytes && !is_said) return self.Reject(WrongEventForm());  // the pieces said otherwise
  if (known.text.bytes > 0 && kept["content"].size() == 1 && kept["content"][0].contains("bytes")) {
    kept["content"][0]["bytes"] = known.text.bytes;  // the message holds the streamed text
  }
}

// `start`: where the part begins in the item's text.
void ResponsesResponse::Json::TakeAnnotations(Item& known, element part, std::int64_t start) {
  simdjson::dom::array annotations;
  if (part["annotations"].get(annotations) != simdjson::SUCCESS) return;
  for (const element each : annotations) {
    if (StringOr(each["type"], {}) != "url_citation") continue;
    AddCitation(known.citations, StringOr(each["url"], {}), StringOr(each["title"], {}),
                start + CountOr(each["start_index"], 0), start + CountOr(each["end_index"], 0));
  }
}

void ResponsesResponse::Json::TakeThinking(ResponsesResponse& self, element item) {
  if (self.has_streamed_thinking_) return;
  for (const char* name : {"summary", "content"}) {
    simdjson::dom::array parts;
    if (item[name].get(parts) != simdjson::SUCCESS) continue;
    for (const element part : parts) {
      if (!self.AddThinking(StringOr(part["text"], {}))) return;
    }
  }
}

// Items that were not sent one by one.
void ResponsesResponse::Json::TakeOutput(ResponsesResponse& self, simdjson::dom::array output) {
  std::int64_t at = 0;
  std::set<std::int64_t> repeated;
  for (const element item : output) {
    std::int64_t place = at++;
    const std::string_view id = StringOr(item["id"], {}), call_id = StringOr(item["call_id"], {});
    const Digest said = Digest::Of(SaidIn(item));
    const auto find = [&](const auto& is_same) {
      const auto same = std::find_if(self.items_.begin(), self.items_.end(), is_same);
      if (same != self.items_.end()) place = same->first;
      return same != self.items_.end();
    };
    const bool is_known = find([&](const auto& each) { return !call_id.empty() && each.second.call_id == call_id; }) ||
                          find([&](const auto& each) { return !id.empty() && each.second.id == id; }) ||
                          find([&](const auto& each) {
                            const bool has_ended = each.second.whole != nullptr && said.bytes > 0;
                            return has_ended && each.second.said == said && !repeated.contains(each.first);
                          });
    if (!is_known && repeated.contains(place)) place = self.items_.rbegin()->first + 1;
    repeated.insert(place);
    TakeItem(self, place, item, /*is_repeat=*/true);
  }
}

void ResponsesResponse::Json::TakeEnd(ResponsesResponse& self, element response, std::string_view status) {
  if (!response.is_object()) return self.Reject(WrongEventForm());
  self.CheckForFailure(ErrorIn(response), /*is_known=*/true);
  if (self.failed()) return;
  const std::string own = WordIn(response["status"]);
  for (const std::string_view each : {status, std::string_view(own)}) {
    if (each == "failed" || each == "cancelled") return self.Reject(MakeProviderError({}, self.api_key()));
  }
  if (status == "completed" && !own.empty()) status = own;
  if (simdjson::dom::array output; response["output"].get(output) == simdjson::SUCCESS) TakeOutput(self, output);
  self.model_ = NameOfModel(response["model"]);
  const auto usage = response["usage"];
  RaiseTo(self.usage_.input_tokens, usage["input_tokens"]);
  RaiseTo(self.usage_.output_tokens, usage["output_tokens"]);
  RaiseTo(self.usage_.cache_read_tokens, usage["input_tokens_details"]["cached_tokens"]);
  RaiseTo(self.usage_.cache_write_tokens, usage["input_tokens_details"]["cache_write_tokens"]);
  const Member details = response["incomplete_details"];
  std::string reason = WordIn(details["reason"]);
  if (reason.empty()) reason = StringOr(details, {});
  if (!reason.empty()) self.incomplete_reason_ = std::move(reason);
  self.status_ = status;
  self.Progressed();
}

namespace {

// A search, or the page that was opened: {"type":"search","query":"...","sources":[{"type":"url","url":"..."}]},
// {"type":"open_page","url":"..."}, {"type":"find_in_page","pattern":"...","url":"..."}.
event::WebSearch SearchOf(const Json& item) {
  const auto found = item.find("action");
  const Json action = found == item.end() ? Json() : *found;
  std::string query = TextMember(action, "query");
  const auto list = [&](const char* name) {
    const auto member = action.is_object() ? action.find(name) : action.end();
    return action.is_object() && member != action.end() && member->is_array() ? *member : Json::array();
  };
  if (query.empty()) {
    for (const Json& each : list("queries")) {
      if (each.is_string()) query += (query.empty() ? "" : "; ") + each.get<std::string>();
    }
  }
  if (query.empty()) query = TextMember(action, "pattern");
  event::WebSearch search = SearchFor(query);
  if (const std::string url = TextMember(action, "url"); !url.empty()) AddResult(search, url, {});
  for (const Json& source : list("sources")) AddResult(search, TextMember(source, "url"), TextMember(source, "title"));
  if (TextMember(item, "status") == "failed") SetFailure(search, {});
  return search;
}

}  // namespace

void ResponsesResponse::TellSearches(ModelResponse& response) const {
  std::int64_t characters = 0;
  for (const auto& [place, item] : items_) {
    for (const Citation& each : item.citations) {
      AddCitation(response.citations, each.source.url, each.source.title, characters + each.start,
                  characters + each.end);
    }
    characters += item.characters;
    if (item.whole == nullptr || TextMember(*item.whole, "type") != "web_search_call") continue;
    const auto action = item.whole->find("action");
    if (action != item.whole->end() && TextMember(*action, "type") == "search") ++response.usage.web_searches;
    if (response.searches.size() < kMostSearches) response.searches.push_back(SearchOf(*item.whole));
  }
}

Result<ModelResponse> ResponsesResponse::Take() {
  if (error()) return Fail(*error());
  if (!complete()) return Fail(ProtocolError("The model provider's answer was cut off", /*retryable=*/true));
  const std::string truncated = ResponsesTruncation(status_, incomplete_reason_);
  const bool has_open_call = std::any_of(items_.begin(), items_.end(), [](const auto& each) {
    return each.second.is_call && each.second.whole == nullptr;
  });
  const std::string setting = "The limit is max_output_tokens of the model, or the provider's own";
  if (has_open_call) {
    if (auto stopped = StoppedBy(truncated)) return Fail(*std::move(stopped));
    if (truncated == "length" || truncated == "incomplete") return Fail(OutputLimitError(setting));
    return Fail(ProtocolError("The model provider's answer ended in the middle of a tool call", /*retryable=*/true));
  }
  auto calls = TRY(TakeCalls(
      tool_calls_, {.by_itself = truncated.empty(), .truncated = truncated, .word = truncated, .setting = setting}));
  if (auto said = CheckSaid(!calls.empty(), truncated); !said) return Fail(said.error());
  ModelResponse response{.tool_calls = std::move(calls), .usage = usage_, .extras = {}};
  TellSearches(response);
  reprise::Json kept = reprise::Json::array();
  bool says_more = false;  // more than a text and calls
  for (const auto& [place, item] : items_) {
    if (item.whole == nullptr || item.whole->is_null()) continue;
    says_more = says_more || item.whole->size() > 1;
    kept.push_back(std::move(*item.whole));
  }
  if (says_more) response.extras = MakeProviderExtras(provider(), {{std::string(kResponseItems), std::move(kept)}});
  response.truncated = truncated.empty() && has_refusal() ? "refusal" : OwnWord(truncated);
  response.model = std::move(model_);
  return response;
}

}  // namespace reprise
