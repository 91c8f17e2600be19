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
  Timestamp changed_at;  // by the bucket's clock
  std::uint64_t bytes = 0;
};

struct ObjectPage {
  std::vector<StoredObject> objects{};
  bool has_more = false;  // the next page begins after the last of them
};

// A bucket: keeps objects on another machine, under keys of the characters A-Z a-z 0-9 / _ . -. Thread-safe. Calls wait
// for the network, including a few retries.
//
// Common failures: kUnavailable (reason "bucket_unreachable": no answer, or one that it is unavailable now;
// "bucket_refused": no access, or no such bucket; "bucket_failed": anything else), kStorageFull (reason "bucket_full"),
// kCancelled. Messages name the bucket's own error code, never a key that signs.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // When this returns ok, the object is stored; after a failure it may be. Repeating a call is ok.
  virtual Result<void> Put(const std::string& key, const std::string& content) = 0;
  // kNotFound if there is no such object.
  virtual Result<std::string> Get(const std::string& key) = 0;
  // Also ok if there is none.
  virtual Result<void> Delete(const std::string& key) = 0;
  // The objects whose keys begin with `prefix` and come after `after`, ordered by key.
  virtual Result<ObjectPage> List(const std::string& prefix, const std::string& after) = 0;
};

// The part of a bucket that belongs to one data folder.
struct FileBucket {
  ObjectStore& objects;  // must outlive the user
  std::string prefix{};  // of the keys of new objects; empty: none are to be made
};

// Files of chats as objects of a bucket. An object is the file's record, byte for byte as it would lie in the chat's
// folder, where a small record (FileReference) takes its place. The two are bound to each other: the small one names
// key and digest, and both are sealed to their place.

// The prefix of a data folder's objects: org/-/user/<16 hex>/thread/, or org/<org>/user/<user>.<16 hex>/thread/ for a
// tenant's folder. The first call (with `make`) draws the hex digits and keeps them in the folder with the names of
// `owner`, so that folders can share a bucket and a sweep meets only its own objects. Without `make`: empty if there is
// no prefix yet. REQUIRES when it makes one: nothing else uses the folder.
Result<std::string> ObjectPrefixOf(const std::string& data_folder, FileSystem& file_system, bool make,
                                   const Principal& owner = {});

// <prefix><chat>/<file>.<16 hex>: a name that was never used, so that an object is written once.
std::string NewObjectKey(const std::string& prefix, const ChatId& chat, const FileId& file);
struct ObjectName {
  ChatId chat;
  FileId file;
  auto operator<=>(const ObjectName&) const = default;
};
// nullopt unless NewObjectKey makes such a key.
std::optional<ObjectName> ParseObjectKey(std::string_view prefix, std::string_view key);

// Opens the record in the chat's folder that has this text.
Result<FileEntry> OpenFileEntry(const RecordFormat& format, const RecordPlace& place, std::string_view text);

struct FetchedFile {
  std::string record;  // the object
  StoredFile file;
};
// Gets the file of a reference. kCorruption as for any record: "missing" if there is no such object, "rollback" if it
// is another version. kUnavailable without a bucket (null).
Result<FetchedFile> FetchFile(const RecordFormat& format, const RecordPlace& place, const FileReference& reference,
                              const FileBucket* bucket);

}  // namespace reprise
