#include "model/anthropic/anthropic_request.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "model/request_parts.h"

namespace reprise {
namespace {

constexpr std::int64_t kUnknownMaxTokens = 32'000;  // for unknown models
constexpr std::int64_t kLeastAnswer = 8192;         // beside a budget for thinking
constexpr std::size_t kMaxNameLength = 128;
constexpr int kMarkedUserMessages = 2;
constexpr std::string_view kCacheMark = R"(,"cache_control":{"type":"ephemeral"})";
constexpr std::string_view kLongCacheMark = R"(,"cache_control":{"type":"ephemeral","ttl":"1h"})";

std::string_view CacheMarkOf(const ModelFacts& facts) {
  if (facts.cache == PromptCache::kNone) return {};
  return facts.cache == PromptCache::kLong ? kLongCacheMark : kCacheMark;
}

// Ids and names made by another provider's model may hold other characters.
std::string Identifier(std::string_view text) { return SentName(text, kMaxNameLength); }

// Text content. If the content has parts (an import), their texts.
std::string TextOf(const Message& message) {
  if (message.content || message.extras.empty()) return message.content.value_or("");
  std::string text;
  const auto extras = ParseJson(message.extras, 2 * kMaxJsonDepth);
  if (!extras || !extras->is_object() || !extras->contains("content") || !(*extras)["content"].is_array()) return text;
  for (const Json& part : (*extras)["content"]) {
    if (part.is_object() && part.contains("text") && part["text"].is_string()) text += part["text"].get<std::string>();
  }
  return text;
}

// Appends elements, separated by commas.
class Elements {
 public:
  explicit Elements(std::string& out) : out_(out) {}
  std::string& Next() {
    if (std::exchange(any_, true)) out_ += ',';
    return out_;
  }
  bool any() const { return any_; }

 private:
  std::string& out_;
  bool any_ = false;
};

void AppendText(std::string& out, std::string_view text, std::string_view mark) {
  out += R"({"type":"text","text":)";
  AppendJsonString(out, text);
  out += mark;
  out += '}';
}

void AppendToolUse(std::string& out, const ToolCall& call) {
  out += R"({"type":"tool_use","id":)";
  AppendJsonString(out, Identifier(call.id));
  out += R"(,"name":)";
  AppendJsonString(out, Identifier(call.name));
  out += R"(,"input":)";
  out += SentArguments(call.arguments);
  out += '}';
}

// The API takes no recordings; callers send none.
void AppendBlock(std::string& out, const MessagePart& part, FilesOfChat* files, std::string_view mark) {
  const PartContent content = part.kind == MessagePart::Kind::kAudio
                                  ? PartContent{.bytes = {}, .problem = "(a recording, which cannot be sent)"}
                                  : ReadPart(part, files);
  if (!content.problem.empty()) return AppendText(out, content.problem, mark);
  const bool is_image = part.kind == MessagePart::Kind::kImage;
  out += is_image ? R"({"type":"image","source":{"type":"base64","media_type":)"
                  : R"({"type":"document","source":{"type":"base64","media_type":)";
  AppendJsonString(out, part.mime_type);
  out += R"(,"data":)";
  AppendBase64String(out, content.bytes);
  out += '}';
  if (!is_image && !part.filename.empty()) {
    out += R"(,"title":)";
    AppendJsonString(out, part.filename);
  }
  out += mark;
  out += '}';
}

void AppendToolResult(std::string& out, const Message& message, FilesOfChat* files, std::string_view mark) {
  out += R"({"type":"tool_result","tool_use_id":)";
  AppendJsonString(out, Identifier(message.tool_call_id));
  const std::string text = TextOf(message);
  if (!message.parts.empty()) {
    out += R"(,"content":[)";
    Elements elements(out);
    if (!IsBlank(text)) AppendText(elements.Next(), text, /*mark=*/{});
    for (const MessagePart& part : message.parts) AppendBlock(elements.Next(), part, files, /*mark=*/{});
    out += ']';
  } else if (!IsBlank(text)) {
    out += R"(,"content":)";
    AppendJsonString(out, text);
  }
  if (message.is_error) out += R"(,"is_error":true)";
  out += mark;
  out += '}';
}

// Thinking from a server that does not sign it.
bool IsUnsigned(const AnthropicBlock& block) {
  return block.json.find("\"type\":\"thinking\"") != std::string::npos &&
         (block.json.find("\"signature\"") == std::string::npos ||
          block.json.find("\"signature\":\"\"") != std::string::npos);
}

// The provider's own blocks in a request.
class OwnBlocks {
 public:
  OwnBlocks(const Messages& messages, std::string_view provider, const ThinkingWays& ways, const SearchWays& search)
      : provider_(provider), ways_(ways), sends_searches_(search.offered != nullptr && search.sends_searches) {
    if (!sends_searches_) return;
    for (const Message& message : messages) {
      if (message.role == Role::kAssistant) last_ = &message;
      if (!HasOwnCalls(message, provider)) continue;
      for (const AnthropicBlock& block : BlocksOf(message, provider)) {
        if (!block.own_call.empty()) calls_.insert(block.own_call);
        if (!block.own_result.empty()) results_.insert(block.own_result);
      }
    }
    // The provider runs the calls of an answer that it has paused, or that has calls for us beside them.
    const bool goes_on = last_ != nullptr && (!last_->tool_calls.empty() || last_ == &messages.back());
    if (!goes_on) last_ = nullptr;
  }

  std::vector<AnthropicBlock> Sent(const Message& message) const {
    std::vector<AnthropicBlock> blocks = BlocksOf(message, provider_);
    std::erase_if(blocks, [&](const AnthropicBlock& block) {
      if (block.kind != AnthropicBlock::Kind::kVerbatim) return false;
      if (!block.is_of_search()) return !ways_.sends_thoughts || (!ways_.sends_unsigned && IsUnsigned(block));
      if (!sends_searches_) return true;
      return block.own_call.empty() ? !calls_.contains(block.own_result)
                                    : !results_.contains(block.own_call) && &message != last_;
    });
    return blocks;
  }
  // Whether an answer without text and calls is sent because of these blocks.
  bool Speak(const Message& message) const {
    if (!sends_searches_ || !HasOwnCalls(message, provider_)) return false;
    const auto sent = Sent(message);
    return std::any_of(sent.begin(), sent.end(), [](const AnthropicBlock& block) { return block.is_of_search(); });
  }
  bool sends_searches() const { return sends_searches_; }

 private:
  const std::string_view provider_;
  const ThinkingWays& ways_;
  const bool sends_searches_;
  const Message* last_ = nullptr;  // the answer whose open calls are sent
  std::set<std::string, std::less<>> calls_, results_;
};

void AppendAssistant(Elements& elements, const Message& message, const OwnBlocks& own) {
  const std::string text = TextOf(message);
  std::size_t at = 0, call = 0;
  for (const AnthropicBlock& block : own.Sent(message)) {
    switch (block.kind) {
      case AnthropicBlock::Kind::kVerbatim:
        elements.Next() += block.json;
        break;
      case AnthropicBlock::Kind::kToolUse:
        AppendToolUse(elements.Next(), message.tool_calls[call++]);
        break;
      case AnthropicBlock::Kind::kText: {
        const std::string_view piece = std::string_view(text).substr(at, block.text_bytes);
        at += piece.size();
        if (IsBlank(piece)) break;
        const bool cites = own.sends_searches() && !block.json.empty();
        AppendText(elements.Next(), piece, cites ? ",\"citations\":" + block.json : std::string());
        break;
      }
    }
  }
}

bool IsUserSide(const Message& message) { return message.role == Role::kUser || message.role == Role::kTool; }

// The API rejects empty messages and texts.
bool SaysSomething(const Message& message) {
  if (message.role == Role::kTool || !message.tool_calls.empty() || !message.parts.empty()) return true;
  return message.content ? !IsBlank(*message.content) : !IsBlank(TextOf(message));
}

// Messages that are sent as one: neighbours on the assistant's side, such as a paused answer and the rest of it, or on
// the user's.
using Group = std::vector<const Message*>;

std::vector<Group> GroupMessages(const Messages& messages, const OwnBlocks& own) {
  std::vector<Group> groups;
  for (const Message& message : messages) {
    if (message.role == Role::kSystem || (!SaysSomething(message) && !own.Speak(message))) continue;
    const bool joins = !groups.empty() && IsUserSide(message) == IsUserSide(*groups.back().back()) &&
                       groups.back().back()->tool_calls.empty();
    if (!joins) groups.emplace_back();
    groups.back().push_back(&message);
  }
  for (Group& group : groups) {
    std::stable_partition(group.begin(), group.end(), [](const Message* each) { return each->role == Role::kTool; });
  }
  return groups;
}

void AppendUserMessage(Elements& elements, const Message& message, FilesOfChat* files, std::string_view mark) {
  const std::string text = TextOf(message);
  const bool is_last = message.parts.empty();
  if (is_last || !IsBlank(text)) AppendText(elements.Next(), text, is_last ? mark : std::string_view());
  for (const MessagePart& part : message.parts) {
    AppendBlock(elements.Next(), part, files, &part == &message.parts.back() ? mark : std::string_view());
  }
}

void AppendUser(std::string& out, const Group& group, FilesOfChat* files, std::string_view last_mark) {
  out += R"({"role":"user","content":[)";
  Elements elements(out);
  for (const Message* message : group) {
    const std::string_view mark = message == group.back() ? last_mark : std::string_view();
    if (message->role == Role::kTool) {
      AppendToolResult(elements.Next(), *message, files, mark);
    } else {
      AppendUserMessage(elements, *message, files, mark);
    }
  }
  out += "]}";
}

void AppendMessages(std::string& out, const ModelRequest& request, std::string_view provider, std::string_view mark,
                    const ThinkingWays& ways, const SearchWays& search) {
  const OwnBlocks own(request.messages, provider, ways, search);
  const std::vector<Group> groups = GroupMessages(request.messages, own);
  auto unmarked =
      std::count_if(groups.begin(), groups.end(), [](const Group& group) { return IsUserSide(*group.front()); }) -
      kMarkedUserMessages;
  out += R"(,"messages":[)";
  Elements elements(out);
  // A conversation begins with a user message.
  if (groups.empty() || !IsUserSide(*groups.front().front())) {
    elements.Next() += R"_({"role":"user","content":[{"type":"text","text":"(The conversation goes on.)"}]})_";
  }
  for (const Group& group : groups) {
    if (IsUserSide(*group.front())) {
      AppendUser(elements.Next(), group, request.files, unmarked-- <= 0 ? mark : std::string_view());
    } else {
      elements.Next() += R"({"role":"assistant","content":[)";
      Elements blocks(out);
      for (const Message* message : group) AppendAssistant(blocks, *message, own);
      out += "]}";
    }
  }
  out += ']';
}

void AppendSystem(std::string& out, const ModelRequest& request, std::string_view mark) {
  Group group;
  for (const Message& message : request.messages) {
    if (message.role == Role::kSystem && SaysSomething(message)) group.push_back(&message);
  }
  if (group.empty() && IsBlank(request.system)) return;
  out += R"(,"system":[)";
  Elements elements(out);
  if (!IsBlank(request.system)) AppendText(elements.Next(), request.system, group.empty() ? mark : std::string_view());
  for (const Message* message : group) {
    AppendText(elements.Next(), TextOf(*message), message == group.back() ? mark : std::string_view());
  }
  out += ']';
}

// "name":["...","..."], behind a comma; nothing if there are none.
void AppendTexts(std::string& out, std::string_view name, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  out.append(",\"").append(name).append("\":[");
  Elements elements(out);
  for (const std::string& text : texts) AppendJsonString(elements.Next(), text);
  out += ']';
}

void AppendSearch(std::string& out, const WebSearchOptions& search, std::string_view mark) {
  out += R"({"type":"web_search_20250305","name":"web_search")";
  if (search.max_uses > 0) out += ",\"max_uses\":" + std::to_string(search.max_uses);
  AppendTexts(out, "allowed_domains", search.allowed_domains);
  AppendTexts(out, "blocked_domains", search.blocked_domains);
  out += mark;
  out += '}';
}

void AppendTools(std::string& out, const std::vector<ToolSpec>& tools, const WebSearchOptions* search,
                 std::string_view mark) {
  if (tools.empty() && search == nullptr) return;
  out += R"(,"tools":[)";
  Elements elements(out);
  if (search != nullptr) AppendSearch(elements.Next(), *search, tools.empty() ? mark : std::string_view());
  for (const ToolSpec& tool : tools) {
    elements.Next() += R"({"name":)";
    AppendJsonString(out, tool.name);
    out += R"(,"description":)";
    AppendJsonString(out, tool.description);
    out += R"(,"input_schema":)";
    out += tool.parameters.empty() ? R"({"type":"object","properties":{}})" : tool.parameters;
    if (tool.strict) out += R"(,"strict":true)";
    if (&tool == &tools.back()) out += mark;
    out += '}';
  }
  out += ']';
}

// Says what the server does with thinking from another conversation.
void AppendBinding(std::string& out, const ThinkingWays& ways) {
  if (ways.drops_foreign) out += R"(,"block_binding":{"prefix_mismatch_behavior":"drop_block"})";
}

bool Thinks(const ModelFacts& facts) {
  return facts.thinking == ThinkingMode::kAdaptive || facts.thinking == ThinkingMode::kBudget;
}

// max_tokens includes the budget for thinking, and must leave room for the answer.
std::int64_t LeastTokens(const ModelFacts& facts) {
  if (facts.thinking != ThinkingMode::kBudget) return 0;
  return facts.thinking_budget + std::min(facts.thinking_budget, kLeastAnswer);
}

void AppendWishes(std::string& out, const ModelWishes& wishes, const std::vector<Wish>& left_out) {
  const auto is_sent = [&](Wish wish) { return std::find(left_out.begin(), left_out.end(), wish) == left_out.end(); };
  if (wishes.temperature && is_sent(Wish::kTemperature)) {
    out += ",\"temperature\":" + DumpJson(std::min(1.0, *wishes.temperature));  // OpenAI's go to 2
  }
  if (wishes.top_p && is_sent(Wish::kTopP)) out += ",\"top_p\":" + DumpJson(*wishes.top_p);
  std::vector<std::string> stop;
  std::copy_if(wishes.stop.begin(), wishes.stop.end(), std::back_inserter(stop),
               [](const std::string& text) { return !IsBlank(text); });
  if (!stop.empty()) out += ",\"stop_sequences\":" + DumpJson(stop);
  if (!wishes.must_call) return;
  if (wishes.must_call_tool.empty()) {
    out += R"(,"tool_choice":{"type":"any"})";
    return;
  }
  out += R"(,"tool_choice":{"type":"tool","name":)";
  AppendJsonString(out, wishes.must_call_tool);
  out += '}';
}

void AppendThinking(std::string& out, const ModelFacts& facts, const ThinkingWays& ways) {
  // Recent models think on their own, but show it only on request.
  if (facts.thinking == ThinkingMode::kAdaptive) {
    out += R"(,"thinking":{"type":"adaptive","display":"summarized")";
    AppendBinding(out, ways);
    out += '}';
  }
  if (facts.thinking == ThinkingMode::kBudget) {
    out += R"(,"thinking":{"type":"enabled","budget_tokens":)" + std::to_string(facts.thinking_budget);
    AppendBinding(out, ways);
    out += '}';
  }
  if (facts.thinking == ThinkingMode::kOff && ways.says_off) out += R"(,"thinking":{"type":"disabled"})";
}

void AppendOutputConfig(std::string& out, const ModelFacts& facts, const ModelWishes* wishes) {
  std::string members;
  if (facts.thinking == ThinkingMode::kAdaptive && facts.effort != Effort::kDefault) {
    members += R"(,"effort":")" + std::string(ToString(facts.effort)) + '"';
  }
  if (wishes != nullptr && wishes->format == ModelWishes::Format::kSchema) {
    members += R"(,"format":{"type":"json_schema","schema":)" + wishes->schema + '}';
  }
  if (!members.empty()) out += R"(,"output_config":{)" + members.substr(1) + '}';
}

// Slightly above the final size of ordinary text, where one character in thirty is escaped.
std::size_t EstimateAnthropicSize(const ModelRequest& request) {
  std::size_t bytes = 512 + request.system.size() + request.system.size() / 16 + EncodedSize(request.messages);
  for (const Message& message : request.messages) {
    bytes += 96 + message.extras.size();
    if (message.content) bytes += message.content->size() + message.content->size() / 16;
    for (const ToolCall& call : message.tool_calls) bytes += 96 + call.arguments.size();
  }
  for (const ToolSpec& tool : request.tools) bytes += 96 + tool.description.size() + tool.parameters.size();
  return bytes;
}

}  // namespace

ModelFacts WithEffort(ModelFacts facts) {
  if (facts.effort == Effort::kNone) facts.thinking = ThinkingMode::kOff;
  if (facts.effort == Effort::kDefault || facts.thinking != ThinkingMode::kDefault) return facts;
  facts.thinking = ThinkingMode::kBudget;
  facts.thinking_budget = facts.effort == Effort::kLow ? 2048 : facts.effort == Effort::kMedium ? 8192 : 24'576;
  if (facts.max_output_tokens > 0) {
    facts.thinking_budget = std::max<std::int64_t>(1024, std::min(facts.thinking_budget, facts.max_output_tokens / 2));
  }
  return facts;
}

std::vector<Wish> LeftOutOfMessages(const ModelWishes& wishes, const ModelFacts& facts, const ThinkingWays& ways) {
  std::vector<Wish> left_out;
  const bool takes_sampling = !Thinks(facts) && !(ways.says_off && wishes.must_call);
  if (wishes.temperature && !takes_sampling) left_out.push_back(Wish::kTemperature);
  if (wishes.top_p && (!takes_sampling || wishes.temperature)) left_out.push_back(Wish::kTopP);
  const std::int64_t most = wishes.max_output_tokens;
  if (most > 0 && most < LeastTokens(facts)) left_out.push_back(Wish::kMaxOutputTokens);
  if (std::any_of(wishes.stop.begin(), wishes.stop.end(), [](const std::string& text) { return IsBlank(text); })) {
    left_out.push_back(Wish::kStop);
  }
  if (wishes.format == ModelWishes::Format::kJson) left_out.push_back(Wish::kFormat);
  if (wishes.must_call && Thinks(facts)) left_out.push_back(Wish::kForcedCall);
  return left_out;
}

std::string BuildMessagesRequest(const ModelRequest& request, const ModelFacts& facts, std::string_view provider,
                                 const ThinkingWays& ways, const SearchWays& search) {
  const std::string_view mark = CacheMarkOf(facts);
  std::int64_t max_tokens = facts.max_output_tokens;
  if (max_tokens == 0 && facts.context_window == 0) max_tokens = kUnknownMaxTokens;
  // The part of the window that the request leaves free.
  if (max_tokens == 0) max_tokens = std::clamp<std::int64_t>(facts.context_window / 4, 1, kUnknownMaxTokens);
  if (request.wishes != nullptr && request.wishes->max_output_tokens > 0) {
    max_tokens = std::min(max_tokens, request.wishes->max_output_tokens);
  }
  max_tokens = std::max(max_tokens, LeastTokens(facts));
  std::string out;
  out.reserve(EstimateAnthropicSize(request));
  out += R"({"model":)";
  AppendJsonString(out, request.model);
  out += R"(,"max_tokens":)" + std::to_string(max_tokens);
  AppendThinking(out, facts, ways);
  AppendOutputConfig(out, facts, request.wishes);
  if (request.wishes != nullptr) AppendWishes(out, *request.wishes, LeftOutOfMessages(*request.wishes, facts, ways));
  AppendTools(out, request.tools, search.offered, mark);
  AppendSystem(out, request, mark);
  AppendMessages(out, request, provider, mark, ways, search);
  out += R"(,"stream":true})";
  return out;
}

}  // namespace reprise
