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

// Facts about a file given to a chat.
struct FileInfo {
  FileId id;
  std::string filename{};   // for people: one line, no path; never used as a path
  std::string mime_type{};  // "text/plain"; as stated by the giver, unchecked
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

// Makes a file with a new id. `filename` is reduced to its text after the last slash or backslash, without control and
// deceptive characters, and cut to 200 characters; "file" if nothing is left. `mime_type` loses its parameters; empty:
// application/octet-stream.
// kUnsupportedType if it is no media type (RFC 9110, section 8.3.1).
Result<StoredFile> MakeFile(std::string_view filename, std::string_view mime_type, std::string content);

// Whether the content is text: UTF-8 without NUL.
bool IsText(std::string_view content);

struct FileLimits {
  std::uint64_t file_bytes = 10ull << 20;
  std::uint64_t chat_bytes = 100ull << 20;  // all files of one chat
  std::size_t files = 500;                  // of one chat
};

// An unreadable stored file; its neighbours are readable.
struct DamagedFile {
  FileId id;
  Error error;  // kCorruption
};
struct FileListing {
  std::vector<FileInfo> files;  // oldest first
  std::vector<DamagedFile> damaged;
};

// Keeps the files of chats. A file never changes; it is put and deleted. All methods may be called from several
// threads. Common failures: kNotFound (no such file in this chat), kCorruption (reason integrity_<kind>, as in
// InteractionStore), kIo, kStorageFull, kUnavailable (a remote store cannot be reached).
//
//   auto file = reprise::MakeFile("notes.txt", "text/plain", "Buy milk.");
//   if (!file) return Complain(file.error().message);
//   if (auto put = files.Put(chat, *file); !put) return Complain(put.error().message);
//   auto again = files.Get(chat, file->info.id);
class FileStore {
 public:
  virtual ~FileStore() = default;

  // When this returns ok, the file survives a power loss. kConflict (reason "file_exists") if its id is in use,
  // kTooLarge (reason "file_too_large"), kStorageFull (reason "chat_files_full") if the chat's files would exceed their
  // limits, kNotFound if a store that keeps files with their chats has no such chat.
  virtual Result<void> Put(const ChatId& chat, const StoredFile& file) = 0;
  virtual Result<StoredFile> Get(const ChatId& chat, const FileId& id) = 0;
  // Empty for a chat without files, and for an unknown chat.
  virtual Result<FileListing> List(const ChatId& chat) = 0;
  // Deletes damaged files too.
  virtual Result<void> Delete(const ChatId& chat, const FileId& id) = 0;
  // Call it when the chat is deleted: a store that keeps files elsewhere deletes them.
  virtual void ForgetChat(const ChatId& chat) = 0;
};

// The files of one chat, for the agent's tools. Thread-safe. Failures as FileStore.
class FilesOfChat {
 public:
  virtual ~FilesOfChat() = default;
  virtual Result<FileListing> List() = 0;
  virtual Result<StoredFile> Get(const FileId& id) = 0;
  virtual Result<FileInfo> Add(std::string_view filename, std::string_view mime_type, std::string content) = 0;
  virtual Result<void> Delete(const FileId& id) = 0;
};

}  // namespace reprise
