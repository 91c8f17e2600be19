#include "store/object_store.h"

#include <algorithm>
#include <utility>

#include "base/atomic_write.h"
#include "base/system.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "store/file_names.h"

namespace reprise {

namespace {

constexpr std::size_t kFolderBytes = 8, kNameBytes = 8, kLongestKeyName = 200;

// A name in the form for keys, different for each name: letters, digits, "-" and "_" are kept, all other bytes become
// .XX, and a name that is too long then becomes "._" and its SHA-256.
std::string KeyName(std::string_view name) {
  std::string text = PercentEncoded(name, "-_", '.');
  if (text.size() <= kLongestKeyName) return text;
  return "._" + Sha256Digest({name}).substr(std::string_view("sha256:").size());
}

bool IsKeyName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestKeyName &&
         std::ranges::all_of(text, [](char c) { return IsToolNameCharacter(c) || c == '.'; });
}

// The prefix for the text that the folder keeps: its digits, perhaps after "<org>/<user>.". nullopt: neither.
std::optional<std::string> PrefixOf(std::string_view kept) {
  if (IsRandomHex(kept, kFolderBytes)) return "org/-/user/" + std::string(kept) + "/thread/";
  const std::size_t slash = kept.find('/'), dot = kept.rfind('.');
  if (slash == std::string_view::npos || dot == std::string_view::npos || dot < slash) return std::nullopt;
  const std::string_view org = kept.substr(0, slash), user = kept.substr(slash + 1, dot - slash - 1);
  if (!IsKeyName(org) || !IsKeyName(user) || !IsRandomHex(kept.substr(dot + 1), kFolderBytes)) return std::nullopt;
  return "org/" + std::string(org) + "/user/" + std::string(kept.substr(slash + 1)) + "/thread/";
}

std::string NewFolderName(const Principal& owner) {
  std::string digits = RandomHex(kFolderBytes);
  return owner.is_tenant() ? KeyName(owner.org) + "/" + KeyName(owner.user) + "." + digits : digits;
}

// Adds the name of the file to an error of the bucket.
Error About(const RecordPlace& place, Error error) {
  error.message.insert(0, FileRecordName(place.chat, *place.file) + ": ");
  return error;
}

}  // namespace

Result<std::string> ObjectPrefixOf(const std::string& data_folder, FileSystem& file_system, bool make,
                                   const Principal& owner) {
  const std::string path = BucketFile(data_folder);
  const auto kept = file_system.ReadFile(path, 2 * kLongestKeyName + 2 * kFolderBytes + 3);
  if (kept) {
    auto prefix = PrefixOf(std::string_view(*kept).substr(0, kept->find('\n')));
    if (prefix) return *std::move(prefix);
  }
  const bool damaged = kept || kept.error().code == ErrorCode::kTooLarge;
  if (damaged) {
    return Fail(ErrorCode::kCorruption,
                path + " is damaged; remove it, and files that are given from then on get new names");
  }
  if (!IsNotFound(kept.error())) return Fail(kept.error());
  if (!make) return std::string();
  TRY(ReplaceFile(file_system, path, NewFolderName(owner) + "\n"));
  TRY(file_system.SyncDirectory(data_folder));
  return ObjectPrefixOf(data_folder, file_system, /*make=*/false);  // in a database another process may have been first
}

std::string NewObjectKey(const std::string& prefix, const ChatId& chat, const FileId& file) {
  return prefix + chat.str() + "/" + file.str() + "." + RandomHex(kNameBytes);
}

std::optional<ObjectName> ParseObjectKey(std::string_view prefix, std::string_view key) {
  if (!key.starts_with(prefix)) return std::nullopt;
  key.remove_prefix(prefix.size());
  const std::size_t slash = std::min(key.find('/'), key.size()), dot = std::min(key.find('.', slash), key.size());
  auto chat = ChatId::Parse(key.substr(0, slash));
  auto file = FileId::Parse(key.substr(std::min(slash + 1, key.size()), dot - std::min(slash + 1, dot)));
  if (!chat || !file || !IsRandomHex(key.substr(std::min(dot + 1, key.size())), kNameBytes)) return std::nullopt;
  return ObjectName{*std::move(chat), *std::move(file)};
}

Result<FileEntry> OpenFileEntry(const RecordFormat& format, const RecordPlace& place, std::string_view text) {
  const auto record = TRY(format.Open(place, text));
  return FileEntryFromJson(place, record.plaintext);
}

Result<FetchedFile> FetchFile(const RecordFormat& format, const RecordPlace& place, const FileReference& reference,
                              const FileBucket* bucket) {
  if (bucket == nullptr) {
    return Fail(About(place, Refused(Reason::kNoBucket,
                                     "it is in a bucket, and the configuration names none that can be used (files)")));
  }
  auto text = bucket->objects.Get(reference.object_key);
  if (!text && IsNotFound(text.error())) {
    return Fail(IntegrityError("missing", place, "its object is gone from the bucket"));
  }
  if (!text && text.error().code == ErrorCode::kTooLarge) {
    return Fail(IntegrityError("auth", place, "its object is larger than any that is written here"));
  }
  if (!text) return Fail(About(place, std::move(text.error())));
  const auto record = TRY(format.Open(place, *text));
  if (record.digest != reference.record_digest) {
    return Fail(IntegrityError("rollback", place, "its object is not the one that was stored"));
  }
  auto file = TRY(FileFromJson(place, record.plaintext));
  if (file.info != reference.info) return Fail(IntegrityError("swap", place, "its object is another file"));
  return FetchedFile{*std::move(text), std::move(file)};
}

}  // namespace reprise
