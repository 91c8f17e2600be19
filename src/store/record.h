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

// Larger files are neither read nor written.
inline constexpr std::uint64_t kMaxRecordBytes = 256ULL << 20;

// The place of a record: an interaction's file, the chat's index, its queue, a file of the chat, a question of an
// interaction or the answer to it, or a blob.
struct RecordPlace {
  ChatId chat;
  std::optional<InteractionId> interaction = std::nullopt;  // nullopt: chat.json, or
  bool queue = false;                                       // queue.json, or
  std::optional<FileId> file = std::nullopt;                // a file of the chat
  std::string question{};                                   // the id of a question of the interaction, or empty
  bool is_answer = false;                                   // the record is the answer to it
  std::string blob{};       // the name of a blob of the chat, or of a file beside them; "restore": an intent
  bool is_journal = false;  // the interaction's journal
};

// The links of an interaction's record to the history before it.
struct RecordLinks {
  std::optional<InteractionId> parent;
  std::optional<std::string> parent_digest;
  bool operator==(const RecordLinks&) const = default;
};

struct SealedRecord {
  std::string text;    // the content of the file
  std::string digest;  // names this text for the records that follow it
};
struct OpenedRecord {
  std::string plaintext;
  std::string digest;
  std::optional<RecordLinks> links;  // nullopt: the format does not keep them
};

// An Error of code kCorruption about one record. `kind` is auth, swap, rollback, missing, version, plain or sealed.
Error IntegrityError(std::string_view kind, const RecordPlace& place, std::string_view what);

// An error from listing the folder of this name below the root: if it is kCorruption, the name is added to it.
Error FolderError(const std::string& name, Error error);
// The entries of that folder; empty if it is missing.
Result<std::vector<DirectoryEntry>> ListFolder(FileSystem& file_system, const std::string& path,
                                               const std::string& name);
// Removes the temporary files of interrupted writes from a folder. REQUIRES: nothing is written there meanwhile.
void RemoveTemporaryFiles(FileSystem& file_system, const std::string& folder);

// The text of the record's file at `path`. kCorruption also if it is not a file, or is too large.
Result<std::string> ReadRecordText(FileSystem& file_system, const std::string& path, const RecordPlace& place);

// The form of records on disk. Immutable, thread-safe.
class RecordFormat {
 public:
  virtual ~RecordFormat() = default;
  // Failures: kTooLarge, kInternal.
  virtual Result<SealedRecord> Seal(const RecordPlace& place, const RecordLinks& links,
                                    std::string_view plaintext) const = 0;
  // kCorruption unless `text` was sealed for exactly this place.
  virtual Result<OpenedRecord> Open(const RecordPlace& place, std::string_view text) const = 0;
  // The links of `text`, if it is the record of this authentic digest. The digest alone makes the links authentic, so
  // nothing is decrypted. kCorruption if it is another record. REQUIRES: authenticated().
  virtual Result<RecordLinks> ReadLinks(const RecordPlace& place, std::string_view text,
                                        std::string_view digest) const = 0;
  // The digest of a file's text. kCorruption if it cannot be a record.
  virtual Result<std::string> DigestOf(std::string_view text) const = 0;
  // Whether digests are evidence. In a plain folder anybody may change a file, and people do that on purpose.
  virtual bool authenticated() const = 0;
};

// JWE with keys, plain JSON without (null).
std::unique_ptr<RecordFormat> MakeRecordFormat(std::shared_ptr<const KeySet> keys);

// A single record file, wherever it lies. Its statements about its place are authentic (if sealed), but were not
// compared with the path.
struct RecordFile {
  std::string plaintext;         // JSON text
  std::string protected_header;  // JSON object text; empty if the file is plain
  std::string kid;               // empty if the file is plain
};
// `keys` may be null: plain files only (kForbidden, reason "key_needed", for a sealed one). kCorruption if the file is
// neither a sealed record nor a JSON object.
Result<RecordFile> ReadRecordFile(const std::string& path, const KeySet* keys, FileSystem& file_system);

// A head: a small file that names the newest state of another one, so that an older state of that one is noticed
// (schemas/FILES.md, Heads). Sealed if there are keys.

inline constexpr std::string_view kAuditHeadType = "reprise/audit-head";
inline constexpr std::string_view kGrantsHeadType = "reprise/grants-head";

// Opens a record that belongs to no chat; a sealed one must be of this type and version. `name` is the file's, for
// messages. kCorruption (reason "integrity_<kind>").
Result<std::string> OpenLoneRecord(std::string_view text, std::string_view name, std::string_view type, int version,
                                   const KeySet* keys);
Error LoneRecordDamage(std::string_view name, std::string_view kind, std::string_view what);

// The JSON text that WriteHeadFile was given; nullopt if there is no such file. Fails as OpenLoneRecord and with kIo.
Result<std::optional<std::string>> ReadHeadFile(FileSystem& file_system, const std::string& path, std::string_view type,
                                                const KeySet* keys);
// The text of such a file.
Result<std::string> HeadText(std::string_view type, std::string_view json, const KeySet* keys);
// Replaces the file, durably.
Result<void> WriteHeadFile(FileSystem& file_system, const std::string& path, std::string_view type,
                           std::string_view json, const KeySet* keys);

// The content of the record in a chat's folder for a file that is in a bucket.
struct FileReference {
  FileInfo info;
  std::string object_key;
  std::string record_digest;  // of the object, which is the file's record
  bool operator==(const FileReference&) const = default;
};
using FileEntry = std::variant<StoredFile, FileReference>;
const FileInfo& InfoOf(const FileEntry& entry);

// The plaintext of a file's record (schemas/file.schema.json): JSON with the content as text if possible, else in
// base64url.
std::string FileToJson(const ChatId& chat, const StoredFile& file);

// The same for a reference.
std::string FileReferenceToJson(const ChatId& chat, const FileReference& reference);

// kCorruption unless `text` was written by one of the two for a file of this place.
Result<FileEntry> FileEntryFromJson(const RecordPlace& place, std::string_view text);
// The same for a file itself.
Result<StoredFile> FileFromJson(const RecordPlace& place, std::string_view text);

// The place that the plaintext of a file's record claims. kInvalidArgument if it is no such record.
Result<RecordPlace> PlaceOfFile(std::string_view text);

}  // namespace reprise
