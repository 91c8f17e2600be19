#include "model/part_content.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace reprise {
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

}  // namespace reprise
