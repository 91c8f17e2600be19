#include "model/openai/openai_request.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/interned.h"
#include "base/json.h"
#include "base/public_address.h"
#include "domain/codec.h"
#include "model/openai/kept_members.h"
#include "model/openai/openai_response.h"
#include "model/request_parts.h"

namespace reprise {
namespace {

bool IsAt(std::string_view host, std::string_view domain) {
  return host == domain || (host.ends_with(domain) && host[host.size() - domain.size() - 1] == '.');
}

}  // namespace

CacheMembers CacheMembersFor(PromptCache cache, std::string_view base_url, std::string_view model) {
  if (cache == PromptCache::kNone) return {};
  const std::string_view host = HostOf(base_url);
  const bool is_router = IsAt(host, "openrouter.ai");
  const bool takes_it = is_router || IsAt(host, "openai.com") || IsAt(host, "azure.com") || IsLoopbackHost(host);
  if (cache == PromptCache::kDefault && !takes_it) return {};
  const bool is_claude = model.find("claude") != std::string_view::npos;
  return {.has_key = !(is_router && is_claude),
          .has_control = is_router && is_claude,
          .is_long = cache == PromptCache::kLong};
}

void AppendCacheMembers(std::string& out, const ModelRequest& request, const CacheMembers& members,
                        const std::set<std::string, std::less<>>& refused, std::set<std::string, std::less<>>* sent) {
  const auto begin = [&](std::string_view name) {
    if (refused.contains(name)) return false;
    if (sent != nullptr) sent->emplace(name);
    out += ",\"";
    out += name;
    out += "\":";
    return true;
  };
  if (members.has_key && begin(kPromptCacheKey)) AppendJsonString(out, PromptCacheKey(request));
  if (members.has_key && members.is_long && begin(kPromptCacheRetention)) out += R"("24h")";
  if (members.has_control && begin(kCacheControl)) {
    out += members.is_long ? R"({"type":"ephemeral","ttl":"1h"})" : R"({"type":"ephemeral"})";
  }
}

std::string PromptCacheKey(const ModelRequest& request) {
  std::string_view begin;
  for (const Message& message : request.messages) {
    if (message.role != Role::kUser) continue;
    if (message.content) begin = *message.content;
    break;
  }
  const std::string digest = ArgumentsDigest(std::string(begin));
  return "reprise-" + digest.substr(digest.find(':') + 1, 32);
}

namespace {

using Names = std::set<std::string, std::less<>>;

// The receiver of the request.
struct Recipient {
  std::string_view provider;
  const Names& refused;
  Names* sent;                   // null: the caller does not need them
  FilesOfChat* files = nullptr;  // source of the parts
};

// The members of `object` that may stand beside ours. `object` may be null.
template <typename IsKnown>
void AppendKept(std::string& out, const Json* object, IsKnown is_known, const Recipient& recipient) {
  if (object == nullptr || !object->is_object()) return;
  for (const auto& [name, value] : object->items()) {
    if (is_known(name) || recipient.refused.contains(name)) continue;
    if (recipient.sent != nullptr) recipient.sent->insert(name);
    out += ',';
    AppendJsonString(out, name);
    out += ':';
    out += DumpJson(value);
  }
}

const Json* Find(const Json* object, std::string_view name) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(name);
  return found == object->end() ? nullptr : &*found;
}

// OpenAI rejects longer ids, which would fail every later request.
void AppendCallId(std::string& out, const std::string& id, const Recipient& recipient) {
  constexpr std::size_t kLongestId = 40;
  if (recipient.refused.contains(kShortCallIds)) return AppendJsonString(out, ShortCallId(id));
  AppendJsonString(out, id.size() > kLongestId ? SentName(id, kLongestId) : id);
}

// `kept`: the provider's own members of this call; may be null.
void AppendToolCall(std::string& out, const ToolCall& call, const Json* kept, const Recipient& recipient) {
  constexpr std::size_t kLongestName = 64;
  out += R"({"id":)";
  AppendCallId(out, call.id, recipient);
  out += R"(,"type":"function","function":{"name":)";
  AppendJsonString(out, SentName(call.name, kLongestName));
  out += R"(,"arguments":)";
  AppendJsonString(out, SentArguments(call.arguments));
  AppendKept(out, Find(kept, "function"), IsKnownFunctionMember, recipient);
  out += '}';
  AppendKept(out, kept, IsKnownCallMember, recipient);
  out += '}';
}

void AppendTextPart(std::string& out, std::string_view text) {
  out += R"({"type":"text","text":)";
  AppendJsonString(out, text);
  out += '}';
}

void AppendChatPart(std::string& out, const MessagePart& part, FilesOfChat* files) {
  const PartContent content = ReadPart(part, files);
  if (!content.problem.empty()) return AppendTextPart(out, content.problem);
  switch (part.kind) {
    case MessagePart::Kind::kImage:
      out += R"({"type":"image_url","image_url":{"url":)";
      AppendDataUrl(out, part, content.bytes);
      break;
    case MessagePart::Kind::kDocument:
      out += R"({"type":"file","file":{"filename":)";
      AppendJsonString(out, part.filename);
      out += R"(,"file_data":)";
      AppendDataUrl(out, part, content.bytes);
      break;
    case MessagePart::Kind::kAudio:
      out += R"({"type":"input_audio","input_audio":{"format":)";
      AppendJsonString(out, AudioFormat(part));
      out += R"(,"data":)";
      AppendBase64String(out, content.bytes);
      break;
  }
  out += "}}";
}

void AppendChatContent(std::string& out, std::string_view text, const std::vector<MessagePart>& parts,
                       FilesOfChat* files) {
  out += '[';
  if (!text.empty()) AppendTextPart(out, text);
  for (const MessagePart& part : parts) {
    if (out.back() != '[') out += ',';
    AppendChatPart(out, part, files);
  }
  out += ']';
}

// How many bytes of the text belong to a part; nullopt for a thinking part.
std::optional<std::size_t> TextBytes(const Json& part) {
  if (TextMember(part, "type") != "text") return std::nullopt;
  const Json& bytes = MemberOf(part, "bytes");
  return bytes.is_number_unsigned() ? bytes.get<std::size_t>() : 0;
}

// Appends the content with its thoughts in place, if `parts` fits the text.
bool AppendContentParts(std::string& out, std::string_view text, const Json* parts) {
  if (parts == nullptr || !parts->is_array() || parts->empty()) return false;
  std::size_t bytes = 0;
  for (const Json& part : *parts) bytes += TextBytes(part).value_or(0);
  if (bytes != text.size()) return false;
  out += '[';
  for (const Json& part : *parts) {
    if (out.back() != '[') out += ',';
    if (const auto size = TextBytes(part)) {
      AppendTextPart(out, text.substr(0, *size));
      text.remove_prefix(*size);
    } else {
      out += DumpJson(part);
    }
  }
  out += ']';
  return true;
}

// Appends the content with its thinking in its original form. False if there is none.
bool AppendThoughtful(std::string& out, const Message& message, const Json* kept, const Recipient& recipient) {
  const Json* const parts = Find(kept, kContentParts);
  const Json* const tagged = Find(kept, kThinkTag);
  if ((parts == nullptr && tagged == nullptr) || recipient.refused.contains(kThinkingContent)) return false;
  if (recipient.sent != nullptr) recipient.sent->emplace(kThinkingContent);
  const std::string text = message.content.value_or("");
  if (AppendContentParts(out, text, parts)) return true;
  if (tagged == nullptr || !tagged->is_string()) return false;
  AppendJsonString(out, "<think>" + tagged->get<std::string>() + "</think>\n\n" + text);
  return true;
}

void AppendContent(std::string& out, const Message& message, const Json* kept, const Recipient& recipient) {
  if (!message.parts.empty() && message.role == Role::kUser) {
    return AppendChatContent(out, message.content.value_or(""), message.parts, recipient.files);
  }
  if (message.role == Role::kAssistant && AppendThoughtful(out, message, kept, recipient)) return;
  if (message.role == Role::kTool && message.content.value_or("").empty()) {
    out += R"_("(no output)")_";
    return;
  }
  if (message.role == Role::kAssistant && !message.tool_calls.empty() && message.content.value_or("").empty()) {
    out += "null";
    return;
  }
  if (message.content) {
    AppendJsonString(out, *message.content);
  } else {
    out += R"("")";
  }
}

// The extras of `message` that go to any provider, as imports and version 0.1 stored them. They may include `content`
// (content in parts). Members that Message has itself are removed, because a request must not repeat them.
void EraseOwn(Json& extras, const Message& message) {
  for (const char* own : {"role", "tool_calls", "tool_call_id", "name"}) extras.erase(own);
  extras.erase(std::string(kAnthropicBlocks));  // of another provider's answer
  if (message.content || !message.parts.empty()) extras.erase("content");
}

void AppendMessage(std::string& out, const Message& message, const Recipient& recipient) {
  Json extras = ParseExtras(message);
  EraseOwn(extras, message);
  const Json* const kept = FindProviderExtras(extras, recipient.provider);
  out += R"({"role":")";
  out += RoleName(message.role);
  out += '"';
  if (!extras.contains("content")) {
    out += R"(,"content":)";
    AppendContent(out, message, kept, recipient);
  }
  if (!message.tool_calls.empty()) {
    out += R"(,"tool_calls":[)";
    for (const ToolCall& call : message.tool_calls) {
      AppendToolCall(out, call, Find(Find(kept, "tool_calls"), call.id), recipient);
      out += ',';
    }
    out.back() = ']';
  }
  if (message.role == Role::kTool) {
    out += R"(,"tool_call_id":)";
    AppendCallId(out, message.tool_call_id, recipient);
  }
  if (!message.name.empty() && message.role != Role::kTool) {  // results are identified by their calls' ids
    out += R"(,"name":)";
    AppendJsonString(out, message.name);
  }
  for (const auto& [key, value] : extras.items()) {
    if (key == kProviderExtras) continue;
    out += ',';
    AppendJsonString(out, key);
    out += ':';
    out += DumpJson(value);
  }
  const auto is_there = [&](std::string_view name) { return IsKnownMessageMember(name) || extras.contains(name); };
  const Json* const members = Find(kept, "message");
  AppendKept(out, members, is_there, recipient);
  const bool lacks_reasoning = message.role == Role::kAssistant && Find(members, "reasoning_content") == nullptr;
  if (lacks_reasoning && recipient.refused.contains(kMissingReasoning)) out += R"_(,"reasoning_content":"(none)")_";
  out += '}';
}

// A tool's result can hold only text, so the files of the results before `end` follow in a user message.
void AppendToolFiles(std::string& out, const Messages& messages, std::size_t end, FilesOfChat* files) {
  std::size_t begin = end;
  while (begin > 0 && messages[begin - 1].role == Role::kTool) --begin;
  std::vector<MessagePart> parts;
  for (std::size_t i = begin; i < end; ++i) {
    parts.insert(parts.end(), messages[i].parts.begin(), messages[i].parts.end());
  }
  if (parts.empty()) return;
  out += R"({"role":"user","content":)";
  AppendChatContent(out,
                    "(Not from the user: the files that the tools above have given, in the order of their results.)",
                    parts, files);
  out += "},";
}

// Appends the system prompt as a message. True if it was joined with the conversation's first system message, because
// some models' templates accept only one.
bool AppendSystem(std::string& out, const ModelRequest& request, const Recipient& recipient) {
  if (request.system.empty()) return false;
  const Message* const own = request.messages.empty() ? nullptr : &request.messages.front();
  const bool joins = own != nullptr && own->role == Role::kSystem && own->content && !own->content->empty();
  Message message{.role = Role::kSystem, .content = std::string(request.system)};
  if (joins) *message.content += "\n\n" + *own->content;
  AppendMessage(out, message, recipient);
  out += ',';
  return joins;
}

void AppendTool(std::string& out, const ToolSpec& tool) {
  out += R"({"type":"function","function":{"name":)";
  AppendJsonString(out, tool.name);
  out += R"(,"description":)";
  AppendJsonString(out, tool.description);
  out += R"(,"parameters":)";
  out += tool.parameters.empty() ? R"({"type":"object","properties":{}})" : tool.parameters;
  if (tool.strict) out += R"(,"strict":true)";
  out += "}}";
}

// A thousand chats have the same tools.
struct ToolsText {
  explicit ToolsText(std::vector<ToolSpec> of) : specs(std::move(of)) {
    text = R"(,"tools":[)";
    for (const ToolSpec& tool : specs) {
      AppendTool(text, tool);
      text += ',';
    }
    text.back() = ']';
  }
  bool operator==(const std::vector<ToolSpec>& other) const { return specs == other; }

  std::vector<ToolSpec> specs;
  std::string text;
};

void AppendFormat(std::string& out, const ModelWishes& wishes) {
  if (wishes.format != ModelWishes::Format::kSchema) {
    out += R"(,"response_format":{"type":"json_object"})";
    return;
  }
  out += R"(,"response_format":{"type":"json_schema","json_schema":{"name":)";
  AppendJsonString(out, wishes.schema_name);
  out += R"(,"schema":)" + wishes.schema;
  if (wishes.strict) out += R"(,"strict":true)";
  out += "}}";
}

void AppendToolChoice(std::string& out, const ModelWishes& wishes) {
  if (wishes.must_call_tool.empty()) {
    out += R"(,"tool_choice":"required")";
    return;
  }
  out += R"(,"tool_choice":{"type":"function","function":{"name":)";
  AppendJsonString(out, wishes.must_call_tool);
  out += "}}";
}

// Reasoning models reject some of these; a rejected one is left out from then on. Not so a format and a forced call,
// without which the answer would be of another form.
void AppendWishes(std::string& out, const ModelWishes& wishes, const Names& refused, Names* sent) {
  const auto is_said = [&](const char* name) {
    if (refused.contains(name)) return false;
    if (sent != nullptr) sent->insert(name);
    return true;
  };
  if (wishes.temperature && is_said("temperature")) out += ",\"temperature\":" + DumpJson(*wishes.temperature);
  if (wishes.top_p && is_said("top_p")) out += ",\"top_p\":" + DumpJson(*wishes.top_p);
  if (wishes.max_output_tokens > 0) {  // the older name first, because not every server knows the newer one
    const char* name = is_said("max_tokens") ? "max_tokens" : "max_completion_tokens";
    out += ",\"" + std::string(name) + "\":" + std::to_string(wishes.max_output_tokens);
  }
  if (!wishes.stop.empty() && is_said("stop")) out += ",\"stop\":" + DumpJson(wishes.stop);
  if (wishes.format != ModelWishes::Format::kText) AppendFormat(out, wishes);
  if (wishes.must_call) AppendToolChoice(out, wishes);
}

// Slightly above the final size of ordinary text, where one character in thirty is escaped.
std::size_t EstimateOpenAiSize(const ModelRequest& request) {
  std::size_t bytes = 256 + request.system.size() + request.system.size() / 16 + EncodedSize(request.messages);
  for (const Message& message : request.messages) {
    bytes += 96 + message.name.size() + message.tool_call_id.size() + message.extras.size();
    if (message.content) bytes += message.content->size() + message.content->size() / 16;
    for (const ToolCall& call : message.tool_calls) {
      bytes += 96 + call.id.size() + call.name.size() + call.arguments.size() + call.arguments.size() / 4;
    }
  }
  for (const ToolSpec& tool : request.tools) {
    bytes += 96 + tool.name.size() + tool.description.size() + tool.parameters.size();
  }
  return bytes;
}

}  // namespace

std::string BuildChatCompletionRequest(const ModelRequest& request, std::string_view provider, const Names& refused,
                                       Names* sent, Effort effort, const CacheMembers& cache, bool searches) {
  const Recipient recipient{provider, refused, sent, request.files};
  std::string out;
  out.reserve(EstimateOpenAiSize(request));
  out += R"({"model":)";
  AppendJsonString(out, request.model);
  out += R"(,"messages":[)";
  const bool joined = AppendSystem(out, request, recipient);
  for (std::size_t next = 1; next <= request.messages.size(); ++next) {
    const Message& message = request.messages[next - 1];
    if (joined && next == 1) continue;
    AppendMessage(out, message, recipient);
    out += ',';
    const bool ends_results = next == request.messages.size() || request.messages[next].role != Role::kTool;
    if (message.role == Role::kTool && ends_results) AppendToolFiles(out, request.messages, next, recipient.files);
  }
  if (out.back() == ',') out.pop_back();
  out += ']';
  if (!request.tools.empty()) {  // some servers reject an empty array
    static Interned<ToolsText, 4> known;
    out += known.Share(request.tools)->text;
  }
  if (request.wishes != nullptr) AppendWishes(out, *request.wishes, refused, sent);
  if (effort != Effort::kDefault) out += R"(,"reasoning_effort":")" + std::string(ToString(effort)) + '"';
  AppendCacheMembers(out, request, cache, refused, sent);
  if (searches) out += R"(,"web_search_options":{})";
  out += R"(,"stream":true,"stream_options":{"include_usage":true}})";
  return out;
}

}  // namespace reprise
