#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "crypto/key_set.h"
#include "crypto/secret_key.h"
#include "reprise/blob_store.h"
#include "reprise/file_system.h"
#include "store/record.h"

namespace reprise {

// Keeps each blob as a record of its own in its chat's folder (schemas/FILES.md), sealed when there are keys. Its name
// is a MAC of its digest under a key of the chat, which lies beside it, sealed too; so a name does not confirm a guess
// at the content. Thread-safe.
class FileBlobStore final : public BlobStore {
 public:
  // `file_system` must outlive the store. `keys` null: plain.
  FileBlobStore(std::string root, std::shared_ptr<const KeySet> keys, FileSystem& file_system);

  Result<void> Put(const ChatId& chat, const std::vector<Blob>& blobs) override;
  Result<std::string> Get(const ChatId& chat, std::string_view digest) override;
  Result<std::vector<std::string>> List(const ChatId& chat) override;
  Result<void> Delete(const ChatId& chat, std::string_view digest) override;
  Result<std::optional<std::string>> ReadPosition(const ChatId& chat) override;
  Result<void> WritePosition(const ChatId& chat, std::string_view text) override;
  Result<void> WriteIntent(const ChatId& chat, std::string_view text) override;
  Result<std::vector<Intent>> ReadIntents() override;
  void ForgetChat(const ChatId& chat) override;

 private:
  using Names = std::shared_ptr<const SecretKey>;
  // The key for the names of the chat's blobs. If there is none it is created (`make`), else kNotFound.
  Result<Names> NamesOf(const ChatId& chat, bool make);
  Result<bool> IsThere(const ChatId& chat, const std::string& name);
  Result<void> Write(const RecordPlace& place, const std::string& path, std::string_view text);
  Result<std::string> Read(const RecordPlace& place, const std::string& path) const;

  const std::string root_;
  const std::unique_ptr<RecordFormat> format_;
  FileSystem& file_system_;
  Mutex mutex_;
  std::map<ChatId, Names> names_ GUARDED_BY(mutex_);
  std::set<ChatId> tidied_ GUARDED_BY(mutex_);
};

// The files in the folder of a chat's blobs (names.json and position.json too), readable or not, in no order, as
// ParseBlobName returns them.
Result<std::vector<std::string>> ListBlobNames(const std::string& root, const ChatId& chat, FileSystem& file_system);
// Checks an opened record of this place, a blob or a file beside the blobs; kCorruption. Returns the digest of a blob,
// which its content was checked against, and "" for the others.
Result<std::string> CheckBlobRecord(const RecordPlace& place, std::string_view plaintext);

}  // namespace reprise
