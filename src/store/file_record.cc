#include "store/file_record.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/try.h"
#include "domain/codec.h"
#include "domain/json_reader.h"

namespace reprise {
namespace {

constexpr int kFileSchema = 1, kReferenceSchema = 2;

std::string WithPlace(int schema, const ChatId& chat, const Json& members) {
  Json json = {{"schema", schema}, {"chat_id", chat.str()}};
  json.update(members);
  return DumpJson(json);
}

Result<FileEntry> ReferenceFromJson(const Json& json) {
  auto info = TRY(FileInfoFromJson(json));
  const Json object = json.value("object", Json());
  JsonReader reader(object, "object");
  FileReference reference{
      .info = std::move(info), .object_key = reader.String("key"), .record_digest = reader.String("record_digest")};
  if (reader.error()) return Fail(*reader.error());
  return reference;
}

}  // namespace

const FileInfo& InfoOf(const FileEntry& entry) {
  const auto* const file = std::get_if<StoredFile>(&entry);
  return file != nullptr ? file->info : std::get<FileReference>(entry).info;
}

std::string FileToJson(const ChatId& chat, const StoredFile& file) {
  return WithPlace(kFileSchema, chat, ToJson(file));
}

std::string FileReferenceToJson(const ChatId& chat, const FileReference& reference) {
  Json members = ToJson(reference.info);
  members["object"] = {{"key", reference.object_key}, {"record_digest", reference.record_digest}};
  return WithPlace(kReferenceSchema, chat, members);
}

Result<FileEntry> FileEntryFromJson(const RecordPlace& place, std::string_view text) {
  const auto damaged = [&](std::string_view kind, std::string_view what) {
    return Fail(IntegrityError(kind, place, what));
  };
  const auto json = ParseJson(text);
  if (!json) return damaged("auth", "its content is not JSON");
  JsonReader reader(*json, "file");
  const std::int64_t schema = reader.Integer("schema");
  if (schema != kFileSchema && schema != kReferenceSchema && !reader.error()) {
    return damaged("version", "it has a format version that this program does not know");
  }
  const std::string chat = reader.String("chat_id");
  if (reader.error()) return damaged("auth", reader.error()->message);
  auto entry = schema == kReferenceSchema
                   ? ReferenceFromJson(*json)
                   : StoredFileFromJson(*json).map([](StoredFile file) -> FileEntry { return file; });
  if (!entry) return damaged(entry.error().reason == "integrity_version" ? "version" : "auth", entry.error().message);
  if (chat != place.chat.str() || InfoOf(*entry).id != place.file)
    return damaged("swap", "it belongs to another place");
  return entry;
}

Result<StoredFile> FileFromJson(const RecordPlace& place, std::string_view text) {
  auto entry = TRY(FileEntryFromJson(place, text));
  if (auto* const file = std::get_if<StoredFile>(&entry)) return std::move(*file);
  return Fail(IntegrityError("swap", place, "it says where the file is, and is not the file"));
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
