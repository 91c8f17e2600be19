#include "model/anthropic/anthropic_response.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "model/event_json.h"
#include "model/provider_error.h"
#include "model/web_search.h"

namespace reprise {
namespace {

using simdjson::dom::element;

Error WrongEventForm() { return ProtocolError("The model provider sent an event of another form than agreed"); }
Error TooMuch() { return ProtocolError("The model provider sent more blocks or longer ones than allowed"); }

// Whether the model finished. Includes the words of servers that mix this protocol with OpenAI's.
bool IsMessageEnd(std::string_view stop_reason) {
  static constexpr std::string_view kEnds[] = {"end_turn", "tool_use", "stop_sequence", "stop", "tool_calls"};
  return std::find(std::begin(kEnds), std::end(kEnds), stop_reason) != std::end(kEnds);
}

// https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons. Unknown reasons are kept as they are.
std::string AnthropicTruncation(const std::string& stop_reason) {
  if (stop_reason.empty() || IsMessageEnd(stop_reason)) return {};
  if (stop_reason == "max_tokens" || stop_reason == "length") return "length";
  if (stop_reason == "model_context_window_exceeded") return "context_window";
  if (stop_reason == "pause_turn") return "pause";
  return stop_reason;
}

// A call of the provider with the arguments that came after it.
std::string OwnCall(const std::string& json, const std::string& input) {
  auto call = ParseJson(json, kMaxJsonDepth, DuplicateMembers::kLastWins);
  auto arguments = ParseJson(input, kMaxJsonDepth, DuplicateMembers::kLastWins);
  if (!call || !call->is_object()) return json;
  if (arguments && arguments->is_object()) (*call)["input"] = *std::move(arguments);
  if (!call->contains("input")) (*call)["input"] = Json::object();
  return DumpJson(*call);
}

// The result of a search: a list, or an error.
void AddOutcome(event::WebSearch& search, const Json& content) {
  if (!content.is_array()) return SetFailure(search, TextMember(content, "error_code"));
  for (const Json& result : content) AddResult(search, TextMember(result, "url"), TextMember(result, "title"));
}

}  // namespace

struct AnthropicResponse::Json {
  static void TakeRoot(AnthropicResponse& self, const EventJson& json);
  static void TakeUsage(AnthropicResponse& self, element usage);
  static void TakeMessage(AnthropicResponse& self, element message);
  static void BeginBlock(AnthropicResponse& self, std::int64_t index, element content);
  static void TakeDelta(AnthropicResponse& self, element event);
  static void TakeStopReason(AnthropicResponse& self, const Member& value);
  static void AddBlockText(AnthropicResponse& self, OpenBlock& block, std::string_view text);
  static void AddCitation(AnthropicResponse& self, OpenBlock& block, element citation);
};

void AnthropicResponse::TakeObject(const EventJson& json, bool) { Json::TakeRoot(*this, json); }

void AnthropicResponse::Json::TakeRoot(AnthropicResponse& self, const EventJson& json) {
  const element root = json.root();
  const std::string_view type = StringOr(root["type"], {});
  if (type.starts_with("content_block") || type.starts_with("message")) {
    self.CheckForFailure(ErrorIn(root), /*is_known=*/true);
    self.CheckForFailure(ErrorIn(root["delta"]), /*is_known=*/true);
  }
  if (type == "content_block_delta") {
    TakeDelta(self, root);
  } else if (type == "content_block_start") {
    element content;
    if (root["content_block"].get(content) != simdjson::SUCCESS) return self.Reject(WrongEventForm());
    BeginBlock(self, IntegerOr(root["index"], static_cast<std::int64_t>(self.blocks_.size())), content);
  } else if (type == "content_block_stop") {
    if (OpenBlock* block = self.Find(IntegerOr(root["index"], -1))) block->closed = true;
  } else if (type == "message_start") {
    self.model_ = NameOfModel(root["message"]["model"]);
    if (element usage; root["message"]["usage"].get(usage) == simdjson::SUCCESS) TakeUsage(self, usage);
  } else if (type == "message_delta") {
    TakeStopReason(self, root["delta"]["stop_reason"]);
    TakeStopReason(self, root["stop_reason"]);  // some servers
    if (element usage; root["usage"].get(usage) == simdjson::SUCCESS) TakeUsage(self, usage);
  } else if (type == "message_stop") {
    self.stopped_ = true;
  } else if (type == "message") {
    TakeMessage(self, root);
  } else {
    const bool is_of_others = root["choices"].error() == simdjson::SUCCESS;
    self.CheckForFailure(json.text(), /*is_known=*/!type.empty() || is_of_others);
    if (type.empty() && !self.failed()) self.Reject(WrongEventForm());
  }  // "ping" and unknown events
}

// Counts are cumulative; an event need not repeat all of them.
void AnthropicResponse::Json::TakeUsage(AnthropicResponse& self, element usage) {
  TokenUsage& tokens = self.usage_;
  RaiseTo(tokens.input_tokens, usage["input_tokens"]);
  RaiseTo(tokens.output_tokens, usage["output_tokens"]);
  RaiseTo(tokens.cache_read_tokens, usage["cache_read_input_tokens"]);
  RaiseTo(tokens.cache_write_tokens, usage["cache_creation_input_tokens"]);
  RaiseTo(tokens.web_searches, usage["server_tool_use"]["web_search_requests"]);
}

// A whole message, from a server that does not stream.
void AnthropicResponse::Json::TakeMessage(AnthropicResponse& self, element message) {
  simdjson::dom::array content;
  if (message["content"].get(content) != simdjson::SUCCESS) return self.Reject(WrongEventForm());
  for (const element block : content) {
    BeginBlock(self, static_cast<std::int64_t>(self.blocks_.size()), block);
    if (self.failed()) return;
    self.blocks_.back().closed = true;
  }
  self.model_ = NameOfModel(message["model"]);
  if (element usage; message["usage"].get(usage) == simdjson::SUCCESS) TakeUsage(self, usage);
  TakeStopReason(self, message["stop_reason"]);
  self.stopped_ = true;
}

void AnthropicResponse::Json::TakeStopReason(AnthropicResponse& self, const Member& value) {
  std::string reason = WordIn(value);
  if (reason.empty()) return;
  std::string& known = self.stop_reason_;
  if (known.empty()) self.Progressed();
  if (AlarmOf(AnthropicTruncation(reason)) >= AlarmOf(AnthropicTruncation(known))) known = std::move(reason);
}

void AnthropicResponse::Json::BeginBlock(AnthropicResponse& self, std::int64_t index, element content) {
  using Kind = OpenBlock::Kind;
  if (!content.is_object()) return self.Reject(WrongEventForm());
  if (self.blocks_.size() == kMaxBlocks) return self.Reject(TooMuch());
  OpenBlock& block = self.blocks_.emplace_back(OpenBlock{.index = index});
  const std::string_view type = StringOr(content["type"], {});
  if (type == "text") {
    block.kind = Kind::kText;
    AddBlockText(self, block, StringOr(content["text"], {}));
    simdjson::dom::array citations;
    if (content["citations"].get(citations) != simdjson::SUCCESS) return;
    for (const element citation : citations) AddCitation(self, block, citation);
  } else if (type == "thinking") {
    block.kind = Kind::kThinking;
    block.thinking = StringOr(content["thinking"], {});
    block.signature = StringOr(content["signature"], {});
    if (self.HasRoomFor(block.signature.size())) self.AddThinking(block.thinking);
  } else if (type == "server_tool_use") {
    block.kind = Kind::kOwnCall;
    block.json = simdjson::minify(content);
    static_cast<void>(self.HasRoomFor(block.json.size()));
  } else if (type == "redacted_thinking" || type.ends_with("_tool_result")) {
    block.kind = Kind::kVerbatim;
    block.json = simdjson::minify(content);
    static_cast<void>(self.HasRoomFor(block.json.size()));
  } else if (type == "tool_use") {
    block.kind = Kind::kToolUse;
    const auto input = ArgumentsIn(content["input"]);  // if whole, then perhaps again in pieces
    if (!input) return self.Reject(WrongEventForm());
    const std::string_view id = StringOr(content["id"], {}), name = StringOr(content["name"], {});
    if (!self.HasRoomFor(id.size() + name.size() + input->size())) return;
    if (!self.tool_calls_.Add({index, id, name, *input})) self.Reject(TooMuch());
  } else if (content["text"].is_string()) {  // a text by another name
    block.kind = Kind::kText;
    AddBlockText(self, block, StringOr(content["text"], {}));
  }
}

void AnthropicResponse::Json::TakeDelta(AnthropicResponse& self, element event) {
  using Kind = OpenBlock::Kind;
  OpenBlock* block = self.Find(IntegerOr(event["index"], -1));
  const auto delta = event["delta"];
  if (block == nullptr || block->closed || delta.error() != simdjson::SUCCESS) return self.Reject(WrongEventForm());
  const std::string_view type = StringOr(delta["type"], {});
  const bool is_input = type == "input_json_delta";
  const auto piece = ArgumentsIn(is_input ? delta["partial_json"] : Member());
  if (!piece) return self.Reject(WrongEventForm());
  if (type == "text_delta") {
    if (block->kind == Kind::kIgnored) block->kind = Kind::kText;
    if (block->kind != Kind::kText) return self.Reject(WrongEventForm());
    AddBlockText(self, *block, StringOr(delta["text"], {}));
  } else if (type == "citations_delta" && block->kind == Kind::kText) {
    if (element citation; delta["citation"].get(citation) == simdjson::SUCCESS) AddCitation(self, *block, citation);
  } else if (is_input && block->kind == Kind::kOwnCall) {
    if (self.HasRoomFor(piece->size())) block->input += *piece;
  } else if (type == "thinking_delta") {
    const std::string_view thinking = StringOr(delta["thinking"], {});
    if (self.AddThinking(thinking)) block->thinking += thinking;
  } else if (type == "signature_delta" && block->kind == Kind::kThinking) {
    const std::string_view signature = StringOr(delta["signature"], {});
    if (self.HasRoomFor(signature.size())) block->signature += signature;
  } else if (is_input && block->kind == Kind::kToolUse) {
    if (!self.HasRoomFor(piece->size())) return;
    if (!self.tool_calls_.Add({block->index, {}, {}, *piece})) self.Reject(TooMuch());
  }  // unknown deltas are ignored
}

void AnthropicResponse::Json::AddBlockText(AnthropicResponse& self, OpenBlock& block, std::string_view text) {
  block.text_bytes += text.size();
  block.characters += CharactersIn(text);
  self.AddText(text);
}

void AnthropicResponse::Json::AddCitation(AnthropicResponse& self, OpenBlock& block, element citation) {
  if (StringOr(citation["type"], {}) != "web_search_result_location") return;  // others cite what is not sent
  const std::string json = simdjson::minify(citation);
  if (self.HasRoomFor(json.size())) block.citations.append(json).append(",");
}

AnthropicResponse::OpenBlock* AnthropicResponse::Find(std::int64_t index) {
  if (blocks_.empty()) return nullptr;
  if (index < 0) return &blocks_.back();  // some servers omit it
  const auto found =
      std::find_if(blocks_.rbegin(), blocks_.rend(), [&](const OpenBlock& block) { return block.index == index; });
  return found == blocks_.rend() ? nullptr : &*found;
}

std::string AnthropicResponse::TakeExtras() {
  using Kind = AnthropicBlock::Kind;
  std::vector<AnthropicBlock> kept;
  for (OpenBlock& block : blocks_) {
    switch (block.kind) {
      case OpenBlock::Kind::kText:
        if (!block.citations.empty()) block.citations.back() = ']';
        kept.push_back({.kind = Kind::kText,
                        .text_bytes = block.text_bytes,
                        .json = block.citations.empty() ? std::string() : "[" + block.citations});
        break;
      case OpenBlock::Kind::kToolUse:
        kept.push_back({.kind = Kind::kToolUse});
        break;
      case OpenBlock::Kind::kThinking: {
        if (block.thinking.empty() && block.signature.empty()) break;
        reprise::Json json = {{"type", "thinking"}, {"thinking", block.thinking}};
        // Some servers with this protocol sign nothing but still want the block back.
        if (!block.signature.empty()) json["signature"] = block.signature;
        kept.push_back({.kind = Kind::kVerbatim, .json = DumpJson(json)});
        break;
      }
      case OpenBlock::Kind::kVerbatim:
        kept.push_back({.kind = Kind::kVerbatim, .json = std::move(block.json)});
        break;
      case OpenBlock::Kind::kOwnCall:  // one that was cut off is none
        if (block.closed) kept.push_back({.kind = Kind::kVerbatim, .json = OwnCall(block.json, block.input)});
        break;
      case OpenBlock::Kind::kIgnored:
        break;
    }
  }
  return ExtrasOf(kept, provider());
}

// A search that has no result yet is told with the answer that has it.
void AnthropicResponse::TellSearches(ModelResponse& response) const {
  std::map<std::string, std::string> queries;  // by the call's id
  std::int64_t characters = 0;
  for (const OpenBlock& block : blocks_) {
    if (block.kind == OpenBlock::Kind::kOwnCall) {
      const auto call = ParseJson(OwnCall(block.json, block.input));
      if (call) queries[TextMember(*call, "id")] = TextMember(call->at("input"), "query");
    } else if (block.kind == OpenBlock::Kind::kVerbatim && response.searches.size() < kMostSearches) {
      const auto result = ParseJson(block.json, kMaxJsonDepth, DuplicateMembers::kLastWins);
      if (!result || TextMember(*result, "type") != "web_search_tool_result") continue;
      event::WebSearch search = SearchFor(queries[TextMember(*result, "tool_use_id")]);
      AddOutcome(search, result->value("content", reprise::Json()));
      response.searches.push_back(std::move(search));
    } else if (block.kind == OpenBlock::Kind::kText) {
      const auto citations = ParseJson("[" + block.citations + "null]", kMaxJsonDepth, DuplicateMembers::kLastWins);
      for (const reprise::Json& each : citations.value_or(reprise::Json::array())) {
        AddCitation(response.citations, TextMember(each, "url"), TextMember(each, "title"), characters,
                    characters + block.characters);
      }
      characters += block.characters;
    }
  }
}

bool AnthropicResponse::HasOwnCalls() const {
  return std::any_of(blocks_.begin(), blocks_.end(),
                     [](const OpenBlock& block) { return block.closed && block.kind == OpenBlock::Kind::kOwnCall; });
}

// The model finished, and all its calls are complete.
bool AnthropicResponse::EndedByItself() const {
  return IsMessageEnd(stop_reason_) && std::all_of(blocks_.begin(), blocks_.end(), [](const OpenBlock& block) {
           return block.closed || block.kind != OpenBlock::Kind::kToolUse;
         });
}

Result<ModelResponse> AnthropicResponse::Take() {
  if (error()) return Fail(*error());
  if (!complete()) return Fail(ProtocolError("The model provider's answer was cut off", /*retryable=*/true));
  const std::string truncated = AnthropicTruncation(stop_reason_);
  auto calls = TRY(TakeCalls(
      tool_calls_, {.by_itself = EndedByItself(),
                    .truncated = truncated,
                    .word = stop_reason_,
                    .setting = truncated == "length" ? "models.NAME.max_output_tokens in the configuration raises it"
                                                     : "The model's context window is full"}));
  if (calls.empty() && (stop_reason_ == "tool_use" || stop_reason_ == "tool_calls")) {
    return Fail(ProtocolError("The model provider told of tool calls and sent none", /*retryable=*/true));
  }
  const bool pauses = truncated == "pause" && calls.empty() && HasOwnCalls();
  if (auto said = CheckSaid(!calls.empty() || pauses, truncated); !said) return Fail(said.error());
  ModelResponse response{.tool_calls = std::move(calls), .usage = usage_, .extras = {}};
  TellSearches(response);
  response.extras = TakeExtras();
  response.pauses = pauses;
  response.model = std::move(model_);
  response.truncated = OwnWord(truncated);
  response.usage.input_tokens += usage_.cache_read_tokens + usage_.cache_write_tokens;
  return response;
}

}  // namespace reprise
