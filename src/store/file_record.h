#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "reprise/file_store.h"
#include "reprise/result.h"
#include "store/record.h"

namespace reprise {

// What stands in a chat's folder for a file that is in a bucket.
struct FileReference {
  FileInfo info;
  std::string object_key;
  std::string record_digest;  // the object is the file's record, and this one
  bool operator==(const FileReference&) const = default;
};
using FileEntry = std::variant<StoredFile, FileReference>;
const FileInfo& InfoOf(const FileEntry& entry);

// The plaintext of a file's record (schemas/file.schema.json): JSON with the content as text where it is text, else in
// base64url.
std::string FileToJson(const ChatId& chat, const StoredFile& file);

// Likewise, of what stands for it.
std::string FileReferenceToJson(const ChatId& chat, const FileReference& reference);

// kCorruption unless `text` is what one of the two writes for a file of this place.
Result<FileEntry> FileEntryFromJson(const RecordPlace& place, std::string_view text);
// The same for a file itself.
Result<StoredFile> FileFromJson(const RecordPlace& place, std::string_view text);

// The place that the record of a file is for, by what it says itself. kInvalidArgument if it is no such record.
Result<RecordPlace> PlaceOfFile(std::string_view text);

}  // namespace reprise
