#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "crypto/key_set.h"
#include "reprise/file_store.h"
#include "reprise/file_system.h"
#include "store/object_store.h"
#include "store/record.h"

namespace reprise {

// Keeps each file as a record of its own in its chat's folder (schemas/FILES.md), sealed when there are keys: it is
// deleted, put back and converted with the chat. Files are called by their id; what their givers called them is inside.
//
// With a bucket, that record goes there, and a small one in the folder stands for it (store/object_store): the object
// is kept before the folder speaks of it, and goes after. What is left of a Put that failed in between, or of a Delete,
// is for a sweep (store/upkeep). Files that lie in the folder are read there all the same.
//
// Thread-safe; files are put one after the other, but for the way to the bucket.
class SealedFileStore final : public FileStore {
 public:
  struct Options {
    std::string root;                    // the data folder
    std::shared_ptr<const KeySet> keys;  // null: plain
    FileSystem& file_system;             // must outlive the store
    FileLimits limits = {};
    const FileBucket* bucket = nullptr;  // null: files stay in the folder, and none in a bucket can be read
  };
  explicit SealedFileStore(Options options);

  Result<void> Put(const ChatId& chat, const StoredFile& file) override;
  Result<StoredFile> Get(const ChatId& chat, const FileId& id) override;
  // Reads every record of the folder when it is first asked about a chat, later only new ones: damage since then, and
  // of what is in a bucket, shows in Get.
  Result<FileListing> List(const ChatId& chat) override;
  Result<void> Delete(const ChatId& chat, const FileId& id) override;
  void ForgetChat(const ChatId& chat) override;

 private:
  Result<void> PutInBucket(const ChatId& chat, const StoredFile& file);
  Result<void> CheckRoom(const ChatId& chat, const StoredFile& file);
  Result<void> MakeDirectory(const ChatId& chat) const;
  Result<void> WriteRecord(const ChatId& chat, const FileInfo& file, const std::string& text);
  Result<FileEntry> ReadEntry(const ChatId& chat, const FileId& id) const;
  std::optional<FileInfo> Known(const ChatId& chat, const FileId& id);
  void Remember(const ChatId& chat, const FileInfo& file);

  const Options options_;
  const std::unique_ptr<RecordFormat> format_;
  // Held while there is looked for room and it is taken, so that two cannot share the room for one; before mutex_.
  Mutex put_mutex_;
  Mutex mutex_;
  std::map<std::pair<ChatId, FileId>, FileInfo> known_ GUARDED_BY(mutex_);  // read before, and files do not change
};

// The ids of a chat's files, readable or not, in no order.
Result<std::vector<FileId>> ListFileIds(const std::string& root, const ChatId& chat, FileSystem& file_system);

}  // namespace reprise
