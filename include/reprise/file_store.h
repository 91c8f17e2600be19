#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/error.h"
#include "reprise/ids.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// What is known of a file that somebody has given to a chat.
struct FileInfo {
  FileId id;
  std::string filename{};   // for people: one line, no path; never used as a path
  std::string mime_type{};  // "text/plain"; what its giver said, nobody has looked
  std::uint64_t size_bytes = 0;
  std::string digest{};  // of the content: "sha256:" + 64 hex digits
  Timestamp created_at{};
  bool operator==(const FileInfo&) const = default;
};
struct StoredFile {
  FileInfo info;
  std::string content{};  // any bytes
  bool operator==(const StoredFile&) const = default;
};

// A new file, with an id that nothing has. Of `filename` what comes after the last slash is kept, without control
// characters and cut to 200 characters; "file" if nothing is left. Of `mime_type` the parameters are dropped; empty:
// application/octet-stream. kUnsupportedType if it is no media type (RFC 9110, section 8.3.1).
Result<StoredFile> MakeFile(std::string_view filename, std::string_view mime_type, std::string content);

// Whether the content is text: UTF-8 without NUL.
bool IsText(std::string_view content);

struct FileLimits {
  std::uint64_t file_bytes = 10ull << 20;
  std::uint64_t chat_bytes = 100ull << 20;  // all files of one chat
  std::size_t files = 500;                  // of one chat
};

// A file that is stored but cannot be read; its neighbours can.
struct DamagedFile {
  FileId id;
  Error error;  // kCorruption
};
struct FileListing {
  std::vector<FileInfo> files;  // oldest first
  std::vector<DamagedFile> damaged;
};

// A FileStore keeps the files that belong to chats. A file is never changed: it is put, and deleted. All methods may be
// called from several threads.
//
// Common failures: kNotFound (no such file in this chat), kCorruption (reason integrity_<kind>, as in
// InteractionStore), kIo, kStorageFull, kUnavailable (files are elsewhere, and that cannot be reached).
class FileStore {
 public:
  virtual ~FileStore() = default;

  // When this returns ok the file survives a power loss. kConflict (reason "file_exists") if there is one of its id,
  // kTooLarge (reason "file_too_large"), kStorageFull (reason "chat_files_full") if the chat's files would pass their
  // limits, kNotFound if a store that keeps files with their chats has no such chat.
  virtual Result<void> Put(const ChatId& chat, const StoredFile& file) = 0;
  virtual Result<StoredFile> Get(const ChatId& chat, const FileId& id) = 0;
  // Empty for a chat that has none, or is not known.
  virtual Result<FileListing> List(const ChatId& chat) = 0;
  // A damaged one too.
  virtual Result<void> Delete(const ChatId& chat, const FileId& id) = 0;
  // The chat is no more: a store that does not keep files with their chats forgets them.
  virtual void ForgetChat(const ChatId& chat) = 0;
};

// The files of one chat, for the tools that the agent uses there. Thread-safe. Failures as those of FileStore.
class FilesOfChat {
 public:
  virtual ~FilesOfChat() = default;
  virtual Result<FileListing> List() = 0;
  virtual Result<StoredFile> Get(const FileId& id) = 0;
  virtual Result<FileInfo> Add(std::string_view filename, std::string_view mime_type, std::string content) = 0;
  virtual Result<void> Delete(const FileId& id) = 0;
};

}  // namespace reprise
