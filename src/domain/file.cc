#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"
#include "domain/json_reader.h"
#include "reprise/file_store.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxFilename = 200;  // characters
constexpr std::size_t kMaxMimeType = 127;  // RFC 6838, section 4.2 allows 127 for each half; none in use is longer
constexpr std::string_view kUnnamed = "file";
constexpr std::string_view kUnknownType = "application/octet-stream";

// Line and paragraph separators, and direction marks (UAX 9), because a name must read as it is.
bool IsDeceptive(std::string_view character) {
  static constexpr std::string_view kCharacters[] = {"\u2028", "\u2029", "\u200e", "\u200f", "\u061c",
                                                     "\u202a", "\u202b", "\u202c", "\u202d", "\u202e",
                                                     "\u2066", "\u2067", "\u2068", "\u2069", "\ufeff"};
  return std::ranges::find(kCharacters, character) != std::end(kCharacters);
}

bool IsControl(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  const bool c1 = character.size() == 2 && first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
  return first < 0x20 || first == 0x7f || c1;
}

std::string CleanFilename(std::string_view given) {
  std::string valid = ToValidUtf8(given.substr(given.find_last_of("/\\") + 1));
  std::string name;
  for (std::string_view rest = valid; !rest.empty();) {
    const std::string_view character = Utf8Prefix(rest, 1);
    rest.remove_prefix(character.size());
    if (!IsControl(character) && !IsDeceptive(character)) name += character;
  }
  name = std::string(Utf8Prefix(name, kMaxFilename));
  const std::size_t first = name.find_first_not_of(' ');
  if (first == std::string::npos) return std::string(kUnnamed);
  name = name.substr(first, name.find_last_not_of(' ') - first + 1);
  return name == "." || name == ".." ? std::string(kUnnamed) : name;
}

// RFC 9110, section 5.6.2.
bool IsToken(std::string_view text) {
  const auto allowed = [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  };
  return !text.empty() && std::ranges::all_of(text, allowed);
}

constexpr std::string_view kAsText = "utf-8", kAsBase64Url = "base64url";

// Each control character takes six bytes in JSON.
bool IsShortAsJson(std::string_view text) {
  const auto controls = std::ranges::count_if(text, [](unsigned char c) { return c < 0x20; });
  const auto breaks = std::ranges::count_if(text, [](char c) { return c == '\n' || c == '\r' || c == '\t'; });
  return static_cast<std::size_t>(controls - breaks) <= text.size() / 16;
}

}  // namespace

bool IsText(std::string_view content) { return content.find('\0') == std::string_view::npos && IsUtf8(content); }

Result<StoredFile> MakeFile(std::string_view filename, std::string_view mime_type, std::string content) {
  std::string type(mime_type.substr(0, mime_type.find(';')));
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!type.empty() && is_blank(type.back())) type.pop_back();
  type.erase(0, std::min(type.find_first_not_of(" \t"), type.size()));
  for (char& c : type) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (type.empty()) type = kUnknownType;
  const std::size_t slash = type.find('/');
  const std::string_view whole = type;
  if (type.size() > kMaxMimeType || slash == std::string::npos || !IsToken(whole.substr(0, slash)) ||
      !IsToken(whole.substr(slash + 1))) {
    return Fail(Reason::kUnsupportedType, "the file's Content-Type is not a media type");
  }
  StoredFile file{.info = {.id = FileId::Random(),
                           .filename = CleanFilename(filename),
                           .mime_type = std::move(type),
                           .size_bytes = content.size(),
                           .digest = ArgumentsDigest(content),
                           .created_at = Now()}};
  file.content = std::move(content);
  return file;
}

Json ToJson(const FileInfo& file) {
  return {{"id", file.id.str()},         {"filename", file.filename},
          {"mime_type", file.mime_type}, {"size_bytes", file.size_bytes},
          {"digest", file.digest},       {"created_at", FormatTimestamp(file.created_at)}};
}

Json ToJson(const StoredFile& file) {
  Json json = ToJson(file.info);
  const bool text = IsText(file.content) && IsShortAsJson(file.content);
  json["encoding"] = text ? kAsText : kAsBase64Url;
  json["content"] = text ? file.content : EncodeBase64Url(file.content);
  return json;
}

Result<FileInfo> FileInfoFromJson(const Json& json) {
  JsonReader reader(json, "file");
  const auto id = FileId::Parse(reader.String("id"));
  if (!id) reader.Reject("id");
  const std::int64_t size = reader.Integer("size_bytes");
  if (reader.error()) return Fail(*reader.error());
  FileInfo info{.id = *id,
                .filename = reader.String("filename"),
                .mime_type = reader.String("mime_type"),
                .size_bytes = static_cast<std::uint64_t>(size),
                .digest = reader.String("digest"),
                .created_at = reader.Time("created_at")};
  if (reader.error()) return Fail(*reader.error());
  return info;
}

Result<StoredFile> StoredFileFromJson(const Json& json) {
  auto info = TRY(FileInfoFromJson(json));
  JsonReader reader(json, "file");
  const std::string encoding = reader.String("encoding");
  std::string content = reader.String("content");
  if (reader.error()) return Fail(*reader.error());
  StoredFile file{.info = std::move(info)};
  if (encoding == kAsBase64Url) {
    auto bytes = DecodeBase64Url(content);
    if (!bytes) reader.Reject("content is not base64url");
    content = std::move(bytes).value_or("");
  } else if (encoding != kAsText && !reader.error()) {
    return Fail(Reason::kIntegrityVersion, "its content has an unknown encoding");
  }
  if (content.size() != file.info.size_bytes || ArgumentsDigest(content) != file.info.digest) {
    reader.Reject("its content does not match its digest");
  }
  if (reader.error()) return Fail(*reader.error());
  file.content = std::move(content);
  return file;
}

}  // namespace reprise
