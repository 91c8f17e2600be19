#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/openai/kept_members.h"
#include "model/openai/openai_request.h"
#include "model/request_parts.h"

namespace reprise {
namespace {

void AppendMember(std::string& out, std::string_view name, std::string_view text) {
  out += ",\"";
  out += name;
  out += "\":";
  AppendJsonString(out, text);
}

// A text, or the text parts of an imported message.
std::string ContentOf(const Message& message) {
  if (message.content) return *message.content;
  std::string text;
  const auto extras = message.extras.empty() ? Json() : ParseJson(message.extras, 2 * kMaxJsonDepth).value_or(Json());
  if (!extras.is_object() || !extras.contains("content") || !extras["content"].is_array()) return text;
  for (const Json& part : extras["content"]) text += TextMember(part, "text");
  return text;
}

void AppendSaid(std::string& out, std::string_view role, const std::string& text) {
  out += R"({"type":"message","role":")";
  out += role;
  out += R"(","content":[{"type":"input_text","text":)";
  AppendJsonString(out, text);
  out += "}]},";
}

void AppendInputText(std::string& out, std::string_view text) {
  out += R"({"type":"input_text","text":)";
  AppendJsonString(out, text);
  out += '}';
}

void AppendInputPart(std::string& out, const MessagePart& part, FilesOfChat* files) {
  const PartContent content = ReadPart(part, files);
  if (!content.problem.empty()) return AppendInputText(out, content.problem);
  switch (part.kind) {
    case MessagePart::Kind::kImage:
      out += R"({"type":"input_image","detail":"auto","image_url":)";
      AppendDataUrl(out, part, content.bytes);
      break;
    case MessagePart::Kind::kDocument:
      out += R"({"type":"input_file","filename":)";
      AppendJsonString(out, part.filename);
      out += R"(,"file_data":)";
      AppendDataUrl(out, part, content.bytes);
      break;
    case MessagePart::Kind::kAudio:
      out += R"({"type":"input_audio","input_audio":{"format":)";
      AppendJsonString(out, AudioFormat(part));
      out += R"(,"data":)";
      AppendBase64String(out, content.bytes);
      out += '}';
      break;
  }
  out += '}';
}

// A message's text and files, both as its content and as a call's output.
void AppendInputContent(std::string& out, const Message& message, FilesOfChat* files) {
  out += '[';
  if (const std::string text = ContentOf(message); !text.empty()) AppendInputText(out, text);
  for (const MessagePart& part : message.parts) {
    if (out.back() != '[') out += ',';
    AppendInputPart(out, part, files);
  }
  out += ']';
}

void AppendInput(std::string& out, const Message& message, std::string_view provider, const KeptWays& ways,
                 FilesOfChat* files) {
  switch (message.role) {
    case Role::kSystem:
      return AppendSaid(out, "developer", ContentOf(message));
    case Role::kUser:
      if (!message.parts.empty()) {
        out += R"({"type":"message","role":"user","content":)";
        AppendInputContent(out, message, files);
        out += "},";
        return;
      }
      return AppendSaid(out, "user", ContentOf(message));
    case Role::kAssistant:
      return AppendAssistantItems(out, message, provider, ways);
    case Role::kTool:
      out += R"({"type":"function_call_output","call_id":)";
      AppendJsonString(out, SentCallId(message.tool_call_id));
      if (message.parts.empty()) {
        const std::string output = ContentOf(message);
        AppendMember(out, "output", output.empty() ? "(no output)" : output);
      } else {
        out += R"(,"output":)";
        AppendInputContent(out, message, files);
      }
      out += "},";
      return;
  }
}

// Our own are not strict, because strict mode forbids optional parameters.
void AppendTool(std::string& out, const ToolSpec& tool) {
  out += R"({"type":"function","name":)";
  AppendJsonString(out, tool.name);
  AppendMember(out, "description", tool.description);
  out += R"(,"parameters":)";
  out += tool.parameters.empty() ? R"({"type":"object","properties":{}})" : tool.parameters;
  out += tool.strict ? R"(,"strict":true},)" : R"(,"strict":false},)";
}

void AppendSearchTool(std::string& out, const WebSearchOptions& search) {
  out += R"({"type":"web_search")";
  if (!search.allowed_domains.empty()) {
    out += R"(,"filters":{"allowed_domains":)" + DumpJson(search.allowed_domains) + "}";
  }
  out += "},";
}

void AppendIncluded(std::string& out, bool reasons, bool sources) {
  std::vector<std::string_view> included;
  if (reasons) included.push_back(kEncryptedReasoning);
  if (sources) included.push_back(kSearchSources);
  if (!included.empty()) out += ",\"include\":" + DumpJson(included);
}

void AppendReasoning(std::string& out, const ModelFacts& facts, bool with_summary) {
  std::string members;
  if (facts.effort != Effort::kDefault) AppendMember(members, "effort", ToString(facts.effort));
  if (with_summary && facts.effort != Effort::kNone) AppendMember(members, "summary", "auto");
  if (members.empty()) return;
  out += R"(,"reasoning":{)";
  out += members.substr(1);
  out += '}';
}

// This interface has no stop texts.
void AppendWishes(std::string& out, const ModelWishes& wishes, const std::set<std::string, std::less<>>& refused) {
  if (wishes.temperature && !refused.contains(kTemperature)) {
    out += ",\"temperature\":" + DumpJson(*wishes.temperature);
  }
  if (wishes.top_p && !refused.contains(kTopP)) out += ",\"top_p\":" + DumpJson(*wishes.top_p);
  if (wishes.format == ModelWishes::Format::kJson) out += R"(,"text":{"format":{"type":"json_object"}})";
  if (wishes.format == ModelWishes::Format::kSchema) {
    out += R"(,"text":{"format":{"type":"json_schema","schema":)" + wishes.schema;
    AppendMember(out, "name", wishes.schema_name);
    if (wishes.strict) out += R"(,"strict":true)";
    out += "}}";
  }
  if (!wishes.must_call) return;
  if (wishes.must_call_tool.empty()) {
    AppendMember(out, "tool_choice", "required");
    return;
  }
  out += R"(,"tool_choice":{"type":"function")";
  AppendMember(out, "name", wishes.must_call_tool);
  out += '}';
}

std::size_t EstimateSize(const ModelRequest& request) {
  std::size_t bytes = 512 + request.system.size() + request.system.size() / 16 + EncodedSize(request.messages);
  for (const Message& message : request.messages) {
    bytes += 128 + message.extras.size();
    if (message.content) bytes += message.content->size() + message.content->size() / 16;
    for (const ToolCall& call : message.tool_calls) bytes += 128 + call.arguments.size() + call.arguments.size() / 4;
  }
  for (const ToolSpec& tool : request.tools) bytes += 128 + tool.description.size() + tool.parameters.size();
  return bytes;
}

void EndList(std::string& out) {
  if (out.back() == ',') out.pop_back();
  out += ']';
}

}  // namespace

std::vector<Wish> LeftOutOfResponses(const ModelWishes& wishes, const std::set<std::string, std::less<>>& refused) {
  std::vector<Wish> left_out;
  if (wishes.temperature && refused.contains(kTemperature)) left_out.push_back(Wish::kTemperature);
  if (wishes.top_p && refused.contains(kTopP)) left_out.push_back(Wish::kTopP);
  if (!wishes.stop.empty()) left_out.push_back(Wish::kStop);
  return left_out;
}

std::string BuildResponsesRequest(const ModelRequest& request, const ModelFacts& facts, std::string_view provider,
                                  const std::set<std::string, std::less<>>& refused, const CacheMembers& cache,
                                  const WebSearchOptions* search) {
  const bool reasons = !refused.contains(kEncryptedReasoning);
  std::string out;
  out.reserve(EstimateSize(request));
  out += R"({"model":)";
  AppendJsonString(out, request.model);
  if (!request.system.empty()) AppendMember(out, "instructions", request.system);
  if (!request.tools.empty() || search != nullptr) {
    out += R"(,"tools":[)";
    for (const ToolSpec& tool : request.tools) AppendTool(out, tool);
    if (search != nullptr) AppendSearchTool(out, *search);
    EndList(out);
  }
  if (search != nullptr && search->max_uses > 0 && !refused.contains(kMostToolCalls)) {
    out += ",\"max_tool_calls\":" + std::to_string(search->max_uses);
  }
  const KeptWays ways{.items = !refused.contains(kAnswerItems),
                      .reasoning = reasons && !refused.contains(kReasoningItems),
                      .searches = !refused.contains(kSearchItems)};
  out += R"(,"input":[)";
  for (const Message& message : request.messages) {
    AppendInput(out, message, provider, ways, request.files);
  }
  EndList(out);
  const std::int64_t wished = request.wishes != nullptr ? request.wishes->max_output_tokens : 0;
  const std::int64_t most = wished > 0 ? wished : facts.max_output_tokens;
  if (most > 0) out += R"(,"max_output_tokens":)" + std::to_string(most);
  if (request.wishes != nullptr) AppendWishes(out, *request.wishes, refused);
  AppendIncluded(out, reasons, search != nullptr && !refused.contains(kSearchSources));
  if (reasons) AppendReasoning(out, facts, !refused.contains(kReasoningSummary));
  AppendCacheMembers(out, request, cache, refused);
  out += R"(,"store":false,"stream":true})";
  return out;
}

}  // namespace reprise
