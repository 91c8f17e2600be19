#include "engine/moves/session.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "engine/chat_document.h"

namespace reprise {
namespace {

class SessionInRecords final : public MovedSession {
 public:
  SessionInRecords(Records records, std::unique_ptr<RecordReader> reader)
      : records_(std::move(records)), reader_(std::move(reader)) {
    if (records_.count == 0) facts_ = reader_->facts;
  }

  std::size_t records() const override { return records_.count; }
  Result<std::vector<MovedMessage>> Read(std::size_t record) override {
    const Json json = TRY(records_.load(record));
    reader_->record = record;
    auto messages = reader_->Take(json);
    if (auto failed = std::exchange(reader_->failed, {})) return Fail(*std::move(failed));
    if (record + 1 == records_.count && !std::exchange(was_read_, true)) {
      facts_ = reader_->facts;
      left_out_.Add(reader_->left_out);
      reader_->left_out.Close();
    }
    return messages;
  }

 private:
  const Records records_;
  const std::unique_ptr<RecordReader> reader_;
  bool was_read_ = false;
};

}  // namespace

std::size_t BytesOf(std::span<const MovedMessage> steps) {
  std::size_t bytes = 0;
  for (const MovedMessage& step : steps) {
    bytes += step.text.size();
    for (const MovedBlock& block : step.blocks) bytes += block.text.size() + block.verbatim.size();
    for (const MovedFile& file : step.files) bytes += file.content.size();
  }
  return bytes;
}

std::string PlaceIn(const SourceText& source, const SourcePlace& place, std::string_view unit) {
  return source.name() + ", " + std::string(unit) + " " + std::to_string(place.number);
}

void LeftOut::Add(const std::string& what, std::size_t count) {
  constexpr std::size_t kMostKinds = 50;  // a source can make up any number of types
  if (is_closed_ || count == 0) return;
  const bool is_one_too_many = counts_.size() >= kMostKinds && !counts_.contains(what);
  counts_[is_one_too_many ? "thing of a further kind" : what] += count;
}

void LeftOut::Add(const LeftOut& other) {
  for (const auto& [what, count] : other.counts_) Add(what, count);
}

void LeftOut::AddUnknown(const std::string& thing, std::string_view type) {
  Add(thing + " of a type that is not known here" + (type.empty() ? "" : " (" + FirstWords(type) + ")"));
}

std::vector<std::string> LeftOut::Notes() const {
  std::vector<std::string> notes;
  for (const auto& [what, count] : counts_) {
    notes.push_back("left out: " + std::to_string(count) + " x " + what);
  }
  return notes;
}

std::string FirstOf(const std::vector<std::string>& names) {
  constexpr std::size_t kMostShown = 5;
  std::string shown;
  for (std::size_t i = 0; i < std::min(names.size(), kMostShown); ++i)
    shown += (i > 0 ? ", " : "") + FirstWords(names[i]);
  return shown + (names.size() > kMostShown ? ", ..." : "");
}

void AddNamed(LeftOut& left_out, const std::string& what, const std::vector<std::string>& names) {
  left_out.Add(what + " (" + FirstOf(names) + ")", names.size());
}

Result<std::unique_ptr<MovedSession>> OpenLines(SourceText source, std::unique_ptr<RecordReader> reader) {
  std::vector<SourcePlace> places;
  std::string last;  // the line that may be cut off
  TRY(ForEachLine(source, [&](const SourcePlace& place, std::string_view line) -> Result<bool> {
    places.push_back(place);
    const bool ends_source = place.offset + place.length + 1 >= source.size();
    if (ends_source) last = line;
    return true;
  }));
  const bool cut_off = !last.empty() && !ParseForeignJson(last, source.name());
  if (cut_off) places.pop_back();
  if (places.empty()) return Fail(Reason::kInvalidDocument, source.name() + ": it has no complete line");
  if (cut_off) reader->left_out.Add("last line, which is not complete");
  const std::size_t count = places.size();
  auto load = [source = std::move(source), places = std::move(places)](std::size_t record) {
    return LoadJson(source, places[record]);
  };
  return OpenRecords({.count = count, .load = std::move(load)}, std::move(reader));
}

Result<Json> LoadJson(const SourceText& source, const SourcePlace& place) {
  return ParseForeignJson(TRY(source.Read(place.offset, place.length)), PlaceIn(source, place));
}

std::unique_ptr<MovedSession> OpenRecords(Records records, std::unique_ptr<RecordReader> reader) {
  return std::make_unique<SessionInRecords>(std::move(records), std::move(reader));
}

Result<SessionFacts> PeekAtLines(const SourceText& source, RecordReader& reader) {
  constexpr std::uint64_t kBeginning = 1 << 20;
  TRY(ForEachLine(source, [&](const SourcePlace& place, std::string_view line) -> Result<bool> {
    if (const auto json = ParseForeignJson(line, PlaceIn(source, place))) {
      reader.record = place.number;
      for (const MovedMessage& message : reader.Take(*json)) {
        const bool is_first = message.kind == MovedMessage::Kind::kPrompt && reader.facts.first.empty();
        if (is_first) reader.facts.first = FirstWords(message.text);
      }
    }
    const bool knows_all = !reader.facts.first.empty() && !reader.facts.folder.empty();
    return !knows_all && place.offset < kBeginning;
  }));
  return reader.facts;
}

Result<Json> ReadForeignJson(const SourceText& source) {
  if (source.size() > kMaxSourceRecord) {
    return Fail(Reason::kInvalidDocument,
                source.name() + ": a session in one piece may have " + std::to_string(kMaxSourceRecord >> 20) + " MiB");
  }
  return ParseForeignJson(TRY(source.Read(0, kMaxSourceRecord)), source.name());
}

Result<Json> ReadForeignJson(const std::string& path) { return ReadForeignJson(TRY(SourceText::Open(path))); }

Result<Json> ParseForeignJson(std::string_view text, const std::string& where) {
  constexpr int kDepth = 6000;  // an export may nest each message in the one before it, with two levels for each
  text = WithoutMark(text);
  auto json = ParseJson(text, kDepth, DuplicateMembers::kLastWins);
  if (json) return json;
  if (const auto mended = MendJson(text)) {
    if (auto again = ParseJson(*mended, kDepth, DuplicateMembers::kLastWins)) return again;
  }
  const Reason reason = json.error().Is(Reason::kTooDeep) ? Reason::kTooDeep : Reason::kInvalidDocument;
  return Fail(reason, where + ": " + json.error().message);
}

std::optional<Timestamp> TimeIn(const Json& value) {
  if (value.is_string()) return ParseForeignTime(value.get<std::string>());
  if (!value.is_number()) return std::nullopt;
  constexpr double kLatest = 253'402'300'799'000.0, kLeastMilliseconds = 100'000'000'000.0;  // the year 9999, 1973
  double time = value.get<double>();
  if (!(time > 0)) return std::nullopt;
  if (time < kLeastMilliseconds) time *= 1000;
  if (time > kLatest) return std::nullopt;
  return Timestamp(std::chrono::milliseconds(std::llround(time)));
}

const Json& ListIn(const Json& object, std::string_view name) {
  static const Json none = Json::array();
  const Json& list = MemberOf(object, name);
  return list.is_array() ? list : none;
}

std::int64_t CountIn(const Json& object, std::string_view name) {
  constexpr std::int64_t kMost = 1'000'000'000'000;
  const Json& value = MemberOf(object, name);
  if (!value.is_number()) return 0;
  const double count = value.get<double>();
  return count > 0 && count < static_cast<double>(kMost) ? std::llround(count) : 0;
}

TokenUsage UsageOf(std::int64_t uncached, std::int64_t output, std::int64_t cache_read, std::int64_t cache_write) {
  return {.input_tokens = uncached + cache_read + cache_write,
          .output_tokens = output,
          .cache_read_tokens = cache_read,
          .cache_write_tokens = cache_write};
}

std::string ArgumentsIn(const Json& value) {
  if (value.is_null()) return "{}";
  return value.is_string() ? value.get<std::string>() : DumpJson(value);
}

void AddBase64(std::string_view data, std::string mime_type, std::vector<MovedFile>& files, LeftOut& left_out) {
  auto content = DecodeBase64(data);
  if (!content || content->empty()) return left_out.Add("file that cannot be read");
  files.push_back({.filename = {}, .mime_type = std::move(mime_type), .content = *std::move(content)});
}

std::optional<MovedFile> FileInDataUrl(std::string_view url) {
  constexpr std::string_view kScheme = "data:", kBase64 = ";base64";
  const std::size_t comma = url.find(',');
  if (!url.starts_with(kScheme) || comma == std::string_view::npos) return std::nullopt;
  std::string_view type = url.substr(kScheme.size(), comma - kScheme.size());
  if (!type.ends_with(kBase64)) return std::nullopt;
  type.remove_suffix(kBase64.size());
  auto content = DecodeBase64(url.substr(comma + 1));
  if (!content) return std::nullopt;
  return MovedFile{
      .filename = {}, .mime_type = std::string(type.substr(0, type.find(';'))), .content = *std::move(content)};
}

std::string FirstWords(std::string_view text) {
  constexpr std::size_t kCharacters = 80;
  std::string line(Utf8Prefix(Trimmed(text), kCharacters));
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return line;
}

namespace {

// An image or document in a block of Anthropic's API, or of MCP, whose resources have it as "blob".
std::optional<MovedFile> FileInBlock(const Json& block) {
  const Json& source = MemberOf(block, "source");
  std::string type = TextMember(source, "media_type"), data = TextMember(source, "data");
  if (data.empty())
    type = TextMember(block, "mimeType"), data = TextMember(block, block.contains("blob") ? "blob" : "data");
  if (type.empty() || data.empty()) return std::nullopt;
  auto content = TextMember(source, "type") == "text" ? std::optional(std::move(data)) : DecodeBase64(data);
  if (!content) return std::nullopt;
  return MovedFile{
      .filename = TextMember(block, "title"), .mime_type = std::move(type), .content = *std::move(content)};
}

}  // namespace

std::string OpenCalls::Take(std::string_view given_id, std::string_view name) {
  auto found = given_id.empty() ? calls_.end() : std::ranges::find(calls_, given_id, &Call::given_id);
  if (found == calls_.end()) {
    found = std::ranges::find_if(calls_, [&](const Call& call) { return name.empty() || call.name == name; });
  }
  if (found == calls_.end()) return {};
  std::string id = std::move(found->id);
  calls_.erase(found);
  return id;
}

void AddLine(std::string& to, const std::string& text) {
  if (!to.empty() && !text.empty()) to += "\n";
  to += text;
}

namespace {

// Where a part of a result is from, or what it stands for: pages and files of claude.ai, links of MCP.
std::string PlaceOf(const Json& block) {
  std::string lines;
  for (const char* name : {"title", "url", "uri", "file_path"}) AddLine(lines, TextMember(block, name));
  return lines;
}

// A resource of MCP: where it is from, and its text or file.
void AddResource(const Json& resource, std::string& text, std::vector<MovedFile>& files, LeftOut& left_out) {
  AddLine(text, PlaceOf(resource));
  AddLine(text, TextMember(resource, "text"));
  if (!resource.contains("blob")) return;
  if (auto file = FileInBlock(resource)) {
    files.push_back(*std::move(file));
  } else {
    left_out.Add("file that cannot be read");
  }
}

// A part of a result without a text of its own: what it is found in, or refers to, and what of that it brings.
void AddPlace(const Json& block, std::string& text, std::vector<MovedFile>& files, LeftOut& left_out) {
  const std::string place = PlaceOf(block);
  const bool is_file = MemberOf(block, "source").is_object() || block.contains("data");
  AddLine(text, place);
  if (block.contains("file_path")) return left_out.Add("file whose content the export lacks");
  if (place.empty() || is_file) return left_out.Add("part of a result (" + FirstWords(TextMember(block, "type")) + ")");
  AddLine(text, TextMember(block, "source"));
  AddLine(text, ResultText(MemberOf(block, "content"), files, left_out));
}

}  // namespace

std::string ResultText(const Json& content, std::vector<MovedFile>& files, LeftOut& left_out) {
  if (content.is_string()) return content.get<std::string>();
  if (content.is_object()) return ResultText(Json::array({content}), files, left_out);
  std::string text;
  for (const Json& block : content.is_array() ? content : Json::array()) {
    if (block.is_string()) {
      AddLine(text, block.get<std::string>());
    } else if (block.contains("text")) {
      AddLine(text, PlaceOf(block));
      AddLine(text, TextMember(block, "text"));
    } else if (auto file = FileInBlock(block)) {
      files.push_back(*std::move(file));
    } else if (const Json& resource = MemberOf(block, "resource"); !resource.is_null()) {
      AddResource(resource, text, files, left_out);
    } else {
      AddPlace(block, text, files, left_out);
    }
  }
  return text;
}

AnthropicContent ReadAnthropicContent(const Json& content, LeftOut& left_out) {
  AnthropicContent read;
  MovedMessage& message = read.message;
  if (content.is_string()) {
    message.text = content.get<std::string>();
    message.blocks.push_back({.text = message.text});
    return read;
  }
  for (const Json& block : content.is_array() ? content : Json::array()) {
    const std::string type = TextMember(block, "type");
    if (type == "text") {
      AddLine(message.text, TextMember(block, "text"));
      message.blocks.push_back({.text = TextMember(block, "text")});
      left_out.Add("citation in an answer", ListIn(block, "citations").size());
    } else if (type == "thinking" || type == "redacted_thinking") {
      const bool is_signed = !TextMember(block, "signature").empty() || !TextMember(block, "data").empty();
      message.blocks.push_back({.kind = MovedBlock::Kind::kThinking,
                                .text = TextMember(block, "thinking"),
                                .verbatim = is_signed ? DumpJson(block) : ""});
    } else if (type == "tool_use" || type == "server_tool_use" || type == "mcp_tool_use") {
      message.blocks.push_back({.kind = MovedBlock::Kind::kCall,
                                .text = ArgumentsIn(MemberOf(block, "input")),
                                .id = TextMember(block, "id"),
                                .name = TextMember(block, "name")});
    } else if (type.ends_with("tool_result")) {
      MovedMessage result{.kind = MovedMessage::Kind::kResult, .call_id = TextMember(block, "tool_use_id")};
      result.text = ResultText(MemberOf(block, "content"), result.files, left_out);
      result.is_error = MemberOf(block, "is_error") == true;
      read.results.push_back(std::move(result));
    } else if (auto file = FileInBlock(block)) {
      message.files.push_back(*std::move(file));
    } else {
      left_out.Add("part of a message (" + FirstWords(type) + ")");
    }
  }
  return read;
}

TokenUsage AnthropicUsage(const Json& usage) {
  return UsageOf(CountIn(usage, "input_tokens"), CountIn(usage, "output_tokens"),
                 CountIn(usage, "cache_read_input_tokens"), CountIn(usage, "cache_creation_input_tokens"));
}

}  // namespace reprise
