#pragma once

#include <map>
#include <unordered_map>

#include "base/mutex.h"
#include "reprise/file_store.h"

namespace reprise {

// Keeps files as long as the object lives, for chats of any name. Thread-safe. For programs that embed the engine and
// store nothing, and for tests.
class MemoryFileStore final : public FileStore {
 public:
  explicit MemoryFileStore(FileLimits limits = {}) : limits_(limits) {}

  Result<void> Put(const ChatId& chat, const StoredFile& file) override;
  Result<StoredFile> Get(const ChatId& chat, const FileId& id) override;
  Result<FileListing> List(const ChatId& chat) override;
  Result<void> Delete(const ChatId& chat, const FileId& id) override;
  void ForgetChat(const ChatId& chat) override;

 private:
  const FileLimits limits_;
  Mutex mutex_;
  std::unordered_map<ChatId, std::map<FileId, StoredFile>> chats_ GUARDED_BY(mutex_);
};

}  // namespace reprise
