#include "model/request_parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace reprise {

std::string MakeProviderExtras(std::string_view provider, Json members) {
  if (members.empty()) return {};
  Json by_provider = Json::object();
  by_provider[std::string(provider)] = std::move(members);
  Json extras = Json::object();
  extras[std::string(kProviderExtras)] = std::move(by_provider);
  return DumpJson(extras);
}

Json ParseExtras(const Message& message) {
  if (message.extras.empty()) return Json::object();
  auto extras = ParseJson(message.extras, 2 * kMaxJsonDepth);
  if (!extras || !extras->is_object()) return Json::object();
  return *std::move(extras);
}

const Json* FindProviderExtras(const Json& extras, std::string_view provider) {
  const auto by_provider = extras.find(kProviderExtras);
  if (by_provider == extras.end() || !by_provider->is_object()) return nullptr;
  const auto members = by_provider->find(provider);
  return members == by_provider->end() || !members->is_object() ? nullptr : &*members;
}

std::string SentArguments(const std::string& arguments) {
  const std::size_t begin = arguments.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "{}";
  if (arguments[begin] == '{' && Json::accept(arguments)) return arguments;
  std::string wrapped = R"({"not_valid_json":)";
  AppendJsonString(wrapped, arguments);
  return wrapped + '}';
}

namespace {

bool IsPlain(std::string_view type) {
  return std::all_of(type.begin(), type.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '/' || c == '-' || c == '.' || c == '+';
  });
}

}  // namespace

PartContent ReadPart(const MessagePart& part, FilesOfChat* files) {
  auto file = files == nullptr ? Fail(ErrorCode::kNotFound, "the chat has no files") : files->Get(part.file_id);
  if (file && IsPlain(part.mime_type)) return {.bytes = std::move(file->content)};
  const std::string why = file ? "its type is not known" : file.error().message;
  return {.bytes = {},
          .problem = "(" + part.file_id.str() + ", \"" + part.filename + "\", cannot be sent: " + why + ")"};
}

void AppendDataUrl(std::string& out, const MessagePart& part, std::string_view bytes) {
  out += "\"data:";
  out += part.mime_type;  // a plain MIME type, or there are no bytes
  out += ";base64,";
  AppendBase64(out, bytes);
  out += '"';
}

void AppendBase64String(std::string& out, std::string_view bytes) {
  out += '"';
  AppendBase64(out, bytes);
  out += '"';
}

std::string_view AudioFormat(const MessagePart& part) {
  if (part.mime_type == "audio/wav" || part.mime_type == "audio/x-wav") return "wav";
  if (part.mime_type == "audio/mpeg" || part.mime_type == "audio/mp3") return "mp3";
  return "";
}

std::size_t EncodedSize(const Messages& messages) {
  std::size_t bytes = 0;
  for (const Message& message : messages) {
    for (const MessagePart& part : message.parts) bytes += static_cast<std::size_t>(part.size_bytes) / 3 * 4 + 256;
  }
  return bytes;
}

namespace {

using Kind = AnthropicBlock::Kind;

std::vector<AnthropicBlock> Kept(const Message& message, std::string_view provider) {
  std::vector<AnthropicBlock> blocks;
  if (message.extras.empty()) return blocks;
  const Json extras = ParseExtras(message);
  const Json* const own = FindProviderExtras(extras, provider);
  const Json& holder = own ? *own : extras;
  const auto kept = holder.find(own ? kBlocks : kAnthropicBlocks);
  if (kept == holder.end() || !kept->is_array()) return blocks;
  for (const Json& block : *kept) {
    const auto type = block.is_object() ? block.find("type") : block.end();
    if (type == block.end()) continue;
    if (*type == "text") {
      const auto bytes = block.find("bytes");
      const bool is_size = bytes != block.end() && bytes->is_number_unsigned();
      blocks.push_back({.kind = Kind::kText, .text_bytes = is_size ? bytes->get<std::size_t>() : 0});
    } else if (*type == "tool_use") {
      blocks.push_back({.kind = Kind::kToolUse});
    } else {
      blocks.push_back({.kind = Kind::kVerbatim, .json = DumpJson(block)});
    }
  }
  return blocks;
}

bool Fit(const std::vector<AnthropicBlock>& blocks, const Message& message) {
  std::size_t left = message.content ? message.content->size() : 0, calls = 0;
  for (const AnthropicBlock& block : blocks) {
    if (block.text_bytes > left) return false;
    left -= block.text_bytes;
    if (block.kind == Kind::kToolUse) ++calls;
  }
  return left == 0 && calls == message.tool_calls.size();
}

}  // namespace

std::string ExtrasOf(const std::vector<AnthropicBlock>& blocks, std::string_view provider) {
  const bool plain = std::none_of(blocks.begin(), blocks.end(),
                                  [](const AnthropicBlock& block) { return block.kind == Kind::kVerbatim; });
  if (plain) return {};
  Json kept = Json::array();
  for (const AnthropicBlock& block : blocks) {
    switch (block.kind) {
      case Kind::kText:
        kept.push_back({{"type", "text"}, {"bytes", block.text_bytes}});
        break;
      case Kind::kToolUse:
        kept.push_back({{"type", "tool_use"}});
        break;
      case Kind::kVerbatim:
        if (auto json = ParseJson(block.json, kMaxJsonDepth, DuplicateMembers::kLastWins))
          kept.push_back(*std::move(json));
        break;
    }
  }
  return MakeProviderExtras(provider, {{std::string(kBlocks), std::move(kept)}});
}

std::vector<AnthropicBlock> BlocksOf(const Message& message, std::string_view provider) {
  std::vector<AnthropicBlock> blocks = Kept(message, provider);
  if (!blocks.empty() && Fit(blocks, message)) return blocks;
  std::erase_if(blocks, [](const AnthropicBlock& block) { return block.kind != Kind::kVerbatim; });
  blocks.push_back({.kind = Kind::kText, .text_bytes = std::string::npos});
  blocks.resize(blocks.size() + message.tool_calls.size(), {.kind = Kind::kToolUse});
  return blocks;
}

}  // namespace reprise
