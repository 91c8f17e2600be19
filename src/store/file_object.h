#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reprise/file_store.h"
#include "reprise/file_system.h"
#include "reprise/principal.h"
#include "store/file_record.h"
#include "store/object_store.h"
#include "store/record.h"

// Files of chats as objects of a bucket. An object is the file's record, byte for byte as it would lie in the chat's
// folder; there a small record stands for it (FileReference). The two are bound to each other: the small one names key
// and digest, and both are sealed to their place.
namespace reprise {

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
