#include "store/upkeep.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/atomic_write.h"
#include "base/try.h"
#include "crypto/jwe.h"
#include "store/data_folder.h"
#include "store/file_names.h"
#include "store/record.h"
#include "store/unsaved.h"

namespace reprise {

namespace {

constexpr std::string_view kTenantMark = ".tenant";
constexpr int kMaxDepth = 8;  // .trash/CHAT/interactions is 3

class Rewrapping {
 public:
  Rewrapping(const KeySet& keys, FileSystem& file_system, WorkCounter* counter)
      : keys_(keys), file_system_(file_system), counter_(counter) {}

  Result<void> Folder(const std::string& path, int depth = 0) {
    const auto entries = TRY(file_system_.ListDirectory(path));
    if (depth > 0 && IsTenants(entries)) return {};
    bool has_sealed = false;
    for (const DirectoryEntry& entry : entries) {
      const std::string below = path + "/" + entry.name;
      Result<bool> sealed = false;
      if (entry.is_directory && depth == kMaxDepth) {
        Leave(below, MakeError(ErrorCode::kCorruption, "the folder is nested too deep"));
      } else if (entry.is_directory) {
        sealed = Folder(below, depth + 1).map([] { return false; });
      } else if (!IsTemporaryName(entry.name)) {
        sealed = File(below);
        TRY(CountStep(counter_));
      }
      if (!sealed) return Fail(std::move(sealed.error()));
      has_sealed = has_sealed || *sealed;
    }
    // Even where nothing was changed: an earlier run that changed it may have ended before it synced the names.
    return has_sealed ? file_system_.SyncDirectory(path) : Result<void>();
  }

  Rewrapped result() && { return std::move(result_); }

 private:
  // A user's folder is a store of its own, with keys of its own.
  static bool IsTenants(const std::vector<DirectoryEntry>& entries) {
    return std::ranges::any_of(entries, [](const DirectoryEntry& entry) { return entry.name == kTenantMark; });
  }

  void Leave(const std::string& path, Error error) {
    error.detail = path;
    result_.left.push_back(std::move(error));
  }

  // True if the file is under the current key now.
  Result<bool> File(const std::string& path) {
    auto text = file_system_.ReadFile(path, kMaxRecordBytes);
    if (!text) return Leave(path, std::move(text.error())), false;
    // A record is one JWE. A journal's first line is one, and holds the key of the records after it.
    const std::string_view sealed = LooksLikeJwe(*text) ? *text : std::string_view(*text).substr(0, text->find('\n'));
    if (!LooksLikeJwe(sealed)) {
      // Perhaps it is cut off; its content key may still be in it.
      if (text->find(R"("encrypted_key":")") != std::string::npos) {
        Leave(path, MakeError(ErrorCode::kCorruption, "the file is sealed and damaged"));
      }
      return false;
    }
    auto rewrapped = RewrapJwe(sealed, keys_);
    if (!rewrapped) return Leave(path, std::move(rewrapped.error())), false;
    if (*rewrapped == sealed) return ++result_.current, true;
    if (!IsSame(sealed, *rewrapped)) return Fail(ErrorCode::kInternal, "a file could not be wrapped anew", path);
    rewrapped->append(*text, sealed.size());
    return Replace(path, *rewrapped).map([&] { return ++result_.files, true; });
  }

  // Checked before the old file is replaced: this is the same record, and the current key opens it.
  bool IsSame(std::string_view sealed, std::string_view rewrapped) const {
    const auto opened = OpenJwe(rewrapped, KeysOfRecord(rewrapped, keys_));
    return opened && opened->kid == keys_.current().kid && *RecordDigest(sealed) == *RecordDigest(rewrapped);
  }

  Result<void> Replace(const std::string& path, const std::string& text) {
    TRY(ReplaceFile(file_system_, path, text));
    const auto stored = TRY(file_system_.ReadFile(path, kMaxRecordBytes));
    if (stored != text) return Fail(ErrorCode::kIo, "the disk does not hold what was written to it", path);
    return {};
  }

  const KeySet& keys_;
  FileSystem& file_system_;
  WorkCounter* const counter_;
  Rewrapped result_;
};

}  // namespace

Result<Rewrapped> RewrapStore(const std::string& data_folder, const KeySet& keys, FileSystem& file_system,
                              WorkCounter* counter) {
  Rewrapping rewrapping(keys, file_system, counter);
  file_system.Confine(data_folder);
  TRY(rewrapping.Folder(data_folder));
  for (const std::string& folder : UnsavedFolders(data_folder)) {
    if (const auto there = file_system.ListDirectory(folder); !there) {
      if (IsNotFound(there.error())) continue;
      return Fail(there.error());
    }
    TRY(CheckPrivateDirectory(folder));
    file_system.Confine(folder);
    TRY(rewrapping.Folder(folder));
  }
  return std::move(rewrapping).result();
}

namespace {

// A file's record, anywhere below the data folder.
struct FileOnDisk {
  std::string folder, path;
  RecordPlace place;
};
using UseFile = std::function<Result<void>(const FileOnDisk&)>;

class FileWalk {
 public:
  FileWalk(FileSystem& file_system, const UseFile& use) : file_system_(file_system), use_(use) {}

  Result<void> DataFolder(const std::string& root) const {
    file_system_.Confine(root);
    TRY(Chats(root));
    TRY(EachFolder(root, [&](const std::string& name) {
      return IsIncomingDirectory(name) ? Chats(root + "/" + name) : Result<void>();
    }));
    const std::string trash = TrashDirectory(root);
    return EachFolder(trash, [&](const std::string& name) -> Result<void> {
      const auto deleted = ParseTrashName(name);
      return deleted ? Files(FilesIn(trash + "/" + name), deleted->chat) : Result<void>();
    });
  }

 private:
  Result<void> Chats(const std::string& root) const {
    return EachFolder(root, [&](const std::string& name) -> Result<void> {
      const auto chat = ParseChatDirectory(name);
      return chat ? Files(FilesDirectory(root, *chat), *chat) : Result<void>();
    });
  }

  Result<void> Files(const std::string& folder, const ChatId& chat) const {
    const auto entries = file_system_.ListDirectory(folder);
    if (!entries && IsNotFound(entries.error())) return {};
    if (!entries) return Fail(entries.error());
    for (const DirectoryEntry& entry : *entries) {
      const auto id = ParseFileName(entry.name);
      if (!id || entry.is_directory) continue;
      TRY(use_({folder, folder + "/" + entry.name, {.chat = chat, .file = *id}}));
    }
    return {};
  }

  template <typename Use>
  Result<void> EachFolder(const std::string& folder, const Use& use) const {
    const auto entries = file_system_.ListDirectory(folder);
    if (!entries && IsNotFound(entries.error())) return {};
    if (!entries) return Fail(entries.error());
    for (const DirectoryEntry& entry : *entries) {
      if (!entry.is_directory && !IsLink(folder + "/" + entry.name)) continue;
      TRY(use(entry.name));
    }
    return {};
  }

  // A link is not followed, but the files behind it must not count as missing: looking into it fails.
  bool IsLink(const std::string& path) const {
    const auto inside = file_system_.ListDirectory(path);
    return !inside && inside.error().code == ErrorCode::kCorruption;
  }

  FileSystem& file_system_;
  const UseFile& use_;
};

Result<void> ForEachFile(const BucketUpkeep& upkeep, const UseFile& use) {
  return FileWalk(upkeep.file_system, use).DataFolder(upkeep.root);
}

// A record as it lies in the folder, and its content.
struct ReadFileRecord {
  OpenedRecord record;
  std::string text;
  FileEntry entry;
};

// nullopt: it has been removed meanwhile.
Result<std::optional<ReadFileRecord>> ReadEntry(FileSystem& file_system, const RecordFormat& format,
                                                const FileOnDisk& file) {
  auto text = ReadRecordText(file_system, file.path, file.place);
  if (!text && IsNotFound(text.error())) return std::nullopt;
  if (!text) return Fail(std::move(text.error()));
  auto record = TRY(format.Open(file.place, *text));
  auto entry = TRY(FileEntryFromJson(file.place, record.plaintext));
  return ReadFileRecord{std::move(record), *std::move(text), std::move(entry)};
}

// Calls `use` for each readable file; the others go into `left`.
using UseEntry = std::function<Result<void>(const FileOnDisk&, const ReadFileRecord&)>;
Result<void> ForEachEntry(const BucketUpkeep& upkeep, std::vector<Error>& left, const UseEntry& use) {
  const auto format = MakeRecordFormat(upkeep.keys);
  return ForEachFile(upkeep, [&](const FileOnDisk& file) -> Result<void> {
    auto read = ReadEntry(upkeep.file_system, *format, file);
    auto used = read.and_then(
        [&](const std::optional<ReadFileRecord>& found) { return found ? use(file, *found) : Result<void>(); });
    if (!used && used.error().code != ErrorCode::kCorruption) return used;
    if (!used) left.push_back(std::move(used.error()));
    return CountStep(upkeep.counter);
  });
}

// The references of a folder's records to its bucket.
struct References {
  std::set<std::string> keys;
  std::set<ObjectName> unreadable;  // it is unknown which objects are theirs
};

Result<void> AddReferences(const BucketUpkeep& upkeep, References& references) {
  const auto format = MakeRecordFormat(upkeep.keys);
  return ForEachFile(upkeep, [&](const FileOnDisk& file) -> Result<void> {
    const auto read = ReadEntry(upkeep.file_system, *format, file);
    if (!read && read.error().code != ErrorCode::kCorruption) return Fail(read.error());
    if (!read) references.unreadable.insert({file.place.chat, *file.place.file});
    const auto* const reference = read && *read ? std::get_if<FileReference>(&(*read)->entry) : nullptr;
    if (reference != nullptr) references.keys.insert(reference->object_key);
    return {};
  });
}

Result<std::vector<StoredObject>> ListAll(const FileBucket& bucket) {
  std::vector<StoredObject> all;
  for (std::string after;;) {
    auto page = TRY(bucket.objects.List(bucket.prefix, after));
    all.insert(all.end(), std::make_move_iterator(page.objects.begin()), std::make_move_iterator(page.objects.end()));
    if (!page.has_more) return all;
    if (all.empty() || all.back().key <= after) {
      return Fail(Reason::kBucketFailed, "the bucket lists the same objects again and again");
    }
    after = all.back().key;
  }
}

Result<void> Replace(const BucketUpkeep& upkeep, const FileOnDisk& file, const std::string& text) {
  return ReplaceFile(upkeep.file_system, file.path, text).and_then([&] {
    return upkeep.file_system.SyncDirectory(file.folder);
  });
}

}  // namespace

Result<Swept> SweepBucket(const BucketUpkeep& upkeep, Timestamp now, bool dry_run) {
  Swept swept;
  if (upkeep.bucket.prefix.empty()) return swept;
  // The objects first, so that an object that is put meanwhile is not among them.
  const auto objects = TRY(ListAll(upkeep.bucket));
  // Twice, because one look may miss a chat that moves to the trash or back.
  References references;
  TRY(AddReferences(upkeep, references));
  TRY(AddReferences(upkeep, references));
  swept.objects = objects.size();
  for (const StoredObject& object : objects) {
    TRY(CountStep(upkeep.counter));
    const auto name = ParseObjectKey(upkeep.bucket.prefix, object.key);
    if (!name || references.keys.contains(object.key) || references.unreadable.contains(*name)) continue;
    // These are two clocks, but a bucket rejects clients whose clock differs by more than minutes.
    if (object.changed_at + kSweepAge > now) {
      ++swept.young;
      continue;
    }
    if (!dry_run) TRY(upkeep.bucket.objects.Delete(object.key));
    swept.taken.push_back(object);
  }
  return swept;
}

Result<Moved> PushFiles(const BucketUpkeep& upkeep) {
  Moved moved;
  ObjectStore& objects = upkeep.bucket.objects;
  const auto format = MakeRecordFormat(upkeep.keys);
  TRY(ForEachEntry(upkeep, moved.left, [&](const FileOnDisk& file, const ReadFileRecord& read) -> Result<void> {
    const auto* const content = std::get_if<StoredFile>(&read.entry);
    if (content == nullptr) return ++moved.there, Result<void>();
    const RecordPlace& place = file.place;
    const FileReference reference{.info = content->info,
                                  .object_key = NewObjectKey(upkeep.bucket.prefix, place.chat, *place.file),
                                  .record_digest = read.record.digest};
    TRY(objects.Put(reference.object_key, read.text));
    TRY(FetchFile(*format, place, reference, &upkeep.bucket));
    const auto record = TRY(format->Seal(place, {}, FileReferenceToJson(place.chat, reference)));
    TRY(Replace(upkeep, file, record.text));
    moved.bytes += read.text.size();
    ++moved.files;
    return {};
  }));
  return moved;
}

Result<Moved> PullFiles(const BucketUpkeep& upkeep) {
  Moved moved;
  const auto format = MakeRecordFormat(upkeep.keys);
  TRY(ForEachEntry(upkeep, moved.left, [&](const FileOnDisk& file, const ReadFileRecord& read) -> Result<void> {
    const auto* const reference = std::get_if<FileReference>(&read.entry);
    if (reference == nullptr) return ++moved.there, Result<void>();
    const auto fetched = TRY(FetchFile(*format, file.place, *reference, &upkeep.bucket));
    TRY(Replace(upkeep, file, fetched.record));
    moved.bytes += fetched.record.size();
    ++moved.files;
    return upkeep.bucket.objects.Delete(reference->object_key);
  }));
  return moved;
}

Result<void> RewrapObjects(const BucketUpkeep& upkeep, Rewrapped& done) {
  const KeySet& keys = *upkeep.keys;
  const auto format = MakeRecordFormat(upkeep.keys);
  return ForEachEntry(upkeep, done.left, [&](const FileOnDisk& file, const ReadFileRecord& read) -> Result<void> {
    const auto* const reference = std::get_if<FileReference>(&read.entry);
    if (reference == nullptr) return {};
    const auto fetched = TRY(FetchFile(*format, file.place, *reference, &upkeep.bucket));
    const auto rewrapped = TRY(RewrapJwe(fetched.record, keys));
    if (rewrapped == fetched.record) return ++done.current, Result<void>();
    TRY(upkeep.bucket.objects.Put(reference->object_key, rewrapped));
    // The old key may be dropped only after the object was seen there.
    const auto again = TRY(FetchFile(*format, file.place, *reference, &upkeep.bucket));
    if (KeyIdOf(again.record) != keys.current().kid) {
      return Fail(Reason::kBucketFailed, "the bucket does not hold what was put into it: " + reference->object_key);
    }
    ++done.files;
    return {};
  });
}

Result<std::size_t> CountReferences(const std::string& root, const std::shared_ptr<const KeySet>& keys,
                                    FileSystem& file_system) {
  std::size_t count = 0;
  const auto format = MakeRecordFormat(keys);
  const UseFile use = [&](const FileOnDisk& file) -> Result<void> {
    const auto read = ReadEntry(file_system, *format, file);
    if (read && *read && std::holds_alternative<FileReference>((*read)->entry)) ++count;
    return {};
  };
  return FileWalk(file_system, use).DataFolder(root).map([&] { return count; });
}

}  // namespace reprise
