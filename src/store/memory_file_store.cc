#include "store/memory_file_store.h"

#include "store/chat_files.h"

namespace reprise {
namespace {

tl::unexpected<Error> NoSuchFile() { return Fail(ErrorCode::kNotFound, "no such file in this chat"); }

FileListing Listing(const std::map<FileId, StoredFile>& files) {
  FileListing listing;
  for (const auto& [id, file] : files) listing.files.push_back(file.info);
  SortListing(listing);
  return listing;
}

}  // namespace

Result<void> MemoryFileStore::Put(const ChatId& chat, const StoredFile& file) {
  const MutexLock lock(mutex_);
  auto& files = chats_[chat];
  auto room = CheckLimits(limits_, Listing(files), file, files.contains(file.info.id));
  if (room) files.emplace(file.info.id, file);
  return room;
}

Result<StoredFile> MemoryFileStore::Get(const ChatId& chat, const FileId& id) {
  const MutexLock lock(mutex_);
  const auto files = chats_.find(chat);
  if (files == chats_.end()) return NoSuchFile();
  const auto found = files->second.find(id);
  if (found == files->second.end()) return NoSuchFile();
  return found->second;
}

Result<FileListing> MemoryFileStore::List(const ChatId& chat) {
  const MutexLock lock(mutex_);
  const auto files = chats_.find(chat);
  return files == chats_.end() ? FileListing{} : Listing(files->second);
}

Result<void> MemoryFileStore::Delete(const ChatId& chat, const FileId& id) {
  const MutexLock lock(mutex_);
  const auto files = chats_.find(chat);
  if (files == chats_.end() || files->second.erase(id) == 0) return NoSuchFile();
  return {};
}

void MemoryFileStore::ForgetChat(const ChatId& chat) {
  const MutexLock lock(mutex_);
  chats_.erase(chat);
}

}  // namespace reprise
