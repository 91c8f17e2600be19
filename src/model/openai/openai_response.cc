#include "model/openai/openai_response.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "model/event_json.h"
#include "model/openai/kept_members.h"
#include "model/provider_error.h"
#include "model/request_parts.h"
#include "model/web_search.h"

namespace reprise {
namespace {

using simdjson::dom::element;

Error WrongChunkForm() { return ProtocolError("The model provider sent an event of another form than agreed"); }

using Words = std::string_view;

template <std::size_t kCount>
bool IsAnyOf(Words word, const Words (&words)[kCount]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// Whether the model finished: the names of https://platform.openai.com/docs/api-reference/chat/object and their
// variants, in lower case.
bool IsChatEnd(Words reason) {
  static constexpr Words kEnds[] = {
      "stop",      "tool_calls",    "function_call", "tool_call", "tool_use",   "end_turn", "end",      "eos",
      "eos_token", "stop_sequence", "complete",      "completed", "stop_token", "done",     "finished", "finish"};
  return IsAnyOf(reason, kEnds);
}

bool IsChatEndWithCalls(Words reason) {
  static constexpr Words kEnds[] = {"tool_calls", "function_call", "tool_call", "tool_use"};
  return IsAnyOf(reason, kEnds);
}

// Why the answer is incomplete. Unknown reasons are kept as they are.
std::string OpenAiTruncation(const std::string& finish_reason) {
  static constexpr Words kLength[] = {"length", "max_tokens", "max_output_tokens", "max_length"};
  static constexpr Words kFilter[] = {"content_filter",     "safety",   "recitation", "sensitive",
                                      "prohibited_content", "blocklist"};
  if (finish_reason.empty() || IsChatEnd(finish_reason)) return {};
  if (IsAnyOf(finish_reason, kLength)) return "length";
  if (IsAnyOf(finish_reason, kFilter)) return "content_filter";
  if (finish_reason == "model_length") return "context_window";  // Mistral
  return finish_reason;
}

}  // namespace

struct OpenAiResponse::Json {
  // How a message arrives: in pieces, whole, or whole after its pieces.
  enum class Form { kPiece, kWhole, kAgain };

  static void TakeRoot(OpenAiResponse& self, const EventJson& json, bool is_whole);
  static void TakeUsage(OpenAiResponse& self, element usage);
  static void TakeChoice(OpenAiResponse& self, element choice, bool is_whole);
  static void TakeFinish(OpenAiResponse& self, const Member& value);
  static void TakeMessage(OpenAiResponse& self, simdjson::dom::object message, Form form);
  static void Keep(OpenAiResponse& self, reprise::Json& members, std::string_view name, element value, Form form,
                   bool is_charged);
  static void KeepOfCall(OpenAiResponse& self, element call, Form form);
  static void TakeContent(OpenAiResponse& self, element content, Form form);
  static void TakeAnnotations(OpenAiResponse& self, element annotations);
  static void TakePart(OpenAiResponse& self, element part);
  static void TakeThinkingPart(OpenAiResponse& self, element part, element thinking);
  static void TakeToolCalls(OpenAiResponse& self, element calls, Form form);
  static void TakeFunction(OpenAiResponse& self, element function, ToolCallDelta delta);
};

void OpenAiResponse::TakeObject(const EventJson& json, bool is_whole) {
  Json::TakeRoot(*this, json, is_whole);
  if (!is_whole) return;
  EndContent();
  done_ = done_ || has_text() || has_thinking() || !tool_calls_.empty();
}

void OpenAiResponse::Json::TakeRoot(OpenAiResponse& self, const EventJson& json, bool is_whole) {
  bool is_known = false, has_choices = false, may_fail = false, has_others = false;
  for (const auto& [key, value] : simdjson::dom::object(json.root())) {
    if (key == "choices") {
      is_known = true;
      if (value.is_null()) continue;
      if (!value.is_array()) return self.Reject(WrongChunkForm());
      const simdjson::dom::array choices(value);
      has_choices = has_choices || choices.size() > 0;
      const bool has_one = std::any_of(choices.begin(), choices.end(), [](element each) { return each.is_object(); });
      if (choices.size() > 0 && !has_one) return self.Reject(WrongChunkForm());
      for (const element choice : choices) TakeChoice(self, choice, is_whole);
    } else if (key == "model") {
      if (self.response_.model.empty()) self.response_.model = NameOfModel(value);
    } else if (key == "usage") {
      is_known = true;
      TakeUsage(self, value);
    } else if (key == "object") {
      const std::string_view kind = StringOr(value, {});
      may_fail = may_fail || !kind.starts_with("chat.completion");
      has_others = has_others || (kind != "chat.completion.chunk" && kind != "chat.completion");
    } else if (key == "type") {
      is_known = has_others = true;  // a ping, say
    } else if (key == "error" || key == "base_resp") {
      may_fail = may_fail || !value.is_null();
    } else if (key == "id" || key == "created" || key == "system_fingerprint" || key == "service_tier") {
      continue;  // of every event
    } else if (has_others = true; value.is_object()) {
      if (element usage; value["usage"].get(usage) == simdjson::SUCCESS) TakeUsage(self, usage);  // x_groq
    }
  }
  // Tokens alone are no failure.
  if (may_fail || (!has_choices && (has_others || !is_known))) self.CheckForFailure(json.text(), is_known);
}

// Some servers send counts repeatedly, and none at the end.
void OpenAiResponse::Json::TakeUsage(OpenAiResponse& self, element usage) {
  TokenUsage& tokens = self.response_.usage;
  const auto details = usage["prompt_tokens_details"];
  RaiseTo(tokens.input_tokens, usage["prompt_tokens"]);
  RaiseTo(tokens.input_tokens, usage["input_tokens"]);
  RaiseTo(tokens.output_tokens, usage["completion_tokens"]);
  RaiseTo(tokens.output_tokens, usage["output_tokens"]);
  RaiseTo(tokens.cache_read_tokens, details["cached_tokens"]);
  RaiseTo(tokens.cache_write_tokens, details["cache_write_tokens"]);
  // DeepSeek's and Kimi's names.
  for (const char* other : {"prompt_cache_hit_tokens", "cached_tokens"}) {
    if (tokens.cache_read_tokens == 0) RaiseTo(tokens.cache_read_tokens, usage[other]);
  }
}

void OpenAiResponse::Json::TakeChoice(OpenAiResponse& self, element choice, bool is_whole) {
  if (!choice.is_object() || IntegerOr(choice["index"], 0) != 0) return;
  const std::size_t bytes_before = self.content_.bytes;
  const bool had_calls = !self.tool_calls_.empty();
  std::optional<simdjson::dom::object> message;
  for (const auto& [key, value] : simdjson::dom::object(choice)) {
    if (key == "delta") {
      if (value.is_object()) TakeMessage(self, simdjson::dom::object(value), Form::kPiece);
      if (!value.is_object() && !value.is_null()) self.Reject(WrongChunkForm());
    } else if (key == "message") {
      if (value.is_object()) message = simdjson::dom::object(value);
      if (!value.is_object() && !value.is_null()) self.Reject(WrongChunkForm());
    } else if (key == "finish_reason") {
      TakeFinish(self, choice["finish_reason"]);
    } else if (key == "usage") {
      TakeUsage(self, value);
    }
  }
  self.CheckForFailure(ErrorIn(choice), /*is_known=*/true);
  if (!message) return;
  const bool is_beside = self.content_.bytes > bytes_before || (!had_calls && !self.tool_calls_.empty());
  if (is_beside && !is_whole) return;  // the same piece again
  const bool is_first = self.content_.bytes == 0 && self.tool_calls_.empty() && !self.has_thinking();
  TakeMessage(self, *message, is_first ? Form::kWhole : Form::kAgain);
  if (!self.finish_reason_.empty()) self.EndContent();
}

void OpenAiResponse::Json::TakeFinish(OpenAiResponse& self, const Member& value) {
  std::string reason = LowerCase(WordIn(value));
  if (reason.empty()) return;
  const std::string& known = self.finish_reason_;
  if (known.empty()) self.Progressed();
  if (AlarmOf(OpenAiTruncation(reason)) >= AlarmOf(OpenAiTruncation(known))) self.finish_reason_ = std::move(reason);
  self.EndContent();
}

void OpenAiResponse::Json::TakeMessage(OpenAiResponse& self, simdjson::dom::object message, Form form) {
  self.CheckForFailure(ErrorIn(message), /*is_known=*/true);
  const bool thought_before = form == Form::kAgain && self.has_thinking();
  bool has_thinking = false;  // some servers send both names with the same text
  for (const auto& [key, value] : message) {
    if (key == "content") {
      TakeContent(self, value, form);
    } else if (key == "reasoning_content" || key == "reasoning") {
      const bool is_charged = value.is_string() && !has_thinking && !thought_before;
      if (is_charged && !self.AddThinking(StringOr(value, {}))) return;
      has_thinking = has_thinking || value.is_string();
      Keep(self, self.members(), key, value, form, is_charged);
    } else if (key == "refusal") {
      if (form != Form::kAgain || !self.has_text()) self.AddRefusal(StringOr(value, {}));
    } else if (key == "tool_calls") {
      TakeToolCalls(self, value, form);
    } else if (key == "function_call") {
      const bool is_new = form != Form::kAgain || self.tool_calls_.empty();
      const ToolCallDelta only{.index = 0, .id = {}, .name = {}, .arguments = {}};
      if (is_new && value.is_object()) TakeFunction(self, value, only);
    } else if (key == "audio") {
      const std::string_view words = StringOr(value["transcript"], {});
      if (form != Form::kAgain || !self.has_text()) self.AddText(words);
    } else if (key == "annotations") {
      TakeAnnotations(self, value);
    } else if (!IsKnownMessageMember(key)) {
      // OpenRouter's. It may be encrypted but still counts as thinking.
      if (key == "reasoning_details" && !SaysNothing(value)) self.NoteThought();
      Keep(self, self.members(), key, value, form, /*is_charged=*/false);
    }
  }
}

void OpenAiResponse::Json::Keep(OpenAiResponse& self, reprise::Json& members, std::string_view name, element value,
                                Form form, bool is_charged) {
  if (SaysNothing(value)) {
    // Kept even if empty, because some providers want it back.
    if (value.is_string() && !members.contains(name)) members[std::string(name)] = "";
    return;
  }
  if (!is_charged && !self.HasRoomFor(name.size() + CostOf(value))) return;
  if (form == Form::kPiece) {
    MergeMember(members, name, value);
  } else {
    members[std::string(name)] = reprise::ToJson(value);
  }
}

void OpenAiResponse::Json::KeepOfCall(OpenAiResponse& self, element call, Form form) {
  for (const auto& [key, value] : simdjson::dom::object(call)) {
    if (!IsKnownCallMember(key)) Keep(self, self.tool_calls_.members(), key, value, form, /*is_charged=*/false);
  }
  simdjson::dom::object function;
  if (call["function"].get(function) != simdjson::SUCCESS) return;
  for (const auto& [key, value] : function) {
    if (IsKnownFunctionMember(key) || SaysNothing(value)) continue;
    Keep(self, self.tool_calls_.members()["function"], key, value, form, /*is_charged=*/false);
  }
}

// {"type":"url_citation","url_citation":{"url":"...","title":"...","start_index":0,"end_index":12}}
void OpenAiResponse::Json::TakeAnnotations(OpenAiResponse& self, element annotations) {
  simdjson::dom::array all;
  if (annotations.get(all) != simdjson::SUCCESS) return;
  for (const element each : all) {
    const auto citation = each["url_citation"];
    AddCitation(self.response_.citations, StringOr(citation["url"], {}), StringOr(citation["title"], {}),
                CountOr(citation["start_index"], 0), CountOr(citation["end_index"], 0));
  }
}

// A text, or an array of text and thinking parts.
void OpenAiResponse::Json::TakeContent(OpenAiResponse& self, element content, Form form) {
  if (content.is_null()) return;
  const bool is_again = form == Form::kAgain && self.content_.bytes > 0;
  if (content.is_string()) {
    std::string_view text = StringOr(content, {});
    const Digest& known = self.content_;
    const bool has_known = is_again && text.size() >= known.bytes && Digest::Of(text.substr(0, known.bytes)) == known;
    if (has_known) text.remove_prefix(known.bytes);
    return self.AddContent(text);
  }
  if (!content.is_array()) return self.Reject(WrongChunkForm());
  if (is_again) return;
  for (const element part : simdjson::dom::array(content)) TakePart(self, part);
}

void OpenAiResponse::Json::TakePart(OpenAiResponse& self, element part) {
  if (part.is_string()) return self.AddContent(StringOr(part, {}));
  if (element thinking; part["thinking"].get(thinking) == simdjson::SUCCESS)
    return TakeThinkingPart(self, part, thinking);
  self.AddContent(StringOr(part["text"], {}));
}

// A text or an array of texts; pieces of one thought are joined.
void OpenAiResponse::Json::TakeThinkingPart(OpenAiResponse& self, element part, element thinking) {
  std::string text(StringOr(thinking, {}));
  if (thinking.is_array()) {
    for (const element each : simdjson::dom::array(thinking)) text += StringOr(each["text"], {});
  }
  if (text.empty() || !self.AddThinking(text)) return;
  if (!self.parts_) self.parts_ = std::make_shared<reprise::Json>(reprise::Json::array());
  reprise::Json& parts = *self.parts_;
  if (self.text_bytes_ > 0) parts.push_back({{"type", "text"}, {"bytes", std::exchange(self.text_bytes_, 0)}});
  const bool continues = !parts.empty() && parts.back().contains("thinking");
  if (!continues) {
    if (!self.HasRoomFor(CostOf(part))) return;
    reprise::Json begun = {{"type", "thinking"}};
    begun["thinking"] =
        thinking.is_array() ? reprise::Json::array({{{"type", "text"}, {"text", ""}}}) : reprise::Json("");
    parts.push_back(std::move(begun));
  }
  reprise::Json& kept = parts.back()["thinking"];
  (kept.is_array() ? kept[0]["text"] : kept).get_ref<std::string&>() += text;
  for (const auto& [key, value] : simdjson::dom::object(part)) {  // such as a signature
    if (key == "thinking" || key == "type" || !self.HasRoomFor(key.size() + CostOf(value))) continue;
    MergeMember(parts.back(), key, value);
  }
}

void OpenAiResponse::Json::TakeToolCalls(OpenAiResponse& self, element calls, Form form) {
  if (calls.is_null()) return;
  if (!calls.is_array()) return self.Reject(WrongChunkForm());
  const simdjson::dom::array all(calls);
  if (form == Form::kAgain && !self.tool_calls_.empty()) {
    if (all.size() > self.tool_calls_.size()) self.Reject(WrongChunkForm());  // the pieces lacked some
    return;
  }
  for (const element call : all) {
    ToolCallDelta delta;
    if (std::int64_t index = 0; call["index"].get(index) == simdjson::SUCCESS) delta.index = index;
    delta.id = StringOr(call["id"], {});
    element function;
    if (call["function"].get(function) != simdjson::SUCCESS) function = call;
    TakeFunction(self, function, delta);
    if (self.failed()) return;
    if (call.is_object()) KeepOfCall(self, call, form);
  }
}

void OpenAiResponse::Json::TakeFunction(OpenAiResponse& self, element function, ToolCallDelta delta) {
  delta.name = StringOr(function["name"], {});
  const auto arguments = ArgumentsIn(function["arguments"]);
  if (!arguments) return self.Reject(WrongChunkForm());
  delta.arguments = *arguments;
  if (!self.HasRoomFor(delta.id.size() + delta.name.size() + delta.arguments.size())) return;
  if (!self.tool_calls_.Add(delta)) {
    self.Reject(ProtocolError("The model provider sent more tool calls or longer ones than allowed"));
  }
}

void OpenAiResponse::AddContent(std::string_view text) {
  if (text.empty()) return;
  content_.Add(text);
  if (tag_ == Tag::kNone) {
    text_bytes_ += text.size();
    return AddText(text);
  }
  AddTagged(text);
}

// Handles the beginning of the text, where thoughts may stand between tags.
void OpenAiResponse::AddTagged(std::string_view piece) {
  held_ += piece;
  if (tag_ == Tag::kMayBegin) {
    const std::string_view text =
        std::string_view(held_).substr(std::min(held_.find_first_not_of(" \t\r\n"), held_.size()));
    for (const std::string_view tag : {"<think>", "<thinking>"}) {
      if (tag_ == Tag::kInside || (text.size() < tag.size() && tag.starts_with(text))) return;  // incomplete
      if (!text.starts_with(tag)) continue;
      tag_ = Tag::kInside;
      closing_tag_ = "</" + std::string(tag.substr(1));
      held_ = text.substr(tag.size());
      break;
    }
    if (tag_ == Tag::kMayBegin) return EndContent();
  }
  if (tag_ == Tag::kInside) {
    const std::size_t end = held_.find(closing_tag_);
    std::size_t sure = std::min(end, held_.size());
    if (end == std::string::npos) {  // holds back a possible beginning of the closing tag
      std::size_t begun = std::min(held_.size(), closing_tag_.size() - 1);
      while (begun > 0 && !held_.ends_with(std::string_view(closing_tag_).substr(0, begun))) --begun;
      sure = held_.size() - begun;
    }
    if (!AddThinking(std::string_view(held_).substr(0, sure))) return;
    tagged_.append(held_, 0, sure);
    held_.erase(0, end == std::string::npos ? sure : sure + closing_tag_.size());
    if (end == std::string::npos) return;
    tag_ = Tag::kBehind;
  }
  if (tag_ == Tag::kBehind) {
    held_.erase(0, std::min(held_.find_first_not_of(" \t\r\n"), held_.size()));
    if (!held_.empty()) EndContent();
  }
}

// The held text turned out not to be a tag.
void OpenAiResponse::EndContent() {
  if (tag_ == Tag::kNone) return;
  const std::string rest = std::exchange(held_, {});
  if (tag_ == Tag::kInside) {
    if (AddThinking(rest)) tagged_ += rest;
    return;
  }
  if (rest.empty()) return;  // nothing has come yet
  tag_ = Tag::kNone;
  text_bytes_ += rest.size();
  AddText(rest);
}

Result<ModelResponse> OpenAiResponse::Take() {
  EndContent();
  if (error()) return Fail(*error());
  if (!complete()) return Fail(ProtocolError("The model provider's answer was cut off", /*retryable=*/true));
  if (finish_reason_ == "error") return Fail(MakeProviderError({}, api_key()));
  // DeepSeek's word for a model that was stopped for lack of capacity.
  if (finish_reason_ == "insufficient_system_resource") {
    return Fail(MakeProviderError({.code = finish_reason_}, api_key()));
  }
  const std::string truncated = OpenAiTruncation(finish_reason_);
  // "[DONE]" alone also marks a complete answer, but not that the model finished.
  response_.tool_calls =
      TRY(TakeCalls(tool_calls_, {.by_itself = IsChatEnd(finish_reason_),
                                  .truncated = truncated,
                                  .word = finish_reason_,
                                  .setting = "The limit is the provider's own (finish_reason " +
                                             OwnWord(finish_reason_) + "): raise it there, or ask for less at once"}));
  if (response_.tool_calls.empty() && IsChatEndWithCalls(finish_reason_)) {
    return Fail(ProtocolError("The model provider told of tool calls and sent none", /*retryable=*/true));
  }
  if (auto said = CheckSaid(!response_.tool_calls.empty(), truncated); !said) return Fail(said.error());
  response_.extras = TakeExtras();
  response_.truncated = truncated.empty() && has_refusal() ? "refusal" : OwnWord(truncated);
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
  if (parts_) {
    if (text_bytes_ > 0) parts_->push_back({{"type", "text"}, {"bytes", text_bytes_}});
    kept[std::string(kContentParts)] = std::move(*parts_);
  }
  if (!tagged_.empty()) kept[std::string(kThinkTag)] = std::move(tagged_);
  return MakeProviderExtras(provider(), std::move(kept));
}

}  // namespace reprise
