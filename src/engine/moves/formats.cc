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
  return json.is_array() && !json.empty() && std::all_of(json.begin(), json.end(), IsClineMessage);
}

constexpr MoveFormat kFormats[] = {
    {.name = "claude-code",
     .tool = "Claude Code",
     .shape = Shape::kLines,
     .fits = IsClaudeCode,
     .reader = ReadClaudeCode,
     .beside = FilesOfSubAgents},
    {.name = "codex", .tool = "Codex", .shape = Shape::kLines, .fits = IsCodex, .reader = ReadCodex},
    {.name = "gemini",
     .tool = "Gemini CLI",
     .shape = Shape::kLines,
     .fits = IsGeminiLine,
     .reader = ReadGeminiLines,
     .open = OpenGeminiLog},
    {.name = "goose", .tool = "goose", .shape = Shape::kLines, .fits = IsGoose, .reader = ReadGoose},
    {"chatgpt", "ChatGPT", Shape::kElements, IsChatGpt, nullptr, OpenChatGpt},
    {"claude", "Claude", Shape::kElements, IsClaudeExport, nullptr, OpenClaudeExport},
    {"open-webui", "Open WebUI", Shape::kElements, IsOpenWebUi, nullptr, OpenOpenWebUi},
    {"librechat", "LibreChat", Shape::kElements, IsLibreChat, nullptr, OpenLibreChat},
    {"atif", "ATIF", Shape::kElements, IsAtif, nullptr, OpenAtif},
    {"opencode", "opencode", Shape::kElements, IsOpenCode, nullptr, OpenOpenCode},
    {"goose", "goose", Shape::kElements, IsGooseExport, nullptr, OpenGooseExport},
    {"gemini", "Gemini CLI", Shape::kElements, IsGemini, nullptr, OpenGemini},
    {"gemini", "Gemini CLI", Shape::kWhole, IsGeminiCheckpoint, nullptr, OpenGeminiCheckpoint},
    {"cline", "Cline", Shape::kWhole, IsCline, nullptr, OpenCline},
    {.name = "goose", .tool = "goose", .shape = Shape::kTables, .table = "sessions", .stored = ForEachGooseSession},
    {.name = "opencode",
     .tool = "opencode",
     .shape = Shape::kTables,
     .table = "part",
     .stored = ForEachOpenCodeSession},
};

// The first format of this shape that fits; null: none.
const MoveFormat* Fitting(const Json& json, Shape shape, std::string_view only) {
  const auto found = std::ranges::find_if(kFormats, [&](const MoveFormat& each) {
    return each.shape == shape && (only.empty() || each.name == only) && each.fits(json);
  });
  return found == std::end(kFormats) ? nullptr : &*found;
}

constexpr std::string_view kZip = "PK\x03\x04", kZstandard = "\x28\xB5\x2F\xFD";
constexpr int kFirstLines = 20, kFirstElements = 20;
constexpr std::size_t kBeginning = 4096;

constexpr std::size_t kPieceOfDigest = 4 << 20;

Result<void> AddTo(Sha256Sum& sum, const SourceText& source) {
  for (std::uint64_t offset = 0; offset < source.size(); offset += kPieceOfDigest)
    sum.Add(TRY(source.Read(offset, kPieceOfDigest)));
  return {};
}

Result<std::string> DigestOf(const SourceText& source, std::string digest = {}) {
  for (std::uint64_t offset = 0; offset < source.size(); offset += kPieceOfDigest) {
    const auto piece = TRY(source.Read(offset, kPieceOfDigest));
    digest = Sha256Digest({digest, piece});
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

// Reads a session once. `sum` gets what counts of it besides its text: the files beside the source do, too.
Result<FoundSession> Found(const MoveFormat& format, const SourceText& source, std::uint64_t bytes,
                           std::unique_ptr<MovedSession> session, Sha256Sum* sum) {
  FoundSession found{.format = &format, .source = source.name(), .bytes = bytes, .facts = {}};
  std::string first;
  const auto turns = TRY(MovedTurns::Read(std::move(session), [&](const MovedMessage& message) {
    if (message.kind == MovedMessage::Kind::kPrompt && first.empty()) first = FirstWords(message.text);
    if (sum == nullptr) return;
    sum->Add(message.text);
    sum->Add(message.id);
    sum->Add(std::to_string(message.blocks.size()));
  }));
  found.facts = turns->facts();
  found.facts.first = std::move(first);
  found.plan = [turns, name = source.name()]() -> Result<std::shared_ptr<MovedTurns>> {
    const std::string& circle = turns->facts().circle;
    if (circle.empty()) return OnlyWithMessages(turns);
    return Fail(Reason::kInvalidDocument,
                name + ": its messages continue each other in a circle, and none begins it (" + circle + ")");
  };
  return found;
}

}  // namespace

tl::unexpected<Error> NoSessionOf(std::string_view tool, const SourceText& source) {
  return Fail(Reason::kInvalidDocument,
              source.name() + ": it is no session of " + std::string(tool) + " (docs/moves.md)");
}

std::vector<std::string> MoveFormatNames() {
  std::vector<std::string> names;
  for (const MoveFormat& each : kFormats) names.emplace_back(each.name);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
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

Result<bool> PassBy(std::size_t, const ElementPlace&) { return true; }

// By the first lines. They may be of any length but the first, which is JSON.
Result<const MoveFormat*> RecognizeLines(const SourceText& source, std::string_view only) {
  const MoveFormat* format = nullptr;
  int lines = 0;
  const auto read = ForEachLine(source, [&](const SourcePlace&, std::string_view line) -> Result<bool> {
    const auto json = ParseForeignJson(line, source.name());
    if (!json || !json->is_object()) return false;
    format = Fitting(*json, Shape::kLines, only);
    return format == nullptr && ++lines < kFirstLines;
  });
  if (!read && read.error().code == ErrorCode::kIo) return Fail(read.error());
  return format;
}

// Null: it is no JSON. Moved, never copied: a copy takes stack for each of thousands of levels.
Result<Json> SketchOf(const Outline& outline, const SourceText& source) {
  auto json = ParseForeignJson(outline.rest, source.name());
  if (!json && json.error().Is(Reason::kTooDeep)) return json;
  return std::move(json).value_or(Json());
}

// An array may have a session in each element, of which the first ones may be damaged, or be one.
Result<const MoveFormat*> RecognizeArray(const SourceText& source, std::string_view only) {
  const MoveFormat* format = nullptr;
  TRY(ForEachElement(source, [&](const ElementPlace& at) -> Result<bool> {
    const SourceText element = source.Part(at.offset, at.length, source.name());
    if (TRY(element.Read(0, 1)) != "{") return at.number < kFirstElements;
    Json whole = Json::array();
    whole.push_back(TRY(SketchOf(TRY(ReadOutline(element, DocumentLists(), PassBy)), source)));
    format = Fitting(whole.front(), Shape::kElements, only);
    if (format == nullptr && at.number == 1) format = Fitting(whole, Shape::kWhole, only);
    return format == nullptr && at.number < kFirstElements;
  }));
  return format;
}

Result<const MoveFormat*> RecognizeObject(const SourceText& source, std::string_view only) {
  const Outline outline = TRY(ReadOutline(source, DocumentLists(), PassBy));
  if (!outline.is_alone) return RecognizeLines(source, only);
  const Json json = TRY(SketchOf(outline, source));
  const MoveFormat* format = nullptr;
  for (const Shape shape : {Shape::kLines, Shape::kElements, Shape::kWhole}) {
    if (format == nullptr) format = Fitting(json, shape, only);
  }
  return format;
}

}  // namespace

Result<bool> IsPacked(const SourceText& source) {
  const std::string beginning = TRY(source.Read(0, kZip.size()));
  return beginning == kZip || beginning == kZstandard;
}

Result<const MoveFormat*> RecognizeFormat(const SourceText& source, std::string_view only) {
  if (source.changed_at() && TRY(SqliteFile::Is(source))) return RecognizeTables(source.name(), only);
  const std::string beginning = TRY(source.Read(0, kBeginning));
  if (beginning.starts_with(kZip)) {
    return Fail(Reason::kInvalidDocument,
                source.name() + ": it is a ZIP archive; unpack it, and import the file in it");
  }
  if (beginning.starts_with(kZstandard)) {
    return Fail(Reason::kInvalidDocument,
                source.name() + ": it is compressed; unpack it (`zstd -d`), and import the file that this makes");
  }
  const std::string_view text = Trimmed(WithoutMark(beginning));
  if (text.starts_with('[')) return RecognizeArray(source, only);
  if (text.starts_with('{')) return RecognizeObject(source, only);
  return nullptr;
}

namespace {

// A session alone, or in an element of an array, where it may be another tool's than the first one.
Result<FoundSession> FoundIn(const SourceText& source, const MoveFormat& of_source, const std::string& path) {
  const bool is_whole = of_source.shape == Shape::kWhole;
  MovedDocument document = TRY(ReadDocument(source));
  const MoveFormat* fitting = &of_source;
  if (!of_source.fits(document.rest)) fitting = is_whole ? nullptr : Fitting(document.rest, Shape::kElements, {});
  if (fitting == nullptr) return NoSessionOf(of_source.tool, source);
  const MoveFormat& format = *fitting;
  Sha256Sum sum;
  std::string digest = is_whole ? TRY(DigestOf(source)) : std::string();
  if (!is_whole) TRY(AddTo(sum, source.Part(document.begin, document.end - document.begin, source.name())));
  auto session = TRY(format.document(std::move(document), path));
  FoundSession found = TRY(Found(format, source, source.size(), std::move(session), is_whole ? nullptr : &sum));
  if (!is_whole) digest = sum.Text();
  found.digest = [digest = std::move(digest)]() -> Result<std::string> { return digest; };
  return found;
}

// Whether a session alone cannot be read, and not all of a database.
bool IsOfOne(const Error& error) {
  return error.code == ErrorCode::kTooLarge || error.code == ErrorCode::kNotFound || error.code == ErrorCode::kConflict;
}

Result<void> ForEachStored(const SourceText& source, const MoveFormat& format, const std::string& path,
                           const std::function<Result<void>(FoundSession)>& visit,
                           const std::function<void(Error)>& failed) {
  return format.stored(TRY(SqliteFile::Open(path)), [&](Result<StoredSession> stored) -> Result<void> {
    auto found = std::move(stored).and_then([&](StoredSession read) {
      return Found(format, source, read.bytes, std::move(read.session), &read.sum).map([&](FoundSession session) {
        session.digest = [digest = read.sum.Text()]() -> Result<std::string> { return digest; };
        return session;
      });
    });
    if (!found && (!failed || !IsOfOne(found.error()))) return Fail(std::move(found.error()));
    if (!found) return failed(std::move(found.error())), Result<void>();
    return visit(*std::move(found));
  });
}

}  // namespace

Result<void> ForEachSession(const SourceText& source, const MoveFormat& format, const std::string& path,
                            const std::function<Result<void>(FoundSession)>& visit,
                            const std::function<void(Error)>& failed) {
  if (format.shape == Shape::kLines) {
    const auto reader = format.reader(path);
    auto facts = TRY(PeekAtLines(source, *reader));
    FoundSession found{.format = &format, .source = source.name(), .bytes = source.size(), .facts = std::move(facts)};
    found.facts.updated = source.changed_at() ? source.changed_at() : found.facts.updated;
    found.digest = [source, path, &format] { return DigestOf(source, format.beside, path); };
    found.plan = [source, path, &format] {
      auto session = format.open != nullptr ? format.open(source) : OpenLines(source, format.reader(path));
      return std::move(session).and_then(MovedTurns::Plan);
    };
    return visit(std::move(found));
  }
  if (format.shape == Shape::kTables) return ForEachStored(source, format, path, visit, failed);
  const SourceText document = source.Unchanged();
  if (format.shape == Shape::kWhole) return visit(TRY(FoundIn(document, format, path)));
  return ForEachElement(document, [&](const ElementPlace& at) -> Result<bool> {
    const bool is_alone = at.offset == 0;
    const std::string name = source.name() + (is_alone ? "" : ", element " + std::to_string(at.number));
    auto found = FoundIn(document.Part(at.offset, at.length, name), format, path);
    const bool holds_up = !found && (is_alone || !failed || found.error().code != ErrorCode::kInvalidArgument);
    if (holds_up) return Fail(found.error());
    if (!found) return failed(found.error()), true;
    found->source = source.name();
    TRY(visit(*std::move(found)));
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
