#include "store/sealed_file_store.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/atomic_write.h"
#include "base/logging.h"
#include "base/try.h"
#include "store/file_names.h"

namespace reprise {
namespace {

constexpr std::size_t kMostKnown = 10'000;

// Whether `file` may be added to the present files of a chat; `there`: one of them has its id. Fails as FileStore::Put.
Result<void> CheckLimits(const FileLimits& limits, const FileListing& present, const StoredFile& file, bool there) {
  if (file.content.size() > limits.file_bytes) {
    return Fail(Reason::kFileTooLarge, "a file may have " + std::to_string(limits.file_bytes) + " bytes");
  }
  if (there) {
    return Fail(Reason::kFileExists, "there is a file of this id already");
  }
  std::uint64_t bytes = file.content.size();
  for (const FileInfo& other : present.files) bytes += other.size_bytes;
  if (bytes > limits.chat_bytes || present.files.size() + present.damaged.size() >= limits.files) {
    return Fail(Reason::kChatFilesFull, "the files of a chat may be " + std::to_string(limits.files) + ", with " +
                                            std::to_string(limits.chat_bytes) + " bytes together; delete some");
  }
  return {};
}

// Oldest first.
void SortListing(FileListing& listing) {
  std::ranges::sort(listing.files, [](const FileInfo& a, const FileInfo& b) {
    return std::tie(a.created_at, a.id) < std::tie(b.created_at, b.id);
  });
  std::ranges::sort(listing.damaged, {}, &DamagedFile::id);
}

}  // namespace

SealedFileStore::SealedFileStore(Options options)
    : options_(std::move(options)), format_(MakeRecordFormat(options_.keys)) {
  options_.file_system.Confine(options_.root);
}

Result<void> SealedFileStore::Put(const ChatId& chat, const StoredFile& file) {
  if (options_.bucket != nullptr && !options_.bucket->prefix.empty()) return PutInBucket(chat, file);
  const MutexLock lock(put_mutex_);
  TRY(CheckRoom(chat, file));
  TRY(MakeDirectory(chat));
  const auto record = TRY(format_->Seal({.chat = chat, .file = file.info.id}, {}, FileToJson(chat, file)));
  return WriteRecord(chat, file.info, record.text);
}

Result<void> SealedFileStore::PutInBucket(const ChatId& chat, const StoredFile& file) {
  // Checked before, too, so that no file is sent in vain.
  TRY(CheckRoom(chat, file));
  TRY(MakeDirectory(chat));
  const RecordPlace place{.chat = chat, .file = file.info.id};
  const auto object = TRY(format_->Seal(place, {}, FileToJson(chat, file)));
  const FileReference reference{.info = file.info,
                                .object_key = NewObjectKey(options_.bucket->prefix, chat, file.info.id),
                                .record_digest = object.digest};
  TRY(options_.bucket->objects.Put(reference.object_key, object.text));

  const auto record = TRY(format_->Seal(place, {}, FileReferenceToJson(chat, reference)));
  const MutexLock lock(put_mutex_);
  TRY(CheckRoom(chat, file));
  TRY(MakeDirectory(chat));
  return WriteRecord(chat, file.info, record.text);
}

Result<void> SealedFileStore::MakeDirectory(const ChatId& chat) const {
  auto made = options_.file_system.CreateDirectory(FilesDirectory(options_.root, chat));
  if (!made && IsNotFound(made.error())) return Fail(ErrorCode::kNotFound, "no such chat");
  return made.map([](bool) {});
}

Result<void> SealedFileStore::WriteRecord(const ChatId& chat, const FileInfo& file, const std::string& text) {
  FileSystem& disk = options_.file_system;
  const std::string directory = FilesDirectory(options_.root, chat);
  RemoveTemporaryFiles(disk, directory);  // nothing else writes here
  const std::string path = FilePath(options_.root, chat, file.id);
  TRY(ReplaceFile(disk, path, text));
  // The folders, too: the process that made them may have ended before they were durable.
  auto durable = disk.SyncDirectory(directory)
                     .and_then([&] { return disk.SyncDirectory(ChatDirectory(options_.root, chat)); })
                     .and_then([&] { return disk.SyncDirectory(options_.root); });
  if (!durable) {
    static_cast<void>(disk.RemoveFile(path));  // the caller is told that it is not there
    return durable;
  }
  Remember(chat, file);
  return {};
}

Result<void> SealedFileStore::CheckRoom(const ChatId& chat, const StoredFile& file) {
  const auto listing = TRY(List(chat));
  const auto is_it = [&](const auto& other) { return other.id == file.info.id; };
  const bool there = std::ranges::any_of(listing.files, is_it) || std::ranges::any_of(listing.damaged, is_it);
  return CheckLimits(options_.limits, listing, file, there);
}

Result<FileEntry> SealedFileStore::ReadEntry(const ChatId& chat, const FileId& id) const {
  const RecordPlace place{.chat = chat, .file = id};
  const auto text = ReadRecordText(options_.file_system, FilePath(options_.root, chat, id), place);
  if (!text && IsNotFound(text.error())) return Fail(ErrorCode::kNotFound, "no such file in this chat");
  if (!text) return Fail(text.error());
  return OpenFileEntry(*format_, place, *text);
}

Result<StoredFile> SealedFileStore::Get(const ChatId& chat, const FileId& id) {
  auto entry = TRY(ReadEntry(chat, id));
  Remember(chat, InfoOf(entry));
  if (auto* const file = std::get_if<StoredFile>(&entry)) return std::move(*file);
  return FetchFile(*format_, {.chat = chat, .file = id}, std::get<FileReference>(entry), options_.bucket)
      .map([](FetchedFile fetched) { return std::move(fetched.file); });
}

Result<FileListing> SealedFileStore::List(const ChatId& chat) {
  const auto ids = TRY(ListFileIds(options_.root, chat, options_.file_system));
  FileListing listing;
  for (const FileId& id : ids) {
    if (auto known = Known(chat, id)) {
      listing.files.push_back(*std::move(known));
      continue;
    }
    auto entry = ReadEntry(chat, id);
    if (entry) {
      Remember(chat, InfoOf(*entry));
      listing.files.push_back(InfoOf(*entry));
    } else if (entry.error().code == ErrorCode::kCorruption) {
      listing.damaged.push_back({id, std::move(entry.error())});
    } else if (!IsNotFound(entry.error())) {  // deleted meanwhile
      return Fail(std::move(entry.error()));
    }
  }
  SortListing(listing);
  return listing;
}

Result<void> SealedFileStore::Delete(const ChatId& chat, const FileId& id) {
  const auto entry = options_.bucket ? ReadEntry(chat, id) : Fail(ErrorCode::kNotFound, "");
  auto removed = options_.file_system.RemoveFile(FilePath(options_.root, chat, id));
  if (!removed && IsNotFound(removed.error())) return Fail(ErrorCode::kNotFound, "no such file in this chat");
  if (!removed) return removed;
  {
    const MutexLock lock(mutex_);
    known_.erase({chat, id});
  }
  TRY(options_.file_system.SyncDirectory(FilesDirectory(options_.root, chat)));
  const auto* const reference = entry ? std::get_if<FileReference>(&*entry) : nullptr;
  if (reference == nullptr) return {};
  if (const auto gone = options_.bucket->objects.Delete(reference->object_key); !gone) {
    LogWarning("the object of a deleted file is still in the bucket, until a sweep takes it",
               {{"object", reference->object_key}, {"code", gone.error().reason}, {"error", gone.error().message}});
  }
  return {};
}

void SealedFileStore::ForgetChat(const ChatId& chat) {
  const MutexLock lock(mutex_);
  std::erase_if(known_, [&](const auto& each) { return each.first.first == chat; });
}

std::optional<FileInfo> SealedFileStore::Known(const ChatId& chat, const FileId& id) {
  const MutexLock lock(mutex_);
  const auto found = known_.find({chat, id});
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void SealedFileStore::Remember(const ChatId& chat, const FileInfo& file) {
  const MutexLock lock(mutex_);
  if (known_.size() >= kMostKnown) known_.clear();
  known_.insert_or_assign({chat, file.id}, file);
}

Result<std::vector<FileId>> ListFileIds(const std::string& root, const ChatId& chat, FileSystem& file_system) {
  std::vector<FileId> ids;
  for (const DirectoryEntry& entry : TRY(ListFolder(file_system, FilesDirectory(root, chat), FilesName(chat)))) {
    auto id = ParseFileName(entry.name);
    if (id && !entry.is_directory) ids.push_back(*std::move(id));
  }
  return ids;
}

}  // namespace reprise
