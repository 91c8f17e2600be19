#include "model/openai_request.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json.h"
#include "base/json_writer.h"
#include "model/anthropic_blocks.h"

namespace reprise {
namespace {

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
    case Role::kTool:
      return "tool";
  }
  return "user";
}

void AppendToolCall(std::string& out, const ToolCall& call) {
  out += R"({"id":)";
  AppendJsonString(out, call.id);
  out += R"(,"type":"function","function":{"name":)";
  AppendJsonString(out, call.name);
  out += R"(,"arguments":)";
  // "" is not JSON, and some servers parse what they are sent back.
  AppendJsonString(out, call.arguments.empty() ? "{}" : call.arguments);
  out += "}}";
}

void AppendContent(std::string& out, const Message& message) {
  if (message.content) {
    AppendJsonString(out, *message.content);
  } else {
    // Only an assistant message that calls tools may have none.
    out += message.role == Role::kAssistant && !message.tool_calls.empty() ? "null" : R"("")";
  }
}

// The extras of `message`, or an empty object. `content` may be among them (content in parts); the other members that
// Message has itself may not, and a request must not hold them twice.
Json ExtrasOf(const Message& message) {
  if (message.extras.empty()) return Json::object();
  auto extras = ParseJson(message.extras, 2 * kMaxJsonDepth);
  if (!extras || !extras->is_object()) return Json::object();
  for (const char* own : {"role", "tool_calls", "tool_call_id", "name"}) extras->erase(own);
  extras->erase(std::string(kAnthropicBlocks));  // of an answer that came from elsewhere
  if (message.content) extras->erase("content");
  return *std::move(extras);
}

void AppendMessage(std::string& out, const Message& message) {
  const Json extras = ExtrasOf(message);
  out += R"({"role":")";
  out += RoleName(message.role);
  out += '"';
  if (!extras.contains("content")) {
    out += R"(,"content":)";
    AppendContent(out, message);
  }
  if (!message.tool_calls.empty()) {
    out += R"(,"tool_calls":[)";
    for (const ToolCall& call : message.tool_calls) {
      AppendToolCall(out, call);
      out += ',';
    }
    out.back() = ']';
  }
  if (message.role == Role::kTool) {
    out += R"(,"tool_call_id":)";
    AppendJsonString(out, message.tool_call_id);
  }
  if (!message.name.empty()) {
    out += R"(,"name":)";
    AppendJsonString(out, message.name);
  }
  for (const auto& [key, value] : extras.items()) {
    out += ',';
    AppendJsonString(out, key);
    out += ':';
    out += DumpJson(value);
  }
  out += '}';
}

// The system prompt as a message of its own. One that the conversation begins with is joined to it (true): some models'
// templates take no second.
bool AppendSystem(std::string& out, const ModelRequest& request) {
  if (request.system.empty()) return false;
  const Message* const own = request.messages.empty() ? nullptr : &request.messages.front();
  const bool joins = own != nullptr && own->role == Role::kSystem && own->content && !own->content->empty();
  Message message{.role = Role::kSystem, .content = std::string(request.system)};
  if (joins) *message.content += "\n\n" + *own->content;
  AppendMessage(out, message);
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
  out += "}}";
}

// A little above the final size in ordinary text, where one character in thirty is escaped.
std::size_t EstimateSize(const ModelRequest& request) {
  std::size_t bytes = 256 + request.system.size() + request.system.size() / 16;
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

std::string BuildChatCompletionRequest(const ModelRequest& request) {
  std::string out;
  out.reserve(EstimateSize(request));
  out += R"({"model":)";
  AppendJsonString(out, request.model);
  out += R"(,"messages":[)";
  const bool joined = AppendSystem(out, request);
  for (const Message& message : request.messages) {
    if (joined && &message == &request.messages.front()) continue;
    AppendMessage(out, message);
    out += ',';
  }
  if (out.back() == ',') out.pop_back();
  out += ']';
  if (!request.tools.empty()) {  // an empty array is refused by some
    out += R"(,"tools":[)";
    for (const ToolSpec& tool : request.tools) {
      AppendTool(out, tool);
      out += ',';
    }
    out.back() = ']';
  }
  out += R"(,"stream":true,"stream_options":{"include_usage":true}})";
  return out;
}

}  // namespace reprise
