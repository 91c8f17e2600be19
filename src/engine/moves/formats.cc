#include "engine/moves/formats.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

using Shape = MoveFormat::Shape;

bool HasText(const Json& json, std::string_view name) { return MemberOf(json, name).is_string(); }

bool IsClaudeCode(const Json& json) {
  const bool is_placed = HasText(json, "sessionId") || (HasText(json, "cwd") && MemberOf(json, "message").is_object());
  const bool is_line = HasText(json, "type") && is_placed && MemberOf(json, "isSidechain") != true;
  return is_line || HasText(json, "leafUuid") || (HasText(json, "messageId") && json.contains("snapshot"));
}
bool IsCodex(const Json& json) {
  const std::string type = TextMember(json, "type");
  const bool is_line = json.contains("payload") && (type == "session_meta" || type == "response_item" ||
                                                    type == "event_msg" || type == "turn_context");
  return is_line || (HasText(json, "id") && HasText(json, "timestamp") && json.contains("instructions"));
}
bool IsGoose(const Json& json) {
  const bool is_message = HasText(json, "role") && json.contains("created") && MemberOf(json, "content").is_array();
  return is_message || (HasText(json, "working_dir") && !json.contains("conversation"));
}
bool IsGeminiLine(const Json& json) {
  return HasText(json, "sessionId") && HasText(json, "projectHash") && ListIn(json, "messages").empty();
}
bool IsGemini(const Json& json) {
  return HasText(json, "sessionId") && HasText(json, "projectHash") && MemberOf(json, "messages").is_array();
}
bool IsContent(const Json& json) { return HasText(json, "role") && MemberOf(json, "parts").is_array(); }
bool IsGeminiCheckpoint(const Json& json) {
  const Json& history = json.is_array() ? json : MemberOf(json, "history");
  return history.is_array() && !history.empty() && IsContent(history.front());
}
bool IsChatGpt(const Json& json) { return MemberOf(json, "mapping").is_object(); }
bool IsClaudeExport(const Json& json) { return MemberOf(json, "chat_messages").is_array(); }
bool IsOpenWebUi(const Json& json) {
  const Json& chat = json.is_object() && json.contains("chat") ? MemberOf(json, "chat") : json;
  return MemberOf(MemberOf(chat, "history"), "messages").is_object();
}
bool IsLibreChat(const Json& json) {
  return HasText(json, "conversationId") &&
         (MemberOf(json, "messages").is_array() || MemberOf(json, "messagesTree").is_array());
}
bool IsAtif(const Json& json) {
  return TextMember(json, "schema_version").starts_with("ATIF-v1.") && MemberOf(json, "steps").is_array();
}
bool IsOpenCode(const Json& json) {
  const bool is_export = HasText(MemberOf(json, "info"), "id") && MemberOf(json, "messages").is_array();
  const bool is_stored = HasText(json, "id") && HasText(json, "directory") && MemberOf(json, "time").is_object();
  return is_export || (is_stored && !HasText(json, "parentID"));  // a sub-agent's is read with its parent's
}
bool IsGooseExport(const Json& json) {
  return HasText(json, "working_dir") && MemberOf(json, "conversation").is_array();
}
bool IsCline(const Json& json) {
  const auto is_message = [](const Json& each) {
    const Json& content = MemberOf(each, "content");
    const std::string role = TextMember(each, "role");
    // Others, such as OpenAI's, have further roles, or calls beside the content.
    return (role == "user" || role == "assistant") && (content.is_array() || content.is_string()) &&
           !each.contains("created") && !each.contains("tool_calls");
  };
  return json.is_array() && !json.empty() && std::all_of(json.begin(), json.end(), is_message);
}

constexpr MoveFormat kFormats[] = {
    {.name = "claude-code",
     .tool = "Claude Code",
     .shape = Shape::kLines,
     .fits = IsClaudeCode,
     .reader = ReadClaudeCode,
     .beside = FilesOfSubAgents},
    {"codex", "Codex", Shape::kLines, IsCodex, ReadCodex, nullptr},
    {.name = "gemini",
     .tool = "Gemini CLI",
     .shape = Shape::kLines,
     .fits = IsGeminiLine,
     .reader = ReadGeminiLines,
     .open = OpenGeminiLog},
    {"goose", "goose", Shape::kLines, IsGoose, ReadGoose, nullptr},
    {"chatgpt", "ChatGPT", Shape::kElements, IsChatGpt, nullptr, ReadChatGpt},
    {"claude", "Claude", Shape::kElements, IsClaudeExport, nullptr, ReadClaudeExport},
    {"open-webui", "Open WebUI", Shape::kElements, IsOpenWebUi, nullptr, ReadOpenWebUi},
    {"librechat", "LibreChat", Shape::kElements, IsLibreChat, nullptr, ReadLibreChat},
    {"atif", "ATIF", Shape::kElements, IsAtif, nullptr, ReadAtif},
    {"opencode", "opencode", Shape::kElements, IsOpenCode, nullptr, ReadOpenCode},
    {"goose", "goose", Shape::kElements, IsGooseExport, nullptr, ReadGooseExport},
    {"gemini", "Gemini CLI", Shape::kElements, IsGemini, nullptr, ReadGemini},
    {"gemini", "Gemini CLI", Shape::kWhole, IsGeminiCheckpoint, nullptr, ReadGeminiCheckpoint},
    {"cline", "Cline", Shape::kWhole, IsCline, nullptr, ReadCline},
    {"goose", "goose", Shape::kTables, nullptr, nullptr, ReadGooseExport, "sessions", ForEachGooseSession},
    {"opencode", "opencode", Shape::kTables, nullptr, nullptr, ReadOpenCode, "part", ForEachOpenCodeSession},
};

// The first format of this shape that fits; null: none.
const MoveFormat* Fitting(const Json& json, Shape shape, std::string_view only) {
  const auto found = std::ranges::find_if(kFormats, [&](const MoveFormat& each) {
    return each.shape == shape && (only.empty() || each.name == only) && each.fits(json);
  });
  return found == std::end(kFormats) ? nullptr : &*found;
}

constexpr int kFirstLines = 20;
constexpr std::size_t kBeginning = 4096;

FoundSession Found(const MoveFormat& format, const SourceText& source, ReadSession session, std::uint64_t bytes,
                   std::string digest) {
  for (const MovedMessage& message : session.messages) {
    if (message.kind == MovedMessage::Kind::kPrompt && session.facts.first.empty())
      session.facts.first = FirstWords(message.text);
  }
  const auto held = std::make_shared<ReadSession>(std::move(session));
  return {.format = &format,
          .source = source.name(),
          .bytes = bytes,
          .facts = held->facts,
          .digest = [digest = std::move(digest)]() -> Result<std::string> { return digest; },
          .open = [held]() -> Result<std::unique_ptr<MovedSession>> { return SessionOf(std::move(*held)); }};
}

std::string DigestOf(const ReadSession& session, std::string_view text) {
  std::vector<std::string> counts;
  for (const MovedMessage& each : session.messages) counts.push_back(std::to_string(each.blocks.size()));
  std::vector<std::string_view> parts{text};  // the files beside the source count, too
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const MovedMessage& message = session.messages[i];
    parts.insert(parts.end(), {message.text, message.id, counts[i]});
  }
  return Sha256Digest(parts);
}

Result<std::string> DigestOf(const SourceText& source, std::string digest = {}) {
  constexpr std::size_t kPiece = 4 << 20;
  for (std::uint64_t offset = 0; offset < source.size(); offset += kPiece) {
    digest = Sha256Digest({digest, TRY(source.Read(offset, kPiece))});
  }
  return digest;
}
// With the files beside it, which may grow while the source stays.
Result<std::string> DigestOf(const SourceText& source, decltype(MoveFormat::beside) beside, const std::string& path) {
  std::string digest = TRY(DigestOf(source));
  for (const std::string& file : beside == nullptr ? std::vector<std::string>() : TRY(beside(source, path))) {
    if (const auto opened = SourceText::Open(file)) digest = TRY(DigestOf(*opened, std::move(digest)));
  }
  return digest;
}

}  // namespace

std::span<const MoveFormat> MoveFormats() { return kFormats; }

std::vector<std::string> MoveFormatNames() {
  std::vector<std::string> names;
  for (const MoveFormat& each : kFormats) names.emplace_back(each.name);
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

namespace {

Result<const MoveFormat*> RecognizeTables(const std::string& path, std::string_view only) {
  const auto file = TRY(SqliteFile::Open(path));
  for (const MoveFormat& each : kFormats) {
    const bool may_be = each.shape == Shape::kTables && (only.empty() || each.name == only);
    if (may_be && TRY(file->HasTable(std::string(each.table)))) return &each;
  }
  return nullptr;
}

}  // namespace

Result<const MoveFormat*> RecognizeFormat(const SourceText& source, std::string_view only) {
  if (source.changed_at() && TRY(SqliteFile::Is(source))) return RecognizeTables(source.name(), only);
  const MoveFormat* format = nullptr;
  int lines = 0;
  bool is_lines = true;
  std::optional<Json> alone;  // the only line
  const std::string beginning = TRY(source.Read(0, kBeginning));
  if (beginning.starts_with("PK\x03\x04")) {
    return Fail(Reason::kInvalidDocument,
                source.name() + ": it is a ZIP archive; unpack it, and import the file in it");
  }
  // An array may be one line of any length.
  const bool is_array = Trimmed(WithoutMark(beginning)).starts_with('[');
  const auto read =
      is_array ? Result<void>() : ForEachLine(source, [&](const SourcePlace&, std::string_view line) -> Result<bool> {
        auto json = ParseForeignJson(line, source.name());
        is_lines = json && json->is_object();
        if (!is_lines) return false;
        format = Fitting(*json, Shape::kLines, only);
        alone = lines == 0 ? std::optional(*std::move(json)) : std::nullopt;
        return format == nullptr && ++lines < kFirstLines;
      });
  if (!read && read.error().code == ErrorCode::kIo) return Fail(read.error());
  if (format != nullptr) return format;
  if (read && is_lines && lines > 1) return nullptr;
  if (alone) {
    const MoveFormat* const element = Fitting(*alone, Shape::kElements, only);
    return element != nullptr ? element : Fitting(*alone, Shape::kWhole, only);
  }
  TRY(ForEachElement(source, [&](const SourcePlace&, std::string_view element) -> Result<bool> {
    const auto json = ParseForeignJson(element, source.name());
    if (!json && json.error().Is(Reason::kTooDeep)) return Fail(json.error());
    if (json) format = Fitting(*json, Shape::kElements, only);
    if (json && format == nullptr) format = Fitting(Json::array({*json}), Shape::kWhole, only);
    if (json && format == nullptr && json->is_object()) format = Fitting(*json, Shape::kWhole, only);
    return false;
  }));
  return format;
}

Result<void> ForEachSession(const SourceText& source, const MoveFormat& format, const std::string& path,
                            const std::function<Result<void>(FoundSession)>& visit,
                            const std::function<void(Error)>& failed) {
  if (format.shape == Shape::kLines) {
    const auto reader = format.reader(path);
    FoundSession found{
        .format = &format, .source = source.name(), .bytes = source.size(), .facts = TRY(PeekAtLines(source, *reader))};
    found.facts.updated = source.changed_at() ? source.changed_at() : found.facts.updated;
    found.digest = [source, path, &format] { return DigestOf(source, format.beside, path); };
    found.open = [source, path, &format] {
      return format.open != nullptr ? format.open(source) : OpenLines(source, format.reader(path));
    };
    return visit(std::move(found));
  }
  if (format.shape == Shape::kWhole) {
    const Json json = TRY(ReadForeignJson(source));
    if (!format.fits(json)) {
      return Fail(Reason::kInvalidDocument,
                  source.name() + ": it is no session of " + std::string(format.tool) + " (docs/moves.md)");
    }
    ReadSession session = format.read(json, path);
    std::string digest = TRY(DigestOf(source));
    return visit(Found(format, source, std::move(session), source.size(), std::move(digest)));
  }
  if (format.shape == Shape::kTables) {
    const auto file = TRY(SqliteFile::Open(path));
    return format.stored(*file, [&](const Result<Json>& session) -> Result<void> {
      if (!session && !failed) return Fail(session.error());
      if (!session) return failed(session.error()), Result<void>();
      const std::string text = DumpJson(*session);
      ReadSession read = format.read(*session, {});
      std::string digest = DigestOf(read, text);
      return visit(Found(format, source, std::move(read), text.size(), std::move(digest)));
    });
  }
  return ForEachElement(source, [&](const SourcePlace& place, std::string_view element) -> Result<bool> {
    const Json json = TRY(ParseForeignJson(element, source.name() + ", element " + std::to_string(place.number)));
    if (!format.fits(json)) return true;
    ReadSession session = format.read(json, path);
    std::string digest = DigestOf(session, element);
    TRY(visit(Found(format, source, std::move(session), place.length, std::move(digest))));
    return true;
  });
}

std::string NameOfMoved(const FoundSession& session, const std::string& digest) {
  constexpr std::size_t kDigits = 10;
  const auto short_of = [](const std::string& long_digest) {
    return long_digest.substr(long_digest.find(':') + 1, kDigits);
  };
  const std::string& id = session.facts.id.empty() ? session.source : session.facts.id;
  return std::string(session.format->name) + "-" + short_of(Sha256Digest({id})) + "-" + short_of(digest);
}

}  // namespace reprise
