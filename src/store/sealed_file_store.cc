#include "store/sealed_file_store.h"

#include <algorithm>
#include <vector>

#include "base/atomic_write.h"
#include "base/try.h"
#include "store/file_limits.h"
#include "store/file_names.h"
#include "store/file_record.h"

namespace reprise {
namespace {

constexpr std::size_t kMostKnown = 10'000;

bool IsNotFound(const Error& error) { return error.code == ErrorCode::kNotFound; }

}  // namespace

SealedFileStore::SealedFileStore(Options options)
    : options_(std::move(options)), format_(MakeRecordFormat(options_.keys)) {
  options_.file_system.Confine(options_.root);
}

Result<void> SealedFileStore::Put(const ChatId& chat, const StoredFile& file) {
  const MutexLock lock(put_mutex_);
  FileSystem& disk = options_.file_system;
  const std::string directory = FilesDirectory(options_.root, chat);
  TRY(CheckRoom(chat, file));
  auto made = disk.CreateDirectory(directory);
  if (!made && IsNotFound(made.error())) return Fail(ErrorCode::kNotFound, "no such chat");
  if (!made) return Fail(std::move(made.error()));
  RemoveLeftovers(directory);
  const RecordPlace place{.chat = chat, .file = file.info.id};
  const auto record = TRY(format_->Seal(place, {}, FileToJson(chat, file)));
  const std::string path = FilePath(options_.root, chat, file.info.id);
  TRY(ReplaceFile(disk, path, record.text));
  // The folders too: whoever made them may have died before they were durable.
  auto durable = disk.SyncDirectory(directory)
                     .and_then([&] { return disk.SyncDirectory(ChatDirectory(options_.root, chat)); })
                     .and_then([&] { return disk.SyncDirectory(options_.root); });
  if (!durable) {
    static_cast<void>(disk.RemoveFile(path));  // it is not said to be there
    return durable;
  }
  Remember(chat, file.info);
  return {};
}

Result<void> SealedFileStore::CheckRoom(const ChatId& chat, const StoredFile& file) {
  const auto listing = TRY(List(chat));
  const auto is_it = [&](const auto& other) { return other.id == file.info.id; };
  const bool there = std::any_of(listing.files.begin(), listing.files.end(), is_it) ||
                     std::any_of(listing.damaged.begin(), listing.damaged.end(), is_it);
  return CheckLimits(options_.limits, listing, file, there);
}

// Nobody else writes here: what is temporary is of a process that has ended.
void SealedFileStore::RemoveLeftovers(const std::string& directory) const {
  const auto entries = options_.file_system.ListDirectory(directory);
  if (!entries) return;
  for (const DirectoryEntry& entry : *entries) {
    if (!IsTemporaryName(entry.name)) continue;
    static_cast<void>(options_.file_system.RemoveFile(directory + "/" + entry.name));
  }
}

Result<StoredFile> SealedFileStore::Get(const ChatId& chat, const FileId& id) {
  const RecordPlace place{.chat = chat, .file = id};
  const auto text = ReadRecordText(options_.file_system, FilePath(options_.root, chat, id), place);
  if (!text && IsNotFound(text.error())) return Fail(ErrorCode::kNotFound, "no such file in this chat");
  if (!text) return Fail(text.error());
  const auto record = TRY(format_->Open(place, *text));
  auto file = FileFromJson(place, record.plaintext);
  if (file) Remember(chat, file->info);
  return file;
}

Result<FileListing> SealedFileStore::List(const ChatId& chat) {
  const auto ids = TRY(ListFileIds(options_.root, chat, options_.file_system));
  FileListing listing;
  for (const FileId& id : ids) {
    if (auto known = Known(chat, id)) {
      listing.files.push_back(*std::move(known));
      continue;
    }
    auto file = Get(chat, id);
    if (file) {
      listing.files.push_back(std::move(file->info));
    } else if (file.error().code == ErrorCode::kCorruption) {
      listing.damaged.push_back({id, std::move(file.error())});
    } else if (!IsNotFound(file.error())) {  // deleted meanwhile
      return Fail(std::move(file.error()));
    }
  }
  SortListing(listing);
  return listing;
}

Result<void> SealedFileStore::Delete(const ChatId& chat, const FileId& id) {
  auto removed = options_.file_system.RemoveFile(FilePath(options_.root, chat, id));
  if (!removed && IsNotFound(removed.error())) return Fail(ErrorCode::kNotFound, "no such file in this chat");
  if (!removed) return removed;
  {
    const MutexLock lock(mutex_);
    known_.erase({chat, id});
  }
  return options_.file_system.SyncDirectory(FilesDirectory(options_.root, chat));
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
  const auto entries = file_system.ListDirectory(FilesDirectory(root, chat));
  if (!entries && IsNotFound(entries.error())) return ids;
  if (!entries) return Fail(FolderError(FilesName(chat), entries.error()));
  for (const DirectoryEntry& entry : *entries) {
    auto id = ParseFileName(entry.name);
    if (id && !entry.is_directory) ids.push_back(*std::move(id));
  }
  return ids;
}

}  // namespace reprise
