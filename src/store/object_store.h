#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/file_store.h"
#include "reprise/file_system.h"
#include "reprise/principal.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"
#include "store/record.h"

namespace reprise {

struct StoredObject {
  std::string key;
  Timestamp changed_at;  // by the clock of whoever keeps it
  std::uint64_t bytes = 0;
};

struct ObjectPage {
  std::vector<StoredObject> objects{};
  bool has_more = false;  // the next page begins behind the last of them
};

// Keeps objects, each under a key of the characters A-Z a-z 0-9 / _ . -, on another machine: a bucket. Thread-safe.
// Calls wait for the network, as long as it takes to try a few times.
//
// Common failures: kUnavailable (reason "bucket_unreachable": nobody answers, or only that it cannot now;
// "bucket_refused": it answers, but not to us, or has no such bucket; "bucket_failed": anything else), kStorageFull
// (reason "bucket_full"), kCancelled. Messages name the bucket's own error code, never a key that signs.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // When this returns ok the object is kept. After a failure it may be there or not. Twice the same is ok.
  virtual Result<void> Put(const std::string& key, const std::string& content) = 0;
  // kNotFound if there is no such object.
  virtual Result<std::string> Get(const std::string& key) = 0;
  // Ok, too, if there is none.
  virtual Result<void> Delete(const std::string& key) = 0;
  // Those whose key begins with `prefix`, by rising key, the first `after` the given one.
  virtual Result<ObjectPage> List(const std::string& prefix, const std::string& after) = 0;
};

// The part of a bucket that belongs to one data folder.
struct FileBucket {
  ObjectStore& objects;  // must outlive the user
  std::string prefix{};  // with which the keys of new objects begin; empty: there are to be none
};

// Files of chats as objects of a bucket. An object is the file's record, byte for byte as it would lie in the chat's
// folder; there a small record stands for it (FileReference). The two are bound to each other: the small one names key
// and digest, and both are sealed to their place.

// Of the objects of one data folder: org/-/user/<16 hex>/thread/, or org/<org>/user/<user>.<16 hex>/thread/ where the
// folder is a tenant's. The hex digits are the folder's own, made at the first call and kept in it with the names, so
// that folders can share a bucket and a sweep meets only its own. `make` false: empty if there are none. `owner`, whose
// the folder is, counts when they are made. REQUIRES if it makes some: nobody else uses the folder.
Result<std::string> ObjectPrefixOf(const std::string& data_folder, FileSystem& file_system, bool make,
                                   const Principal& owner = {});

// <prefix><chat>/<file>.<16 hex>: a name that nothing has or had, so that an object is written once.
std::string NewObjectKey(const std::string& prefix, const ChatId& chat, const FileId& file);
struct ObjectName {
  ChatId chat;
  FileId file;
  auto operator<=>(const ObjectName&) const = default;
};
// Nullopt for what NewObjectKey does not make.
std::optional<ObjectName> ParseObjectKey(std::string_view prefix, std::string_view key);

// What the record in the chat's folder says, by its text.
Result<FileEntry> OpenFileEntry(const RecordFormat& format, const RecordPlace& place, std::string_view text);

struct FetchedFile {
  std::string record;  // the object
  StoredFile file;
};
// Gets what a reference stands for. kCorruption as any record: "missing" if there is no such object, "rollback" if it
// is another version. kUnavailable without a bucket (null).
Result<FetchedFile> FetchFile(const RecordFormat& format, const RecordPlace& place, const FileReference& reference,
                              const FileBucket* bucket);

}  // namespace reprise
