#include "agent/history.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/logging.h"
#include "base/text.h"
#include "domain/file_kind.h"

namespace reprise {

std::size_t CompleteToolCalls(Messages& messages, std::string_view placeholder, std::size_t first) {
  std::size_t added = 0;
  for (std::size_t i = first; i < messages.size(); ++i) {
    if (messages[i].tool_calls.empty()) continue;
    std::size_t end = i + 1;
    std::set<std::string, std::less<>> answered;
    for (; end < messages.size() && messages[end].role == Role::kTool; ++end)
      answered.insert(messages[end].tool_call_id);
    std::vector<Message> missing;
    for (const ToolCall& call : messages[i].tool_calls) {
      if (answered.contains(call.id)) continue;
      missing.push_back(Message{.role = Role::kTool,
                                .content = std::string(placeholder),
                                .tool_calls = {},
                                .tool_call_id = call.id,
                                .name = call.name,
                                .is_error = true});
    }
    added += missing.size();
    i = end + missing.size() - 1;
    if (!missing.empty()) messages.Insert(end, std::move(missing));
  }
  return added;
}

std::string ChangedByHook(const std::string& arguments) {
  return "(A hook changed the arguments to " + arguments + ")\n";
}

namespace {

constexpr std::size_t kMostFiles = 20;  // per call
// Limits for the text of one document and of all together, to leave room for the rest. Tools can read more.
constexpr std::size_t kMaxDocumentText = 32 * 1024;
constexpr std::size_t kMaxAllText = 128 * 1024;

bool IsSentRecording(std::string_view type) { return type == "audio/wav" || type == "audio/mpeg"; }

bool IsSentImage(std::string_view type) {
  return type == "image/png" || type == "image/jpeg" || type == "image/gif" || type == "image/webp";
}

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
  if (!kind || !nature.problem.empty()) return std::nullopt;
  return MessagePart{.kind = *kind,
                     .file_id = info.id,
                     .mime_type = std::move(nature.mime_type),
                     .filename = info.filename,
                     .size_bytes = info.size_bytes,
                     .tokens = nature.tokens};
}

bool TakesRecording(const ModelAbilities& abilities, const MessagePart& part) {
  return abilities.audio == true && IsSentRecording(part.mime_type);
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
    if (!nature.problem.empty()) AddLine(outcome.output, "(it cannot be shown to you: " + nature.problem + ")");
    if (!part) continue;  // only named, because models accept no such file
    part->file_id = info->id;
    part->filename = info->filename;
    outcome.parts.push_back(*std::move(part));
  }
}

std::string MarkedText(const FileId& id, std::string_view text, std::size_t room) {
  std::string_view shown = text.substr(0, room);
  shown = shown.substr(0, shown.size() - IncompleteUtf8Tail(shown));
  std::string marked = "----- begin " + id.str() + " -----\n";
  marked += shown;
  if (!shown.ends_with('\n')) marked += '\n';
  marked += "----- end " + id.str() + " -----\n";
  if (shown.size() < text.size()) {
    marked += "[cut: the first " + std::to_string(shown.size()) + " of " + std::to_string(text.size()) +
              " bytes; read_chat_file reads the rest]\n";
  }
  return marked;
}

// --- MessageParts ----------------------------------------------------------------------------------------------------

struct MessageParts::Room {
  std::uint64_t bytes;
  std::size_t images;
  std::int64_t tokens;
  std::size_t text;

  // Why the part does not fit; empty if it fits, and then takes its room.
  std::string Take(const MessagePart& part) {
    if (part.size_bytes > bytes) return "the files of one request would be too large together";
    if (part.kind == MessagePart::Kind::kImage && images == 0) return "one request would have too many images";
    if (part.tokens > tokens) return "the model has not so much room";
    bytes -= part.size_bytes;
    tokens -= part.tokens;
    if (part.kind == MessagePart::Kind::kImage) --images;
    return {};
  }
};

MessageParts::MessageParts(FilesOfChat* files, DocumentReader* documents, PartRecipient recipient)
    : files_(files), documents_(documents), recipient_(recipient) {}

bool MessageParts::HasAny(const Messages& messages) {
  return std::ranges::any_of(messages, [](const Message& message) { return !message.parts.empty(); });
}

// The rest is for the messages' texts and for the answer.
std::int64_t MessageParts::MostTokens() const {
  return recipient_.window == 0 ? std::numeric_limits<std::int64_t>::max() : recipient_.window / 2;
}

// The limit for one document.
std::size_t MessageParts::MostText() const {
  if (recipient_.window == 0) return kMaxDocumentText;
  return std::min(kMaxDocumentText, static_cast<std::size_t>(recipient_.window / 2));  // a sixth of the window's bytes
}

std::string MessageParts::WhyNotAsIs(const MessagePart& part) const {
  if (!why_none_.empty()) return why_none_;
  const ModelAbilities& can = recipient_.abilities;
  const PartLimits& limits = recipient_.limits;
  const auto ability = [](std::optional<bool> known, const std::string& what) -> std::string {
    if (known) return *known ? "" : "the model takes no " + what;
    return "it is not known whether the model takes " + what;
  };
  switch (part.kind) {
    case MessagePart::Kind::kImage:
      if (auto why = ability(can.images, "images"); !why.empty()) return why;
      if (!IsSentImage(part.mime_type)) return "models take no images of the type " + part.mime_type;
      if (part.size_bytes > limits.image_bytes) {
        return "it has " + std::to_string(part.size_bytes) + " bytes, and images of up to " +
               std::to_string(limits.image_bytes) + " are sent";
      }
      return {};
    case MessagePart::Kind::kDocument:
      if (part.mime_type != "application/pdf") return "models take only PDF as it is";
      if (auto why = ability(can.pdf, "PDF"); !why.empty()) return why;
      if (part.tokens == 0) return "models take no PDF that is encrypted or damaged";
      if (part.tokens > limits.pages * kTokensPerPage) {
        return "it has about " + std::to_string(part.tokens / kTokensPerPage) + " pages, and PDF of up to " +
               std::to_string(limits.pages) + " are sent as they are";
      }
      break;
    case MessagePart::Kind::kAudio:
      if (auto why = ability(can.audio, "recordings"); !why.empty()) return why;
      if (!IsSentRecording(part.mime_type)) {
        return "models take recordings as wav or mp3, and this is " + part.mime_type;
      }
      break;
  }
  if (part.size_bytes > limits.request_bytes) {
    return "it has " + std::to_string(part.size_bytes) + " bytes, and a request may have files of " +
           std::to_string(limits.request_bytes);
  }
  return {};
}

const MessageParts::DocumentText& MessageParts::TextOf(const MessagePart& part, const std::stop_token& stop) {
  const auto known = texts_.find(part.file_id);
  if (known != texts_.end()) return known->second;
  const auto read = [&]() -> DocumentText {
    if (files_ == nullptr) return {.text = {}, .problem = "the chat has no files"};
    if (documents_ == nullptr) return {.text = {}, .problem = "this server reads no documents"};
    const auto file = files_->Get(part.file_id);
    if (!file) return {.text = {}, .problem = file.error().message};
    const auto text = documents_->Read(*file, stop);
    if (!text) return {.text = {}, .problem = text.error().message};
    if ((*text)->find_first_not_of(" \t\r\n\f") == std::string::npos) {
      return {.text = {}, .problem = "there is no text in it (its pages may be pictures)"};
    }
    return {.text = **text};
  };
  DocumentText text = read();
  if (stop.stop_requested()) {  // the real outcome is unknown, so it is not cached
    static const DocumentText kStopped{.text = {}, .problem = "cancelled"};
    return kStopped;
  }
  return texts_.emplace(part.file_id, std::move(text)).first->second;
}

// The text in place of a part that is not sent.
std::string MessageParts::Told(const MessagePart& part, const std::string& why, std::size_t& room,
                               const std::stop_token& stop) {
  const std::string name = "\n[" + part.file_id.str() + ", \"" + part.filename + "\"";
  if (part.kind != MessagePart::Kind::kDocument) return name + ", cannot be shown to you: " + why + "]\n";
  const DocumentText& document = TextOf(part, stop);
  if (!document.problem.empty()) return name + ", cannot be read: " + document.problem + "]\n";
  std::string text = name + ", as text]\n" + MarkedText(part.file_id, document.text, std::min(room, MostText()));
  room -= std::min(room, text.size());
  return text;
}

Messages MessageParts::Shown(const Messages& messages, const std::stop_token& stop) {
  Messages shown = messages;
  Room room{.bytes = recipient_.limits.request_bytes,
            .images = recipient_.limits.images,
            .tokens = MostTokens(),
            .text = kMaxAllText};
  if (recipient_.window > 0) room.text = std::min(room.text, static_cast<std::size_t>(recipient_.window));
  for (std::size_t i = shown.size(); i-- > 0;) {
    if (shown[i].parts.empty()) continue;
    Message& message = shown.Change(i);
    std::vector<MessagePart> sent;
    std::string told;
    for (const MessagePart& part : message.parts) {
      std::string why = WhyNotAsIs(part);
      if (why.empty()) why = room.Take(part);
      if (why.empty()) {
        sent.push_back(part);
      } else {
        told += Told(part, why, room.text, stop);
      }
    }
    if (!told.empty()) message.content = message.content.value_or("") + told;
    message.parts = std::move(sent);
  }
  return shown;
}

std::string MessageParts::NoteOn(const MessagePart& part, const std::stop_token& stop) {
  Room room{.bytes = recipient_.limits.request_bytes,
            .images = recipient_.limits.images,
            .tokens = MostTokens(),
            .text = kMaxAllText};
  std::string why = WhyNotAsIs(part);
  if (why.empty()) why = room.Take(part);
  if (why.empty()) return {};
  if (part.kind != MessagePart::Kind::kDocument) return "not sent: " + why;
  const DocumentText& document = TextOf(part, stop);
  if (!document.problem.empty()) return "cannot be read: " + document.problem;
  if (document.text.size() <= MostText()) return {};
  return "sent as text, the first " + std::to_string(MostText()) + " of " + std::to_string(document.text.size()) +
         " bytes";
}

std::string MessageParts::TextFor(const MessagePart& part, const std::stop_token& stop) {
  if (part.kind != MessagePart::Kind::kDocument) return {};
  if (WhyNotAsIs(part).empty() && part.tokens <= MostTokens()) return {};
  const std::string text = TextOf(part, stop).text.substr(0, MostText());
  return text.substr(0, text.size() - IncompleteUtf8Tail(text));
}

}  // namespace reprise
