#include "store/file_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "crypto/base64url.h"
#include "domain/codec.h"
#include "domain/json_reader.h"

namespace reprise {
namespace {

constexpr int kFileSchema = 1;
constexpr std::string_view kAsText = "utf-8", kAsBase64Url = "base64url";

// Control characters take six bytes each in JSON.
bool IsShortAsJson(std::string_view text) {
  const auto controls = std::count_if(text.begin(), text.end(), [](unsigned char c) { return c < 0x20; });
  const auto breaks =
      std::count_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; });
  return static_cast<std::size_t>(controls - breaks) <= text.size() / 16;
}

}  // namespace

std::string FileToJson(const ChatId& chat, const StoredFile& file) {
  Json json = {{"schema", kFileSchema}, {"chat_id", chat.str()}};
  json.update(ToJson(file.info));
  const bool text = IsText(file.content) && IsShortAsJson(file.content);
  json["encoding"] = text ? kAsText : kAsBase64Url;
  json["content"] = text ? file.content : EncodeBase64Url(file.content);
  return DumpJson(json);
}

Result<StoredFile> FileFromJson(const RecordPlace& place, std::string_view text) {
  const auto damaged = [&](std::string_view kind, std::string_view what) {
    return Fail(IntegrityError(kind, place, what));
  };
  const auto json = ParseJson(text);
  if (!json) return damaged("auth", "its content is not JSON");
  JsonReader reader(*json, "file");
  if (reader.Integer("schema") != kFileSchema && !reader.error()) {
    return damaged("version", "it has a format version that this program does not know");
  }
  const auto id = FileId::Parse(reader.String("id"));
  if (!id) reader.Reject("id");
  const std::string chat = reader.String("chat_id");
  const std::int64_t size = reader.Integer("size_bytes");
  const std::string encoding = reader.String("encoding");
  std::string content = reader.String("content");
  if (reader.error()) return damaged("auth", reader.error()->message);
  StoredFile file{.info = {.id = *id,
                           .filename = reader.String("filename"),
                           .mime_type = reader.String("mime_type"),
                           .size_bytes = static_cast<std::uint64_t>(size),
                           .digest = reader.String("digest"),
                           .created_at = reader.Time("created_at")}};
  if (reader.error()) return damaged("auth", reader.error()->message);
  if (chat != place.chat.str() || file.info.id != place.file) return damaged("swap", "it belongs to another place");
  if (encoding == kAsBase64Url) {
    auto bytes = DecodeBase64Url(content);
    if (!bytes) return damaged("auth", "its content is not base64url");
    content = *std::move(bytes);
  } else if (encoding != kAsText) {
    return damaged("version", "its content is in an encoding that this program does not know");
  }
  if (content.size() != file.info.size_bytes || ArgumentsDigest(content) != file.info.digest) {
    return damaged("auth", "its content is not the one that was stored");
  }
  file.content = std::move(content);
  return file;
}

Result<RecordPlace> PlaceOfFile(std::string_view text) {
  const auto json = ParseJson(text);
  if (json && json->is_object() && json->contains("mime_type")) {
    JsonReader reader(*json, "file");
    auto chat = ChatId::Parse(reader.String("chat_id"));
    auto id = FileId::Parse(reader.String("id"));
    if (chat && id) return RecordPlace{.chat = *std::move(chat), .file = *std::move(id)};
  }
  return Fail(ErrorCode::kInvalidArgument, "it is not a file of a chat");
}

}  // namespace reprise
