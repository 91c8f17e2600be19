#include "agent/message_parts.h"

#include <optional>
#include <string>
#include <utility>

#include "base/logging.h"
#include "domain/file_kind.h"

namespace reprise {
namespace {

constexpr std::size_t kMostFiles = 20;  // of one call

std::optional<MessagePart::Kind> PartKind(FileKind kind) {
  if (kind == FileKind::kImage) return MessagePart::Kind::kImage;
  if (kind == FileKind::kAudio) return MessagePart::Kind::kAudio;
  if (IsDocument(kind)) return MessagePart::Kind::kDocument;
  return std::nullopt;
}

void AddLine(std::string& text, const std::string& line) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += line;
}

// "browser_screenshot.png"
std::string NameFor(std::string_view tool_name, std::string_view mime_type) {
  std::string_view suffix = mime_type.substr(mime_type.find('/') + 1);
  suffix = suffix.substr(0, suffix.find_first_of(";+"));
  if (suffix == "jpeg") suffix = "jpg";
  if (suffix == "mpeg") suffix = "mp3";
  return std::string(tool_name) + "." + std::string(suffix);
}

}  // namespace

std::optional<MessagePart> PartOf(const FileInfo& info, std::string_view content) {
  FileNature nature = NatureOf(info.filename, info.mime_type, content);
  const auto kind = PartKind(nature.kind);
  if (!kind) return std::nullopt;
  return MessagePart{.kind = *kind,
                     .file_id = info.id,
                     .mime_type = std::move(nature.mime_type),
                     .filename = info.filename,
                     .size_bytes = info.size_bytes,
                     .tokens = nature.tokens};
}

std::vector<Attachment> AttachmentsOf(const std::vector<MessagePart>& parts) {
  std::vector<Attachment> files;
  for (const MessagePart& part : parts) {
    files.push_back(
        {.id = part.file_id, .filename = part.filename, .mime_type = part.mime_type, .size_bytes = part.size_bytes});
  }
  return files;
}

void KeepFiles(FilesOfChat& files, std::string_view tool_name, ToolOutcome& outcome) {
  std::size_t kept = 0;
  for (ToolFile& file : std::exchange(outcome.files, {})) {
    if (kept++ == kMostFiles) {
      AddLine(outcome.output, "(further files are left out: a call may give " + std::to_string(kMostFiles) + ")");
      break;
    }
    const FileNature nature = NatureOf(file.filename, file.mime_type, file.content);
    const std::string& type = nature.mime_type.empty() ? file.mime_type : nature.mime_type;
    const std::string name = file.filename.empty() ? NameFor(tool_name, type) : file.filename;
    const std::string size = std::to_string(file.content.size());
    FileInfo looked_at{.id = FileId::Random(), .filename = name, .mime_type = type, .size_bytes = file.content.size()};
    auto part = PartOf(looked_at, file.content);
    const auto info = files.Add(name, type, std::move(file.content));
    if (!info) {
      LogWarning("what a tool has given could not be kept", {{"tool", tool_name}, {"code", info.error().reason}});
      AddLine(outcome.output,
              "(a file, " + type + ", " + size + " bytes, could not be kept: " + info.error().message + ")");
      continue;
    }
    AddLine(outcome.output,
            "[" + info->id.str() + ": \"" + info->filename + "\", " + info->mime_type + ", " + size + " bytes]");
    if (!part) continue;  // it is named; models take no such file
    part->file_id = info->id;
    part->filename = info->filename;
    outcome.parts.push_back(*std::move(part));
  }
}

}  // namespace reprise
