#include "store/file_record.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "domain/codec.h"
#include "domain/json_reader.h"

namespace reprise {
namespace {

constexpr int kFileSchema = 1;

}  // namespace

std::string FileToJson(const ChatId& chat, const StoredFile& file) {
  Json json = {{"schema", kFileSchema}, {"chat_id", chat.str()}};
  json.update(ToJson(file));
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
  const std::string chat = reader.String("chat_id");
  if (reader.error()) return damaged("auth", reader.error()->message);
  auto file = StoredFileFromJson(*json);
  if (!file) return damaged(file.error().reason == "integrity_version" ? "version" : "auth", file.error().message);
  if (chat != place.chat.str() || file->info.id != place.file) return damaged("swap", "it belongs to another place");
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
