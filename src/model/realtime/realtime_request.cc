#include "model/realtime/realtime_request.h"

#include <algorithm>
#include <cstddef>

#include "base/json.h"
#include "base/text.h"
#include "base/wav.h"
#include "model/openai/kept_members.h"
#include "model/request_parts.h"

namespace reprise {
namespace {

void AppendRealtimeMember(std::string& out, std::string_view name, std::string_view text) {
  out += ",\"";
  out += name;
  out += "\":";
  AppendJsonString(out, text);
}

// Gathers the items of a conversation, as they are sent and as they are recorded.
class ItemWriter {
 public:
  ItemWriter(const ModelRequest& request, std::size_t heard) : request_(request), heard_(heard) {}

  void Add(std::size_t at) {
    const Message& message = request_.messages[at];
    switch (message.role) {
      case Role::kSystem:
        return AddSaid("system", "input_text", message, at);
      case Role::kUser:
        return AddSaid("user", "input_text", message, at);
      case Role::kAssistant:
        if (!message.content.value_or("").empty()) AddSaid("assistant", "output_text", message, at);
        for (const ToolCall& call : message.tool_calls) AddCall(call);
        return;
      case Role::kTool:
        return AddResult(message);
    }
  }

  std::vector<std::string> sent, recorded;

 private:
  void Put(const std::string& text) {
    sent_item_ += text;
    recorded_item_ += text;
  }
  void EndItem() {
    sent.push_back(std::exchange(sent_item_, {}));
    recorded.push_back(std::exchange(recorded_item_, {}));
  }

  void AddSaid(const std::string& role, const std::string& kind, const Message& message, std::size_t at) {
    Put(R"({"type":"message","role":")" + role + R"(","content":[)");
    is_first_ = true;
    if (const std::string text = message.content.value_or(""); !text.empty()) PutText(kind, text);
    for (const MessagePart& part : message.parts) PutPart(kind, part, at == heard_);
    Put("]}");
    EndItem();
  }

  void PutComma() {
    if (!std::exchange(is_first_, false)) Put(",");
  }
  void PutText(const std::string& kind, std::string_view text) {
    PutComma();
    std::string content = R"({"type":")" + kind + R"(","text":)";
    AppendJsonString(content, text);
    Put(content + "}");
  }

  void PutPart(const std::string& kind, const MessagePart& part, bool is_heard) {
    if (part.kind == MessagePart::Kind::kAudio && !is_heard) {
      return PutText(kind, "(The recording \"" + part.filename + "\" was heard when it came.)");
    }
    const PartContent content = ReadPart(part, request_.files);
    if (!content.problem.empty()) return PutText(kind, content.problem);
    if (part.kind == MessagePart::Kind::kImage) {
      PutComma();
      std::string image = R"({"type":"input_image","image_url":)";
      AppendDataUrl(image, part, content.bytes);
      return Put(image + "}");
    }
    const auto samples = part.kind == MessagePart::Kind::kAudio ? SamplesIn(content.bytes) : std::nullopt;
    if (!samples) {
      return PutText(kind, "(\"" + part.filename + "\" cannot be sent: this model hears WAV files of 24 kHz, 16 bits " +
                               "and one channel)");
    }
    PutComma();
    Put(R"({"type":"input_audio","audio":)");
    AppendBase64String(sent_item_, *samples);
    AppendJsonString(recorded_item_, part.file_id.str());
    Put("}");
  }

  void AddCall(const ToolCall& call) {
    std::string item = R"({"type":"function_call")";
    AppendRealtimeMember(item, "call_id", SentCallId(call.id));
    AppendRealtimeMember(item, "name", call.name);
    AppendRealtimeMember(item, "arguments", SentArguments(call.arguments));
    Put(item + "}");
    EndItem();
  }

  void AddResult(const Message& message) {
    std::string output = message.content.value_or("");
    for (const MessagePart& part : message.parts) output += "\n(\"" + part.filename + "\" cannot be shown to you)";
    std::string item = R"({"type":"function_call_output")";
    AppendRealtimeMember(item, "call_id", SentCallId(message.tool_call_id));
    AppendRealtimeMember(item, "output", output.empty() ? "(no output)" : output);
    Put(item + "}");
    EndItem();
  }

  const ModelRequest& request_;
  const std::size_t heard_;
  bool is_first_ = true;  // nothing stands in the item's content yet
  std::string sent_item_, recorded_item_;
};

std::string SessionOf(const ModelRequest& request, const ModelFacts& facts, std::string_view voice, bool speaks) {
  std::string session = R"({"type":"realtime","output_modalities":[")";
  session += speaks ? "audio" : "text";
  session += "\"]";
  if (!request.system.empty()) AppendRealtimeMember(session, "instructions", request.system);
  constexpr std::string_view kFormat = R"("format":{"type":"audio/pcm","rate":24000})";
  session += R"(,"audio":{"input":{)";
  session += kFormat;
  session += R"(,"turn_detection":null},"output":{)";
  session += kFormat;
  if (!voice.empty()) AppendRealtimeMember(session, "voice", voice);
  session += R"(}},"tools":[)";
  for (const ToolSpec& tool : request.tools) {
    if (session.back() != '[') session += ',';
    session += R"({"type":"function")";
    AppendRealtimeMember(session, "name", tool.name);
    AppendRealtimeMember(session, "description", tool.description);
    session += R"(,"parameters":)";
    session += tool.parameters.empty() ? R"({"type":"object","properties":{}})" : tool.parameters;
    session += '}';
  }
  session += ']';
  const bool must_call = request.wishes != nullptr && request.wishes->must_call;
  AppendRealtimeMember(session, "tool_choice", must_call ? "required" : "auto");
  const std::int64_t wished = request.wishes != nullptr ? request.wishes->max_output_tokens : 0;
  const std::int64_t most = wished > 0 ? wished : facts.max_output_tokens;
  if (most > 0) session += R"(,"max_output_tokens":)" + std::to_string(most);
  return session + "}";
}

}  // namespace

RealtimeRequest BuildRealtimeRequest(const ModelRequest& request, const ModelFacts& facts, std::string_view voice) {
  std::size_t heard = request.messages.size();  // the person's last message
  while (heard > 0 && !IsOfPerson(request.messages[heard - 1])) --heard;
  const bool speaks = heard > 0 && std::ranges::any_of(request.messages[heard - 1].parts, [](const MessagePart& part) {
                        return part.kind == MessagePart::Kind::kAudio;
                      });
  ItemWriter items(request, heard - 1);
  for (std::size_t i = 0; i < request.messages.size(); ++i) items.Add(i);

  const std::string session = SessionOf(request, facts, voice, speaks);
  RealtimeRequest built;
  built.messages.push_back(R"({"type":"session.update","session":)" + session + "}");
  for (const std::string& item : items.sent) {
    built.messages.push_back(R"({"type":"conversation.item.create","item":)" + item + "}");
  }
  built.messages.emplace_back(R"({"type":"response.create"})");
  built.body = R"({"model":)";
  AppendJsonString(built.body, request.model);
  built.body += R"(,"session":)" + session + R"(,"input":[)";
  for (const std::string& item : items.recorded) {
    if (built.body.back() != '[') built.body += ',';
    built.body += item;
  }
  built.body += "]}";
  return built;
}

}  // namespace reprise
