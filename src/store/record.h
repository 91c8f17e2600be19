#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "crypto/key_set.h"
#include "reprise/file_store.h"
#include "reprise/file_system.h"
#include "reprise/ids.h"
#include "reprise/result.h"

namespace reprise {

// Files beyond this size are not read, and not written either.
inline constexpr std::uint64_t kMaxRecordBytes = 256ULL << 20;

// Where a record belongs: an interaction's file, the chat's index, its queue, a file of the chat, or a question of an
// interaction and the answer to it, or a blob.
struct RecordPlace {
  ChatId chat;
  std::optional<InteractionId> interaction = std::nullopt;  // nullopt: chat.json, or
  bool queue = false;                                       // queue.json, or
  std::optional<FileId> file = std::nullopt;                // a file of the chat
  std::string question{};                                   // the id of a question of the interaction, or empty
  bool is_answer = false;                                   // and the answer to that
  std::string blob{};  // the name of a blob of the chat, or of what stands beside them; "restore": an intent
};

// What ties an interaction's record to the history before it.
struct RecordLinks {
  std::optional<InteractionId> parent;
  std::optional<std::string> parent_digest;
  bool operator==(const RecordLinks&) const = default;
};

struct SealedRecord {
  std::string text;    // what the file holds
  std::string digest;  // names this text for the records that follow it
};
struct OpenedRecord {
  std::string plaintext;
  std::string digest;
  std::optional<RecordLinks> links;  // nullopt: the format does not keep them
};

// An Error of code kCorruption about one record. `kind` is auth, swap, rollback, missing, version, plain or sealed.
Error IntegrityError(std::string_view kind, const RecordPlace& place, std::string_view what);

// What came of listing the folder of this name below the root: if it is kCorruption, it names the folder.
Error FolderError(const std::string& name, Error error);
// What is in that folder; nothing if it is not there.
Result<std::vector<DirectoryEntry>> ListFolder(FileSystem& file_system, const std::string& path,
                                               const std::string& name);
// Removes what writes have left in a folder that did not end. REQUIRES: nobody writes there.
void RemoveTemporaryFiles(FileSystem& file_system, const std::string& folder);

// The text of the record's file at `path`. kCorruption as well if there is anything but a file of reasonable size.
Result<std::string> ReadRecordText(FileSystem& file_system, const std::string& path, const RecordPlace& place);

// The form that records have on disk. Immutable, thread-safe.
class RecordFormat {
 public:
  virtual ~RecordFormat() = default;
  // Failures: kTooLarge, kInternal.
  virtual Result<SealedRecord> Seal(const RecordPlace& place, const RecordLinks& links,
                                    std::string_view plaintext) const = 0;
  // kCorruption unless `text` was sealed for exactly this place.
  virtual Result<OpenedRecord> Open(const RecordPlace& place, std::string_view text) const = 0;
  // What `text` says it is linked to, if it is the record of this digest, which is authentic: that alone makes the
  // links so, and nothing is decrypted. kCorruption if it is another record. REQUIRES: authenticated().
  virtual Result<RecordLinks> ReadLinks(const RecordPlace& place, std::string_view text,
                                        std::string_view digest) const = 0;
  // Whether digests are evidence. In a plain folder anybody may change a file, and people do that on purpose.
  virtual bool authenticated() const = 0;
};

// JWE when there are keys, the JSON as it is when there are none (null).
std::unique_ptr<RecordFormat> MakeRecordFormat(std::shared_ptr<const KeySet> keys);

// One record file looked at by itself, wherever it lies: what it says about its place is authentic (if sealed), but
// nothing was compared with the path.
struct RecordFile {
  std::string plaintext;         // JSON text
  std::string protected_header;  // JSON object text; empty if the file is plain
  std::string kid;               // empty if the file is plain
};
// `keys` may be null: plain files only (kForbidden, reason "key_needed", for a sealed one). kCorruption if the file is
// neither a sealed record nor a JSON object.
Result<RecordFile> ReadRecordFile(const std::string& path, const KeySet* keys, FileSystem& file_system);

// A head: a small file that says how far another one has come, so that an older state of that one is noticed
// (schemas/FILES.md, Heads). Sealed if there are keys.

inline constexpr std::string_view kAuditHeadType = "reprise/audit-head";
inline constexpr std::string_view kGrantsHeadType = "reprise/grants-head";

// What a record that belongs to no chat holds, if it is of this type and version; `name` is the file's, for messages.
// kCorruption (reason "integrity_<kind>").
Result<std::string> OpenLoneRecord(std::string_view text, std::string_view name, std::string_view type, int version,
                                   const KeySet* keys);
Error LoneRecordDamage(std::string_view name, std::string_view kind, std::string_view what);

// The JSON text that WriteHeadFile was given; nullopt if there is no such file. Fails as OpenLoneRecord and with kIo.
Result<std::optional<std::string>> ReadHeadFile(FileSystem& file_system, const std::string& path, std::string_view type,
                                                const KeySet* keys);
// What the file holds then.
Result<std::string> HeadText(std::string_view type, std::string_view json, const KeySet* keys);
// Replaces it, durably.
Result<void> WriteHeadFile(FileSystem& file_system, const std::string& path, std::string_view type,
                           std::string_view json, const KeySet* keys);

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
