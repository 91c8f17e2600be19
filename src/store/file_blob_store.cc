#include "store/file_blob_store.h"

#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"
#include "domain/json_reader.h"
#include "store/file_names.h"

namespace reprise {
namespace {

constexpr int kBlobSchema = 1;
constexpr std::size_t kAtOnce = 8;
constexpr std::string_view kIntent = "restore";  // RecordPlace::blob of an intent

Json WithPlace(const ChatId& chat) { return {{"schema", kBlobSchema}, {"chat_id", chat.str()}}; }

std::string BlobText(const ChatId& chat, const Blob& blob) {
  Json json = WithPlace(chat);
  json.update(ToJson(blob));
  return DumpJson(json);
}

Result<Json> MembersOf(const RecordPlace& place, std::string_view plaintext) {
  const auto damaged = [&](std::string_view kind, std::string_view what) {
    return Fail(IntegrityError(kind, place, what));
  };
  auto json = ParseJson(plaintext);
  if (!json) return damaged("auth", "its content is not JSON");
  JsonReader reader(*json, "blob");
  const std::int64_t schema = reader.Integer("schema");
  const std::string chat = reader.String("chat_id");
  if (reader.error()) return damaged("auth", reader.error()->message);
  if (schema != kBlobSchema) return damaged("version", "it has a format version that this program does not know");
  if (chat != place.chat.str()) return damaged("swap", "it belongs to another place");
  return *std::move(json);
}

Result<Blob> BlobIn(const RecordPlace& place, std::string_view plaintext) {
  auto blob = BlobFromJson(TRY(MembersOf(place, plaintext)));
  if (!blob) return Fail(IntegrityError("auth", place, blob.error().message));
  return blob;
}

Result<std::string> TextFromJson(const RecordPlace& place, std::string_view plaintext, const char* member) {
  const Json json = TRY(MembersOf(place, plaintext));
  JsonReader reader(json, "blob");
  std::string text = reader.String(member);
  if (reader.error()) return Fail(IntegrityError("auth", place, reader.error()->message));
  return text;
}

std::string NameOf(const SecretKey& names, std::string_view digest) {
  const std::string mac = HmacSha256(names, {digest});
  return mac.substr(mac.find(':') + 1);
}

}  // namespace

FileBlobStore::FileBlobStore(std::string root, std::shared_ptr<const KeySet> keys, FileSystem& file_system)
    : root_(std::move(root)), format_(MakeRecordFormat(std::move(keys))), file_system_(file_system) {
  file_system_.Confine(root_);
}

Result<void> FileBlobStore::Write(const RecordPlace& place, const std::string& path, std::string_view text) {
  const auto record = TRY(format_->Seal(place, {}, text));
  return ReplaceFile(file_system_, path, record.text);
}

Result<std::string> FileBlobStore::Read(const RecordPlace& place, const std::string& path) const {
  const auto text = TRY(ReadRecordText(file_system_, path, place));
  return format_->Open(place, text).map([](OpenedRecord record) { return std::move(record.plaintext); });
}

Result<FileBlobStore::Names> FileBlobStore::NamesOf(const ChatId& chat, bool make) {
  const MutexLock lock(mutex_);
  // Temporary files from before this process's first write belong to a process that has ended.
  if (make && tidied_.insert(chat).second) RemoveTemporaryFiles(file_system_, BlobsDirectory(root_, chat));
  if (const auto known = names_.find(chat); known != names_.end()) return known->second;
  const RecordPlace place{.chat = chat, .blob = std::string(kBlobNames)};
  const std::string path = BlobPath(root_, chat, kBlobNames), directory = BlobsDirectory(root_, chat);
  const auto stored = Read(place, path);
  if (!stored && !(IsNotFound(stored.error()) && make)) return Fail(stored.error());
  Names names;
  if (stored) {
    const auto bytes = DecodeBase64Url(TRY(TextFromJson(place, *stored, "key")));
    auto key = bytes ? SecretKey::FromBytes(*bytes) : std::nullopt;
    if (!key) return Fail(IntegrityError("auth", place, "it is no key"));
    names = std::make_shared<const SecretKey>(*std::move(key));
  } else {
    auto made = file_system_.CreateDirectory(directory);
    if (!made && IsNotFound(made.error())) return Fail(ErrorCode::kNotFound, "no such chat");
    if (!made) return Fail(made.error());
    names = std::make_shared<const SecretKey>(SecretKey::Random());
    Json json = WithPlace(chat);
    json["key"] = EncodeBase64Url(names->bytes());
    TRY(Write(place, path, DumpJson(json)));
    TRY(file_system_.SyncDirectory(directory));
    TRY(file_system_.SyncDirectory(ChatDirectory(root_, chat)));
  }
  names_.emplace(chat, names);
  return names;
}

Result<bool> FileBlobStore::IsThere(const ChatId& chat, const std::string& name) {
  const auto text = file_system_.ReadFile(BlobPath(root_, chat, name), kMaxRecordBytes);
  if (text) return true;
  if (IsNotFound(text.error())) return false;
  return Fail(text.error());
}

Result<void> FileBlobStore::Put(const ChatId& chat, const std::vector<Blob>& blobs) {
  if (blobs.empty()) return {};
  const Names names = TRY(NamesOf(chat, /*make=*/true));
  std::map<std::string, const Blob*> fresh;
  for (const Blob& blob : blobs) {
    std::string name = NameOf(*names, blob.digest);
    if (!fresh.contains(name) && !TRY(IsThere(chat, name))) fresh.emplace(std::move(name), &blob);
  }
  const auto write = [&](const std::string& name, const Blob& blob) {
    return Write({.chat = chat, .blob = name}, BlobPath(root_, chat, name), BlobText(chat, blob));
  };
  // Each write waits for the disk, which needs no longer for several at once than for one.
  for (auto next = fresh.begin(); next != fresh.end();) {
    std::vector<std::future<Result<void>>> written;
    for (; next != fresh.end() && written.size() < kAtOnce; ++next) {
      const auto policy = fresh.size() == 1 ? std::launch::deferred : std::launch::async;
      written.push_back(std::async(policy, write, std::cref(next->first), std::cref(*next->second)));
    }
    Result<void> all;
    for (auto& each : written) {
      if (auto result = each.get(); !result) all = std::move(result);
    }
    TRY(all);
  }
  return fresh.empty() ? Result<void>() : file_system_.SyncDirectory(BlobsDirectory(root_, chat));
}

Result<std::string> FileBlobStore::Get(const ChatId& chat, std::string_view digest) {
  const Names names = TRY(NamesOf(chat, /*make=*/false));
  const RecordPlace place{.chat = chat, .blob = NameOf(*names, digest)};
  const auto plaintext = TRY(Read(place, BlobPath(root_, chat, place.blob)));
  Blob blob = TRY(BlobIn(place, plaintext));
  if (blob.digest != digest) return Fail(IntegrityError("swap", place, "it belongs to another place"));
  return std::move(blob.content);
}

Result<std::vector<std::string>> FileBlobStore::List(const ChatId& chat) {
  std::vector<std::string> digests;
  for (const std::string& name : TRY(ListBlobNames(root_, chat, file_system_))) {
    if (name == kBlobNames || name == kBlobPosition) continue;
    const RecordPlace place{.chat = chat, .blob = name};
    const auto plaintext = Read(place, BlobPath(root_, chat, name));
    if (!plaintext && IsNotFound(plaintext.error())) continue;  // deleted meanwhile
    if (!plaintext) return Fail(plaintext.error());
    digests.push_back(TRY(CheckBlobRecord(place, *plaintext)));
  }
  return digests;
}

Result<void> FileBlobStore::Delete(const ChatId& chat, std::string_view digest) {
  const Names names = TRY(NamesOf(chat, /*make=*/false));
  return file_system_.RemoveFile(BlobPath(root_, chat, NameOf(*names, digest)));
}

Result<std::optional<std::string>> FileBlobStore::ReadPosition(const ChatId& chat) {
  const RecordPlace place{.chat = chat, .blob = std::string(kBlobPosition)};
  const auto plaintext = Read(place, BlobPath(root_, chat, kBlobPosition));
  if (!plaintext && IsNotFound(plaintext.error())) return std::nullopt;
  if (!plaintext) return Fail(plaintext.error());
  return TextFromJson(place, *plaintext, "position").map([](std::string text) { return std::optional(text); });
}

Result<void> FileBlobStore::WritePosition(const ChatId& chat, std::string_view text) {
  const std::string path = BlobPath(root_, chat, kBlobPosition), directory = BlobsDirectory(root_, chat);
  if (text.empty()) {
    auto removed = file_system_.RemoveFile(path);
    if (!removed && IsNotFound(removed.error())) return {};
    return removed.and_then([&] { return file_system_.SyncDirectory(directory); });
  }
  TRY(NamesOf(chat, /*make=*/true));  // creates the folder, too
  Json json = WithPlace(chat);
  json["position"] = text;
  TRY(Write({.chat = chat, .blob = std::string(kBlobPosition)}, path, DumpJson(json)));
  return file_system_.SyncDirectory(directory);
}

Result<void> FileBlobStore::WriteIntent(const ChatId& chat, std::string_view text) {
  const std::string path = IntentFile(root_, chat);
  if (text.empty()) {
    auto removed = file_system_.RemoveFile(path);
    if (!removed && IsNotFound(removed.error())) return {};
    return removed.and_then([&] { return file_system_.SyncDirectory(root_); });
  }
  Json json = WithPlace(chat);
  json["intent"] = text;
  TRY(Write({.chat = chat, .blob = std::string(kIntent)}, path, DumpJson(json)));
  return file_system_.SyncDirectory(root_);
}

Result<std::vector<BlobStore::Intent>> FileBlobStore::ReadIntents() {
  std::vector<Intent> intents;
  for (const DirectoryEntry& entry : TRY(file_system_.ListDirectory(root_))) {
    const auto chat = entry.is_directory ? std::nullopt : ParseIntentFile(entry.name);
    if (!chat) continue;
    const RecordPlace place{.chat = *chat, .blob = std::string(kIntent)};
    intents.push_back({*chat, Read(place, IntentFile(root_, *chat)).and_then([&](const std::string& plaintext) {
                         return TextFromJson(place, plaintext, "intent");
                       })});
  }
  return intents;
}

void FileBlobStore::ForgetChat(const ChatId& chat) {
  const MutexLock lock(mutex_);
  names_.erase(chat);
  tidied_.erase(chat);
}

Result<std::vector<std::string>> ListBlobNames(const std::string& root, const ChatId& chat, FileSystem& file_system) {
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : TRY(ListFolder(file_system, BlobsDirectory(root, chat), BlobsName(chat)))) {
    auto name = ParseBlobName(entry.name);
    if (name && !entry.is_directory) names.push_back(*std::move(name));
  }
  return names;
}

Result<std::string> CheckBlobRecord(const RecordPlace& place, std::string_view plaintext) {
  if (place.blob == kBlobNames)
    return TextFromJson(place, plaintext, "key").map([](const std::string&) { return std::string(); });
  if (place.blob == kBlobPosition) {
    return TextFromJson(place, plaintext, "position").map([](const std::string&) { return std::string(); });
  }
  return BlobIn(place, plaintext).map([](Blob blob) { return std::move(blob.digest); });
}

}  // namespace reprise
