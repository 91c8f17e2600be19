#include "mcp/content.h"

#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxText = 128 * 1024;

std::string Text(const Json& object, const char* member) {
  if (!object.is_object()) return "";
  const auto found = object.find(member);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

const Json& Member(const Json& object, const char* member) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(member);
  return found == object.end() ? kNone : *found;
}

// Of base64, without decoding it.
std::string SizeText(const std::string& base64) {
  const std::size_t bytes = base64.size() / 4 * 3;
  return bytes < 1024 ? std::to_string(bytes) + " bytes" : std::to_string(bytes / 1024) + " KiB";
}

std::string TypeText(const Json& object) {
  const std::string type = Text(object, "mimeType");
  return type.empty() ? "" : ", " + type;
}

std::string ContentsText(const Json& contents) {
  const std::string uri = Text(contents, "uri");
  if (Member(contents, "text").is_string()) return "[" + uri + "]\n" + Text(contents, "text");
  return "(" + uri + TypeText(contents) + ", " + SizeText(Text(contents, "blob")) + ", not text)";
}

std::string BlockText(const Json& block) {
  const std::string type = Text(block, "type");
  if (type == "text") return Text(block, "text");
  if (type == "image" || type == "audio")
    return "(" + type + TypeText(block) + ", " + SizeText(Text(block, "data")) + ", not shown)";
  if (type == "resource") return ContentsText(Member(block, "resource"));
  if (type == "resource_link") {
    std::string text = "(resource " + Text(block, "uri") + ": " + Text(block, "name") + TypeText(block) + ")";
    if (const std::string about = Text(block, "description"); !about.empty()) text += " " + about;
    return text;
  }
  return "(content of an unknown type)";
}

void AddLine(std::string& text, const std::string& line) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += line;
}

// Servers repeat structured content as text, for those who do not know it: as JSON, or its only member as it is.
bool Repeats(const std::string& text, const Json& structured) {
  if (structured.size() == 1 && structured.front() == text) return true;
  const auto parsed = ParseJson(text);
  return parsed && *parsed == structured;
}

std::string Cut(std::string text) {
  if (text.size() <= kMaxText) return text;
  const std::size_t left_out = text.size() - kMaxText;
  text.resize(kMaxText);
  text.resize(text.size() - IncompleteUtf8Tail(text));
  return text + "\n(... " + std::to_string(left_out) + " bytes cut ...)";
}

}  // namespace

ToolOutcome ToolResultText(const Json& result) {
  std::string text;
  const Json& structured = Member(result, "structuredContent");
  if (Member(structured, "requires_confirmation") == true) {
    std::string message = Text(structured, "message");
    if (message.empty()) message = "The tool asks for confirmation.";
    return {.output = Cut(std::move(message)), .requires_confirmation = true};
  }
  bool told = !structured.is_object();
  const Json& content = Member(result, "content");
  if (content.is_array()) {
    for (const Json& block : content) {
      AddLine(text, BlockText(block));
      told = told || (Text(block, "type") == "text" && Repeats(Text(block, "text"), structured));
    }
  }
  if (!told) AddLine(text, DumpJson(structured));
  if (text.empty()) text = "(no output)";
  return {.output = Cut(std::move(text)), .is_error = Member(result, "isError") == true};
}

std::string ResourceText(const Json& result) {
  std::string text;
  const Json& contents = Member(result, "contents");
  if (contents.is_array()) {
    for (const Json& each : contents) AddLine(text, ContentsText(each));
  }
  return text.empty() ? "(empty)" : Cut(std::move(text));
}

std::string PromptText(const Json& result) {
  std::string text = Text(result, "description");
  const Json& messages = Member(result, "messages");
  if (messages.is_array()) {
    for (const Json& message : messages) {
      AddLine(text, Text(message, "role") + ": " + BlockText(Member(message, "content")));
    }
  }
  return text.empty() ? "(empty)" : Cut(std::move(text));
}

}  // namespace reprise
