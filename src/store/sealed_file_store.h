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

// Keeps each file as a record of its own in its chat's folder (schemas/FILES.md), sealed when there are keys; so it is
// deleted, restored and converted with the chat. A file is named by its id; its original name is inside.
//
// With a bucket, that record goes there, and a small one in the folder refers to it (store/object_store). The object is
// stored before its reference and deleted after it. Objects that a failed Put or Delete left behind are for a sweep
// (store/upkeep). Files that lie in the folder are still read there.
//
// Thread-safe; files are put one after the other, except for the transfer to the bucket.
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
  // The first call for a chat reads every record of its folder, later calls only new ones. So later damage, and damage
  // in a bucket, shows only in Get.
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
  // Held while room is checked and taken, so that two files cannot take the same; taken before mutex_.
  Mutex put_mutex_;
  Mutex mutex_;
  std::map<std::pair<ChatId, FileId>, FileInfo> known_ GUARDED_BY(mutex_);  // already read; files do not change
};

// The ids of a chat's files, readable or not, in no order.
Result<std::vector<FileId>> ListFileIds(const std::string& root, const ChatId& chat, FileSystem& file_system);

}  // namespace reprise
