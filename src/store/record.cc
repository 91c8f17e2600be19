#include "store/record.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "domain/json_reader.h"
#include "store/file_names.h"

namespace reprise {

namespace {

constexpr int kRecordVersion = 1;
constexpr std::string_view kInteractionType = "reprise/interaction";
constexpr std::string_view kChatType = "reprise/chat";
constexpr std::string_view kFileType = "reprise/file";
constexpr std::string_view kBlobType = "reprise/blob";
constexpr std::string_view kQueueType = "reprise/queue";
constexpr std::string_view kQuestionType = "reprise/question", kAnswerType = "reprise/answer";

std::string_view TypeOf(const RecordPlace& place) {
  if (place.file) return kFileType;
  if (place.queue) return kQueueType;
  if (!place.blob.empty()) return kBlobType;
  if (!place.question.empty()) return place.is_answer ? kAnswerType : kQuestionType;
  return place.interaction ? kInteractionType : kChatType;
}

tl::unexpected<Error> Damaged(std::string_view kind, const RecordPlace& place, std::string_view what) {
  return Fail(IntegrityError(kind, place, what));
}

Result<void> CheckSize(std::string_view text) {
  if (text.size() > kMaxRecordBytes) return Fail(ErrorCode::kTooLarge, "this is too large to be stored");
  return {};
}

// Members of the protected header, by name. Written to disk: part of the file format.
std::string ProtectedMembers(const RecordPlace& place, const RecordLinks& links) {
  std::string text;
  AppendJsonObject(text, [&](auto& members) {
    members["typ"] = TypeOf(place);
    members["ver"] = kRecordVersion;
    members["chat_id"] = place.chat.str();
    if (place.file) members["file_id"] = place.file->str();
    if (!place.blob.empty()) members["blob"] = place.blob;
    if (!place.interaction) return;
    members["interaction_id"] = place.interaction->str();
    if (!place.question.empty()) {
      members["question_id"] = place.question;
      return;
    }
    members["parent_id"] = links.parent ? Json(links.parent->str()) : Json();
    members["parent_digest"] = links.parent_digest ? Json(*links.parent_digest) : Json();
  });
  return text;
}

bool Says(const Json& header, const char* name, std::string_view value) {
  const auto member = header.find(name);
  return member != header.end() && member->is_string() && member->get_ref<const std::string&>() == value;
}

// A member that is a string or null; the outer optional is empty if it is neither.
std::optional<std::optional<std::string>> TextOrNull(const Json& header, const char* name) {
  const auto member = header.find(name);
  if (member == header.end()) return std::nullopt;
  if (member->is_null()) return std::optional<std::string>();
  if (!member->is_string()) return std::nullopt;
  return std::optional<std::string>(member->get_ref<const std::string&>());
}

Result<RecordLinks> LinksFromHeader(const RecordPlace& place, const Json& header) {
  if (!place.interaction || !place.question.empty()) return RecordLinks{};
  const auto parent = TextOrNull(header, "parent_id");
  auto digest = TextOrNull(header, "parent_digest");
  if (!parent || !digest) return Damaged("auth", place, "its header is incomplete");
  RecordLinks links{.parent = std::nullopt, .parent_digest = *std::move(digest)};
  if (*parent) {
    const auto id = InteractionId::Parse(**parent);
    if (!id) return Damaged("auth", place, "its header names no valid parent");
    links.parent = *id;
  }
  return links;
}

Result<void> CheckHeader(const RecordPlace& place, const Json& header) {
  const auto version = header.find("ver");
  if (version == header.end() || !version->is_number_integer() || *version != kRecordVersion) {
    return Damaged("version", place, "it was written by a version of this program that is not known here");
  }
  const bool here = Says(header, "typ", TypeOf(place)) && Says(header, "chat_id", place.chat.str()) &&
                    (!place.interaction || Says(header, "interaction_id", place.interaction->str())) &&
                    (place.blob.empty() || Says(header, "blob", place.blob)) &&
                    (!place.file || Says(header, "file_id", place.file->str())) &&
                    (place.question.empty() || Says(header, "question_id", place.question));
  if (!here) return Damaged("swap", place, "it holds a record that belongs to another place");
  return {};
}

// The error for a text that is no JWE: plain data, or damage.
tl::unexpected<Error> NotSealed(const RecordPlace& place, std::string_view text, std::string_view what) {
  const auto json = ParseJson(text, 2 * kMaxJsonDepth);
  const bool plain = json && json->is_object() && !json->contains("ciphertext");
  if (plain) return Damaged("plain", place, "it is not sealed, and this data folder is");
  return Damaged("auth", place, what);
}

class SealedFormat final : public RecordFormat {
 public:
  explicit SealedFormat(std::shared_ptr<const KeySet> keys) : keys_(std::move(keys)) {}

  Result<SealedRecord> Seal(const RecordPlace& place, const RecordLinks& links,
                            std::string_view plaintext) const override {
    auto text = TRY(SealJweUnder(ProtectedMembers(place, links), plaintext, *keys_));
    TRY(CheckSize(text));
    auto digest = TRY(RecordDigest(text));
    return SealedRecord{.text = std::move(text), .digest = std::move(digest)};
  }

  Result<OpenedRecord> Open(const RecordPlace& place, std::string_view text) const override {
    auto opened = OpenJwe(text, *keys_);
    if (!opened) {
      if (opened.error().code != ErrorCode::kCorruption) return Fail(std::move(opened.error()));
      if (opened.error().Is(Reason::kIntegritySwap)) return Damaged("swap", place, opened.error().message);
      return NotSealed(place, text, opened.error().message);
    }
    const auto header = ParseJson(opened->protected_header);
    if (!header) return Damaged("auth", place, "its header is not JSON");
    TRY(CheckHeader(place, *header));
    auto links = TRY(LinksFromHeader(place, *header));
    auto digest = TRY(RecordDigest(text));
    return OpenedRecord{
        .plaintext = std::move(opened->plaintext), .digest = std::move(digest), .links = std::move(links)};
  }

  Result<RecordLinks> ReadLinks(const RecordPlace& place, std::string_view text,
                                std::string_view digest) const override {
    const auto actual = RecordDigest(text);
    if (!actual) return Damaged("auth", place, actual.error().message);
    if (*actual != digest) return Damaged("rollback", place, "it is not the version that was stored last");
    const auto header = ReadJweHeader(text);
    if (!header) return Damaged("auth", place, header.error().message);
    TRY(CheckHeader(place, *header));
    return LinksFromHeader(place, *header);
  }

  Result<std::string> DigestOf(std::string_view text) const override { return RecordDigest(text); }
  bool authenticated() const override { return true; }

 private:
  const std::shared_ptr<const KeySet> keys_;
};

class PlainFormat final : public RecordFormat {
 public:
  Result<SealedRecord> Seal(const RecordPlace&, const RecordLinks&, std::string_view plaintext) const override {
    TRY(CheckSize(plaintext));
    return SealedRecord{.text = std::string(plaintext), .digest = Sha256Digest({plaintext})};
  }

  Result<OpenedRecord> Open(const RecordPlace& place, std::string_view text) const override {
    if (LooksLikeJwe(text))
      return Damaged("sealed", place, "it is sealed, and this data folder is used as a plain one");
    return OpenedRecord{.plaintext = std::string(text), .digest = Sha256Digest({text}), .links = std::nullopt};
  }

  Result<RecordLinks> ReadLinks(const RecordPlace&, std::string_view, std::string_view) const override {
    return Fail(ErrorCode::kInternal, "a plain record keeps no links");
  }

  Result<std::string> DigestOf(std::string_view text) const override { return Sha256Digest({text}); }
  bool authenticated() const override { return false; }
};

}  // namespace

Error IntegrityError(std::string_view kind, const RecordPlace& place, std::string_view what) {
  const std::string name = place.file            ? FileRecordName(place.chat, *place.file)
                           : place.queue         ? QueueName(place.chat)
                           : !place.blob.empty() ? BlobRecordName(place.chat, place.blob)
                           : place.is_journal    ? JournalName(place.chat, *place.interaction)
                                                 : RecordName(place.chat, place.interaction);
  return Error{.code = ErrorCode::kCorruption,
               .reason = "integrity_" + std::string(kind),
               .message = name + ": " + std::string(what),
               .detail = name,
               .details_json = DumpJson({{"file", name}})};
}

Error FolderError(const std::string& name, Error error) {
  if (error.code != ErrorCode::kCorruption) return error;
  error.message.insert(0, name + ": ");
  error.detail = name;
  error.details_json = DumpJson({{"file", name}});
  return error;
}

Result<std::vector<DirectoryEntry>> ListFolder(FileSystem& file_system, const std::string& path,
                                               const std::string& name) {
  auto entries = file_system.ListDirectory(path);
  if (entries) return entries;
  if (IsNotFound(entries.error())) return std::vector<DirectoryEntry>();
  return Fail(FolderError(name, std::move(entries.error())));
}

void RemoveTemporaryFiles(FileSystem& file_system, const std::string& folder) {
  const auto entries = file_system.ListDirectory(folder);
  if (!entries) return;
  for (const DirectoryEntry& entry : *entries) {
    if (IsTemporaryName(entry.name)) static_cast<void>(file_system.RemoveFile(folder + "/" + entry.name));
  }
}

Result<std::string> ReadRecordText(FileSystem& file_system, const std::string& path, const RecordPlace& place) {
  auto text = file_system.ReadFile(path, kMaxRecordBytes);
  if (text) return text;
  if (text.error().code == ErrorCode::kCorruption) return Fail(IntegrityError("missing", place, text.error().message));
  if (text.error().code == ErrorCode::kTooLarge) {
    return Fail(IntegrityError("auth", place, "the file is larger than any that is written here"));
  }
  return text;
}

std::unique_ptr<RecordFormat> MakeRecordFormat(std::shared_ptr<const KeySet> keys) {
  if (keys) return std::make_unique<SealedFormat>(std::move(keys));
  return std::make_unique<PlainFormat>();
}

Result<RecordFile> ReadRecordFile(const std::string& path, const KeySet* keys, FileSystem& file_system) {
  auto text = TRY(file_system.ReadFile(path, kMaxRecordBytes));
  if (!LooksLikeJwe(text)) {
    const auto json = ParseJson(text, 2 * kMaxJsonDepth);
    if (json && json->is_object() && !json->contains("ciphertext")) {
      return RecordFile{.plaintext = std::move(text), .protected_header = {}, .kid = {}};
    }
    return Fail(ErrorCode::kCorruption, "the file is neither a sealed record nor a JSON object", path);
  }
  if (keys == nullptr) {
    return Fail(Reason::kKeyNeeded, "the file is sealed and there is no key file", path);
  }
  auto opened = OpenJwe(text, *keys);
  if (!opened) {
    opened.error().detail = path;
    return Fail(std::move(opened.error()));
  }
  return RecordFile{.plaintext = std::move(opened->plaintext),
                    .protected_header = std::move(opened->protected_header),
                    .kid = std::move(opened->kid)};
}

namespace {

constexpr int kHeadVersion = 1;
constexpr std::uint64_t kMaxHeadFile = 64 * 1024;

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Error LoneRecordDamage(std::string_view name, std::string_view kind, std::string_view what) {
  return Error{.code = ErrorCode::kCorruption,
               .reason = "integrity_" + std::string(kind),
               .message = std::string(name) + ": " + std::string(what),
               .detail = std::string(name),
               .details_json = DumpJson({{"file", std::string(name)}})};
}

Result<std::string> OpenLoneRecord(std::string_view text, std::string_view name, std::string_view type, int version,
                                   const KeySet* keys) {
  const auto damaged = [&](std::string_view kind, std::string_view what) {
    return Fail(LoneRecordDamage(name, kind, what));
  };
  const bool sealed = LooksLikeJwe(text);
  if (keys == nullptr && sealed) {
    return damaged("plain", "it is sealed, and this data folder is used as a plain one");
  }
  if (keys == nullptr) return std::string(text);
  if (!sealed && ParseJson(text)) return damaged("plain", "it is not sealed, and this data folder is");
  auto opened = OpenJwe(text, *keys);
  if (!opened && opened.error().code == ErrorCode::kCorruption) return damaged("auth", opened.error().message);
  if (!opened) return Fail(std::move(opened.error()));
  const auto header = ParseJson(opened->protected_header);
  if (!header || JsonReader(*header, "header").String("typ") != type) {
    return damaged("swap", "it holds a record of another kind");
  }
  if (JsonReader(*header, "header").Integer("ver") != version) {
    return damaged("version", "it was written by a version of this program that is not known here");
  }
  return std::move(opened->plaintext);
}

Result<std::optional<std::string>> ReadHeadFile(FileSystem& file_system, const std::string& path, std::string_view type,
                                                const KeySet* keys) {
  const auto text = file_system.ReadFile(path, kMaxHeadFile);
  if (!text && IsNotFound(text.error())) return std::optional<std::string>();
  if (!text && text.error().code == ErrorCode::kTooLarge) {
    return Fail(LoneRecordDamage(NameOf(path), "auth", "it is too large"));
  }
  if (!text) return Fail(text.error());
  return OpenLoneRecord(*text, NameOf(path), type, kHeadVersion, keys).map([](std::string plaintext) {
    return std::optional(std::move(plaintext));
  });
}

Result<std::string> HeadText(std::string_view type, std::string_view json, const KeySet* keys) {
  if (keys == nullptr) return std::string(json);
  return SealJwe({{"typ", type}, {"ver", kHeadVersion}}, json, *keys);
}

Result<void> WriteHeadFile(FileSystem& file_system, const std::string& path, std::string_view type,
                           std::string_view json, const KeySet* keys) {
  auto text = TRY(HeadText(type, json, keys));
  return ReplaceFile(file_system, path, text).and_then([&] {
    return file_system.SyncDirectory(ParentDirectory(path));
  });
}

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
  if (!entry) return damaged(entry.error().Is(Reason::kIntegrityVersion) ? "version" : "auth", entry.error().message);
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
